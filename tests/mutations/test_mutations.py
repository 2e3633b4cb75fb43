"""The tests can fail: each planted defect is noticed by the test that is named for it.

Runs under the slow mark, since every defect compiles kernels of its own: `python -m pytest -m slow tests/mutations`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from defect import Defect
from defects_of_attachments import DEFECTS as OF_ATTACHMENTS
from defects_of_blender import DEFECTS as OF_BLENDER
from defects_of_contacts import DEFECTS as OF_CONTACTS
from defects_of_fields import DEFECTS as OF_FIELDS
from defects_of_kernels import DEFECTS as OF_KERNELS
from defects_of_nodes import DEFECTS as OF_NODES
from defects_of_pages import DEFECTS as OF_PAGES
from defects_of_plots import DEFECTS as OF_PLOTS
from defects_of_rigid_bodies import DEFECTS as OF_RIGID_BODIES
from defects_of_solver import DEFECTS as OF_SOLVER
from defects_of_the_editor import DEFECTS as OF_THE_EDITOR

DEFECTS = (
    *OF_KERNELS,
    *OF_CONTACTS,
    *OF_ATTACHMENTS,
    *OF_BLENDER,
    *OF_FIELDS,
    *OF_SOLVER,
    *OF_RIGID_BODIES,
    *OF_NODES,
    *OF_PAGES,
    *OF_PLOTS,
    *OF_THE_EDITOR,
)
ROOT = Path(__file__).resolve().parents[2]
COPIED = ("mpm_nodes", "usd_io", "samples", "tests", "docs", "hda_specs", "pyproject.toml", "README.md", "CHANGELOG.md")
FAILED = 1
"""Exit code of pytest when tests ran and some failed; others mean that nothing was found or collected."""


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_fits_the_source(defect: Defect):
    """Its text stands there once, is changed, and the test that must notice it exists."""
    assert (ROOT / defect.file).read_text().count(defect.old) == 1 and defect.old != defect.new
    file, _, name = defect.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text() if name else (ROOT / file).is_file()


def test_there_are_thirty_of_different_names():
    """Names are ids of tests."""
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_noticed(defect: Defect, tmp_path: Path):
    """A copy of the package with the defect in it fails the named test, in a process of its own."""
    for name in COPIED:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        elif place.exists():
            shutil.copy2(place, tmp_path / name)
    (tmp_path / "mpm_nodes_samples").symlink_to(tmp_path / "samples")
    file = tmp_path / defect.file
    file.write_text(file.read_text().replace(defect.old, defect.new))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",  # workers that are stopped by -x end with another exit code
        "-m",
        "",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'scratch'}",
        defect.test,
    ]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == FAILED, (
        f"{defect.name}: {defect.test} did not notice it\n{ended.stdout[-2000:]}{ended.stderr[-500:]}"
    )
