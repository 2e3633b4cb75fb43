"""The first cook on a machine compiles its kernels, the next one loads them: the bits of a surface are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from tests.selftest.shot import digests


def still_life(folder: Path) -> Path:
    """Write the graph of a box of matter with a surface, which no solve moves."""
    graph = Graph(registry=registry.load(path="", entry_points=False), base=folder, start=1, end=1, cell_size=0.1)
    stuff = graph.add("material_neo_hookean", "stuff")
    body = graph.add("emit_box", "body", size=(0.3, 0.3, 0.3), jitter=0.5, material=stuff)
    skin = graph.add("surface_particles", "surface", particles=body["particles"])
    graph.add("write_cache", "cache", name="cache", mesh=skin["mesh"])
    return graph.save(folder / "shot.json")


@pytest.mark.slow  # compiles every kernel of a surface; the selftest's row "threads" compares the first cook with later ones
def test_a_cold_cache_of_kernels_gives_the_bits_of_a_warm_one(tmp_path):
    """Two cooks share an empty folder for kernels: every file of the second is that of the first."""
    pytest.importorskip("pxr")
    environment = {**os.environ, "MPM_NODES_CACHE": str(tmp_path / "kernels"), "MPM_NODES_COMPILE_HELPER": "0"}
    found = []
    for name in ("cold", "warm"):
        command = [sys.executable, "-P", "-m", "mpm_nodes.cli", "cook", str(still_life(tmp_path)), "--out", str(tmp_path / name)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        found.append({name: digest for name, digest in digests(tmp_path / name).items() if name.startswith("r001/cache")})
    assert found[0] == found[1] and any(name.endswith(".usdc") for name in found[0])
    assert any((tmp_path / "kernels").rglob("*.nb*")) or any((tmp_path / "kernels").iterdir())
