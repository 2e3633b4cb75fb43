"""A name means one thing: no two classes of the packages share one, so that a reader who meets it knows which it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import mpm_nodes

ROOT = Path(mpm_nodes.__file__).parent.parent


def classes_of(*sources: Path) -> dict[str, list[str]]:
    """Return the files in which each name of a class is defined at the top."""
    found = defaultdict(list)
    for path in sources:
        for item in ast.parse(path.read_text()).body:
            if isinstance(item, ast.ClassDef):
                found[item.name].append(path.name)
    return found


def test_no_two_classes_share_a_name(tmp_path):
    """A second one is found."""
    ours = [path for package in ("mpm_nodes", "usd_io", "samples") for path in (ROOT / package).rglob("*.py")]
    assert len(ours) > 300
    assert not {name: files for name, files in classes_of(*ours).items() if len(files) > 1}
    another = tmp_path / "another.py"
    another.write_text("class Folder:\n    pass\n")
    assert classes_of(*ours, another)["Folder"] == ["folder.py", "another.py"]
