"""Whole runs with a surface tension: bits on one and two threads and through a checkpoint, flames that sink, other laws."""

from __future__ import annotations

import dataclasses
import json

import numba
import numpy as np
import pytest
from solver_scenes import values

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Material, Particles, SurfaceTension, Thermal
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.physics.surface_tension.nodes.contact_angles import collider_contact_angle
from mpm_nodes.physics.surface_tension.problems.surface_tension import H, lattice
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import angular_momentum, centre_of_mass, column, momentum, momentum_scale
from mpm_nodes.verification.scenes import OPEN, SLIP, block, changed, walled

WATER = Material(
    "liquid", {"bulk_modulus": 100.0}, 1.0, "water", viscosity=0.02, surface_tension=SurfaceTension(1.0, 0.5, 290.0, 310.0)
)
CASES = [(preset, precision) for preset in ("surface_tension", "implicit_surface_tension") for precision in ("single", "double")]

needs_two = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")


def landing(preset: str, precision: str, threads: int) -> dict[str, bytes]:
    """Return the bytes of a drop with an uneven tension that lands on a plate with a contact angle, after 15 substeps."""
    numba.set_num_threads(threads)
    ball = lattice(3, (-3,) * 3, (3,) * 3, WATER)
    columns = {
        "position": ball["position"] + [0.013, 2.9 * H, 0.027],
        "velocity": np.full((len(ball), 3), [0.3, -1.0, 0.1]),
        "temperature": 300.0 + 40.0 * ball["position"][:, 0],
    }
    plate = Collider("plate", CollisionRule.SEPARATE, 0.2, PosedLevelSets(PLANE))
    run = SubstepSolver(
        Particles({**ball.attributes, **columns}, (WATER,), 0.5 * H),
        preset,
        cell_size=H,
        colliders=[collider_contact_angle(plate, FrameContext(1), angle=60.0)],
        dtype=np.float32 if precision == "single" else np.float64,
    )
    for _ in range(15):
        run.step(time_left=0.1)
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    assert run.step_context.report["surface"]["samples"] > 500
    return values(run.snapshot())


@needs_two
@pytest.mark.parametrize(("preset", "precision"), CASES)
def test_one_and_two_threads_and_two_runs_give_the_same_bits(preset, precision):
    """Samples, their owners, shares and forces hang on no order: every attribute is equal bit for bit."""
    one, two, again = landing(preset, precision, 1), landing(preset, precision, 2), landing(preset, precision, 2)
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name] or two[name] != again[name]] == []


@pytest.mark.parametrize(
    ("preset", "precision"), [pytest.param(*case, marks=() if case[1] == "single" else pytest.mark.slow) for case in CASES]
)
def test_a_resumed_cook_has_the_same_bytes(preset, precision, tmp_path):
    """A frame whose checkpoint is lost comes out as it was, every file of the cook, while a drop spreads on a plate."""
    nodes = {
        "liquid": {"type": "material_liquid", "knobs": {"density": 1.0, "bulk_modulus": 100.0, "viscosity": 0.02}},
        "water": {"type": "material_surface_tension", "knobs": {"tension": 1.0}, "inputs": {"material": "liquid"}},
        "drop": {
            "type": "emit_sphere",
            "knobs": {"radius": 0.2, "centre": [0.0, 0.19, 0.0], "velocity": [0.3, -1.0, 0.0], "jitter": 0.3},
            "inputs": {"material": "water"},
        },
        "plate": {"type": "collide_plane"},
        "wetted": {"type": "collider_contact_angle", "knobs": {"angle": 60.0}, "inputs": {"collider": "plate"}},
        "sim": {
            "type": "solve",
            "knobs": {"substeps": preset, "precision": precision, "time_scale": 0.5},
            "inputs": {"sources": ["drop"], "colliders": ["wetted"]},
        },
        "cache": {"type": "write_cache", "inputs": {"particles": "sim.particles"}},
    }
    settings = {"cell_size": 0.1, "fps": 24, "start": 1, "end": 4}
    file = tmp_path / "shot.json"
    file.write_text(json.dumps({"format": "mpm_nodes.graph", "version": 1, "settings": settings, "nodes": nodes}))
    told: list[dict] = []
    folder = execute(load_graph(file), out=tmp_path / "out", on_event=told.append).revision_folder
    assert any(event["event"] == "surface" and event["samples"] > 100 for event in told)
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (lost,) = folder.glob("checkpoints/0004*")
    lost.write_bytes(b"lost")
    assert execute(load_graph(file), out=tmp_path / "out", resume=True).cooked == (3, 4)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == whole


