"""What `nodes --explain-fusion` says of a GPU is what happens: where stages run, why, and what is copied."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from mpm_nodes.cli import main
from mpm_nodes.data import A, Particles, Reads, Stage, Writes
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare import stage
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.plan.substeps import resolve
from mpm_nodes.solver.fusion_report import explained
from tests.kernels.cuda.traced import needs_compiler

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "solver")]
import fusion_scenes as scenes
from emulated import Emulated


@stage(label="Slow Down")
def slow_down(
    particles: A[Particles, Reads("affine", "velocity"), Writes("velocity")],
) -> Stage["particles"]:
    """Damp the velocity of what turns."""
    turns = abs(particles.unpack("affine")[:, 0, 1:2])
    particles.pack("velocity", particles.unpack("velocity") / (1.0 + 1e-3 * turns))


ON_NODES = ("follow_density", "collide_grid")
"""Stages with kernels of their own between the two loops."""


def with_slow_down(after):
    """explicit_apic with a stage of the user's that runs on the CPU, behind another."""
    shared = registries.default()
    registry = Registry([*shared, slow_down.declaration], shared.presets)
    edits = [{"insert": "slow", "after": after, "type": "slow_down"}]
    return resolve({"preset": "explicit_apic", "edits": edits}, registry), registry


def told(text: str, name: str, way: str) -> tuple[list[str], int]:
    """Return the columns that a report says a stage or a loop copies, and their bytes a particle."""
    of = re.search(rf"^  {re.escape(name)}: on the (?:.*)\n((?:    .*\n?)*)", text, re.MULTILINE)
    names, size = re.search(rf"copies {way} the GPU ([^(\n]*) \((\d+) bytes a particle\)", of[1]).groups()
    return names.split(", "), int(size)


@needs_compiler
@pytest.mark.parametrize(
    "loops",
    [
        [scenes.UPDATED, *ON_NODES, "gather", scenes.DEFORMED],
        [scenes.UPDATED, *ON_NODES, "gather+update_deformation", "apply_plasticity+collide_particles+move_particles"],
    ],
)
def test_copies_are_what_the_report_says(device_folder, loops):
    """Of a user's stage between loops: the columns that it declares, once down, and what it writes up again.

    Also where it parts the gather from all that reads what it took: that has a kernel of its own then.
    """
    substeps, registry = with_slow_down(loops[-2].rpartition("+")[2])
    text = explained(substeps, device="cuda")
    assert "slow: on the CPU, since it has no loop over particles\n" in text
    forces, *names = re.findall(r"^  ([\w +]+): on the GPU$", text, re.MULTILINE)
    assert forces == "apply_forces" and names == [loop.replace("+", " + ") for loop in loops]
    run = scenes.solver(("neo_hookean",), substeps, registry=registry, device=Emulated(device_folder))
    for _ in range(3):
        before = list(run.residency.moved)
        run.step(scenes.DT, keep=False)
    up, down = (after - past for after, past in zip(run.residency.moved, before, strict=True))
    assert told(text, "slow", "from") == (["affine", "velocity"], 48)
    assert told(text, names[-1], "to") == (["velocity"], 12)
    size = {name: run.particles.kept(name).nbytes for name in ("affine", "velocity")}
    assert (down, up) == (sum(size.values()), size["velocity"])
    assert 0 <= sum(size.values()) - 48 * run.particles.stride < 1024, "arrays end with room for a group of lanes"


def test_stages_on_the_grid_are_told_with_bytes_a_node():
    text = explained("explicit_apic", device="auto")
    assert "with device auto, for the law neo_hookean; what is copied is the most that there can be:" in text
    assert re.search(r"collide_grid: on the GPU\n    but for bodies that move by .* these run on the CPU, with grid.momentum", text)
    assert re.search(r"collide_particles runs on the GPU in between, but for bodies .* on the CPU, with mass, position, vel", text)
    text = explained("separate_bodies", device="auto")
    assert re.search(
        r"collide_bodies: on the CPU.*\n    copies from the GPU .*, grid\.momentum, grid\.velocity \(32 bytes a node\)", text
    )
    assert re.search(
        r"apply_forces: on the GPU\n    but for noise, .* these run on the CPU, with mass, position, velocity, volume \(32 bytes",
        explained("explicit_apic", device="auto"),
    )
    assert "on the GPU" not in explained("explicit_apic")


@pytest.mark.phenomena("foam")
def test_loops_that_branch_by_knobs_run_there():
    """Of foam all loops, also where momentum stays apart from forces and the grid has a stage by itself."""
    text = explained("continuum_foam", "herschel_bulkley", device="cuda").partition("with device")[2]
    there = re.findall(r"^  ([\w +]+): on the GPU$", text, re.MULTILINE)
    names = ["apply_forces", "rasterize", "update_grid_velocity", "collide_grid", "gather"]
    assert [each.partition(" ")[0] for each in there] == names
    assert "limit_deformation" in there[-1]


@pytest.mark.parametrize(("preset", "words"), [("implicit_apic", "they are implicit"), ("auto", "they are implicit")])
def test_substeps_that_are_refused_say_why(preset, words):
    text = explained(preset, device="cuda")
    assert f"with device cuda: these substeps do not run on a GPU yet: {words}" in text and ": on the GPU" not in text


def test_the_command_takes_the_device_and_defaults_of_the_graph(tmp_path, capsys):
    """A solve that leaves its substeps at the default has a substep graph all the same."""
    graph = {
        "format": "mpm_nodes.graph",
        "version": 1,
        "settings": {"cell_size": 0.1},
        "nodes": {"block": {"type": "emit_box"}, "fall": {"type": "solve", "inputs": {"sources": ["block"]}}},
    }
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph))
    assert main(["nodes", "--explain-fusion", str(path)]) == 0
    alone = capsys.readouterr().out
    assert alone.startswith("fall.substeps: explicit_apic") and "on the GPU" not in alone
    assert main(["nodes", "--explain-fusion", str(path), "--device", "cuda"]) == 0
    assert "move_particles: on the GPU" in capsys.readouterr().out
