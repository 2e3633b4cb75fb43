"""The page's sources: its model of graphs keeps every file, and the bundle that is shipped is what they build."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from editor_page import WEB, node_needed

from mpm_nodes.hosts.spec import host_spec
from mpm_nodes.packaged_samples import samples_folder

BUNDLE = WEB.parent / "bundle"
ROOT = WEB.parents[2]
LARGEST = 1_200_000
"""Bytes of the script: a page over a slow tunnel takes seconds, not minutes."""
LARGEST_PLAYER = 650_000
"""Bytes of the script in every file that `mpm-nodes view` writes."""


def ran(command: list[str], folder: Path, **environ: str) -> None:
    """Run a command of Node; what it says stands in the failure."""
    done = subprocess.run(command, cwd=folder, env=os.environ | environ, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_every_packaged_graph_goes_through_the_page_without_loss(tmp_path):
    """Bytes that are not edited are kept; knobs, names, wires, copies and substeps: `model.test.ts` says what holds."""
    node_needed("esbuild")
    (tmp_path / "spec.json").write_text(json.dumps(host_spec()))
    graphs = f"{samples_folder()}:{ROOT / 'docs' / 'examples'}"
    ran(["npm", "test", "--silent"], WEB, MPM_SPEC=str(tmp_path / "spec.json"), MPM_GRAPHS=graphs)


def test_the_bundle_is_what_the_sources_build(tmp_path):
    """To the byte, from the locked packages; `npm run build` in the folder of the sources makes it new."""
    node_needed("vite", "typescript", "react", "three")
    copy = tmp_path / "web"
    shutil.copytree(WEB, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(WEB / "node_modules")
    ran(["npm", "run", "--silent", "build"], copy)
    assert sorted(path.name for path in (tmp_path / "bundle").iterdir()) == sorted(path.name for path in BUNDLE.iterdir())
    for built in (tmp_path / "bundle").iterdir():
        assert (BUNDLE / built.name).read_bytes() == built.read_bytes(), f"{built.name}: npm run build in {WEB}"


def test_the_bundle_is_small_and_names_its_licences():
    """One script, one style, one page, and the player; every package in them stands in LICENSES.txt, which the wheel carries."""
    assert sorted(path.name for path in BUNDLE.iterdir()) == ["LICENSES.txt", "editor.css", "editor.js", "index.html", "player.js"]
    assert (BUNDLE / "editor.js").stat().st_size < LARGEST and (BUNDLE / "player.js").stat().st_size < LARGEST_PLAYER
    lock = json.loads((WEB / "package-lock.json").read_text())["packages"]
    notices = (BUNDLE / "LICENSES.txt").read_text()
    for path, record in lock.items():
        if path and not record.get("dev") and "@types/" not in path:
            name = path.rpartition("node_modules/")[2]
            assert f"{name} {record['version']}\n" in notices
            assert record["license"] in ("MIT", "ISC", "BSD-3-Clause"), f"{name}: {record['license']}"
    assert "Permission is hereby granted" in notices


@pytest.mark.parametrize("word", ["https://", "http://"])
def test_nothing_in_the_page_is_loaded_from_elsewhere(word):
    """No font, script or style of another machine is named by the page or its style."""
    for name in ("index.html", "editor.css"):
        assert word not in (BUNDLE / name).read_text()


def test_the_lock_is_whole():
    """Each package that another one names is locked with its digest: a name that the registry lacks is anybody's to take."""
    lock = json.loads((WEB / "package-lock.json").read_text())["packages"]
    held = {path.rpartition("node_modules/")[2] for path in lock}
    for path, record in lock.items():
        named = {**record.get("dependencies", {}), **record.get("optionalDependencies", {})}
        assert sorted(set(named) - held) == [], path
        assert not path or record["integrity"].startswith("sha512-"), path