def test_a_flame_sinks_with_the_wax_that_it_melts():
    """The top falls by more than a cell; what the flame brings stays within half a cell of it, and ends above half of its start.

    A flame that stood where it was would bring exp(-(0.25 / 0.2)^2) / exp(-(0.1 / 0.2)^2) = 0.27 of it after a fall of 1.5 cells.
    """
    melt = Material("liquid", {"bulk_modulus": 200.0}, 1.0, "melt", viscosity=0.05, surface_tension=SurfaceTension(0.02))
    thermal = Thermal(1.0, 0.3, 1.0, 0.3, latent_heat=5.0, freezing_temperature=310.0, melt=melt)
    wax = Material("neo_hookean", {"youngs_modulus": 300.0}, 1.0, "wax", thermal=thermal, surface_tension=SurfaceTension(0.02))
    candle = block(wax, (-0.2, 0.0, -0.2), (0.2, 0.4, 0.2), H)
    candle = changed(candle, temperature=np.full(len(candle), 300.0))
    flame = {"flames": ("0 0",), "flame_flux": 300.0, "flame_radius": 0.2, "flame_height": 0.1}
    walls = walled((-9.0, 0.0, -9.0), (9.0, 9.0, 9.0), OPEN, OPEN, SLIP, OPEN, OPEN, OPEN)
    run = SubstepSolver(
        candle, {"preset": "surface_tension_heat", "set": flame}, cell_size=H, dtype=np.float64, walls=walls, fuse=False
    )
    rows = []
    while run.time < 0.4:
        run.step()
        x, brought = run.particles.unpack("position"), run.particles.unpack("surface_flux") * run.particles.unpack("surface_area")
        near = x[:, 0] ** 2 + x[:, 2] ** 2 < 0.2**2
        rows.append((x[near, 1].max(), brought @ x[:, 1] / brought.sum(), brought.sum()))
    top, source, power = np.array(rows).T
    assert top[-1] < top[0] - 1.5 * H and (run.particles.unpack("phase") == 1).any()
    assert np.abs(source - top).max() < 0.5 * H
    assert power[-1] > 0.5 * power[0]


FOAM = Material(
    "herschel_bulkley", {"bulk_modulus": 200.0, "shear_modulus": 30.0, "yield_stress": 1.0, "consistency": 1.0}, 1.0, "foam"
)
POLYMER = Material("oldroyd_b", {"shear_modulus": 20.0, "lame_parameter": 200.0, "relaxation_time": 0.1}, 1.0, "polymer")


@pytest.mark.parametrize("matter", [FOAM, POLYMER], ids=["foam", "polymer"])
def test_other_laws_with_a_tension_keep_their_momentum(matter):
    """A box of foam or of a viscoelastic fluid that drifts and spins is pulled together; P, L and the centre stay to 1e-10."""
    tense = dataclasses.replace(matter, surface_tension=SurfaceTension(2.0))
    ends = []
    for given in (tense, matter):
        box = block(given, (-0.3, -0.2, -0.1), (0.3, 0.2, 0.1), H)
        x = box["position"]
        velocity = np.stack([0.3 - 0.4 * x[:, 1], 0.1 + 0.4 * x[:, 0], 0.2 + 0.0 * x[:, 0]], axis=1)
        run = SubstepSolver(
            changed(box, velocity=velocity), "surface_tension", cell_size=H, dtype=np.float64, origin=(0.0,) * 3, gravity=(0.0,) * 3
        )
        run.step()
        before, spin, centre, start = momentum(run), angular_momentum(run), centre_of_mass(run), run.time
        for _ in range(60):
            run.step()
        scale = momentum_scale(run)
        assert np.abs(momentum(run) - before).max() < 1e-10 * scale
        assert np.abs(angular_momentum(run) - spin).max() < 1e-10 * 0.3 * scale
        drift = before * (run.time - start) / column(run, "mass").sum()
        assert np.abs(centre_of_mass(run) - centre - drift).max() < 1e-10 * 0.3
        ends.append(float(np.linalg.norm(column(run, "position") - centre_of_mass(run), axis=1).max()))
    assert run.stores["samples"].count == 0 and ends[0] < ends[1]
