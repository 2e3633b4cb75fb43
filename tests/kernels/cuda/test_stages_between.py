"""Solves for heat and surfaces: what moves matter runs as kernels for GPUs, the rest on the CPU in between."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import Material, Particles, SurfaceTension
from mpm_nodes.solver.device.choice import chosen_device
from mpm_nodes.solver.fusion_report import explained
from mpm_nodes.solver.run import SubstepSolver
from tests.kernels.cuda.emulated import Emulated
from tests.kernels.cuda.traced import needs_compiler

sys.path += [str(Path(__file__).parents[2] / "solver"), str(Path(__file__).parents[2] / "physics")]
import heat_scenes

H = 0.05


def drop() -> Particles:
    """Return a cube of liquid that its tension rounds within some substeps."""
    axis = (np.arange(8) + 0.5) * 0.5 * H
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    liquid = Material("liquid", {"bulk_modulus": 1e4, "viscosity": 0.1}, 1000.0, "drop", surface_tension=SurfaceTension(20.0))
    return Particles({"position": x, "volume": np.full(len(x), (0.5 * H) ** 3)}, (liquid,), 0.5 * H)


def both_ways(folder, count: int, **scene) -> tuple[list[SubstepSolver], Emulated]:
    """Return a scene on the CPU and on the device, after some substeps."""
    device = Emulated(folder)
    runs = [SubstepSolver(gravity=(0.0, -9.81, 0.0), **scene, **way) for way in ({}, {"device": device})]
    for number in range(count):
        for run in runs:
            run.step(1e-3, keep=number == count - 1)
    return runs, device


def apart(runs: list[SubstepSolver], name: str) -> float:
    """Return the largest difference of an attribute, over its largest value."""
    here, there = (run.snapshot()[name].astype(float) for run in runs)
    assert np.abs(here).max() > 0.0
    return float(np.abs(here - there).max() / np.abs(here).max())


@needs_compiler
@pytest.mark.phenomena("heat")
def test_wax_melts_as_on_the_cpu(device_folder):
    """It turns into a liquid on the way, which is another loop's; heat gained and every phase are the same."""
    runs, device = both_ways(
        device_folder, 30, particles=heat_scenes.wax(), substeps="explicit_heat", colliders=[heat_scenes.plate()]
    )
    phase = [run.snapshot()["phase"] for run in runs]
    assert 0.02 < phase[0].mean() < 0.98 and np.array_equal(*phase)
    assert device.launches["particles"] > 4 * 30  # of solid and liquid, and for their properties
    for name, allowed in (("position", 1e-6), ("velocity", 1e-5), ("temperature", 1e-6), ("latent_heat_fraction", 1e-5)):
        assert apart(runs, name) <= allowed, name
    here, there = (run.step_context.report["heat"]["content"] for run in runs)
    assert there == pytest.approx(here, rel=1e-6)


@needs_compiler
@pytest.mark.phenomena("surface_tension")
def test_a_drop_rounds_as_on_the_cpu(device_folder):
    """Its surface pulls at corners by many times its weight."""
    runs, device = both_ways(device_folder, 12, particles=drop(), substeps="surface_tension", cell_size=H)
    fall = 9.81 * 12e-3
    assert np.abs(runs[0].snapshot()["velocity"][:, [0, 2]]).max() > fall and device.launches["particles"] > 12
    for name, allowed in (("position", 1e-7), ("velocity", 5e-6), ("volume_change", 5e-6)):
        assert apart(runs, name) <= allowed, name


@pytest.mark.phenomena("heat")
def test_auto_leaves_them_to_the_cpu():
    """Nobody asked for copies in each substep."""
    run = SubstepSolver(heat_scenes.wax(), "explicit_heat")
    device, why = chosen_device("auto", [run.program], [law.loops.law for law in run.particles.laws], np.float32, 216)
    assert device is None
    assert why == (
        "the solve runs on the CPU: its stages on the staggered grid always do; set device to cuda to run the others on a GPU"
    )


@pytest.mark.phenomena("heat")
def test_what_is_copied_for_them_is_told():
    text = explained("explicit_heat", "neo_hookean", device="cuda").partition("with device cuda")[2]
    assert "  rasterize_heat: on the CPU, since it has no loop over particles\n    copies from the GPU conductivity" in text
    assert "  rasterize + compute_stress + add_stress_forces + update_grid_velocity: on the GPU" in text
