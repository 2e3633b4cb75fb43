"""The motion of a shot depends on neither its frames per second nor the number of its first frame."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.solver import auto_steps

CELL = 0.1
FIRST = {"continuum_foam", "explicit_apic", "implicit_apic", "melting", "surface_tension"}
"""One preset of each core; the slow tests move all."""
PRESETS = [pytest.param(name, marks=() if name in FIRST else pytest.mark.slow) for name in sorted(registries.default().presets)]
STIFF = {
    "material_neo_hookean": {"youngs_modulus": 4e5},
    "material_herschel_bulkley": {"bulk_modulus": 4e5, "shear_modulus": 1e5, "yield_stress": 1e3},
    "material_liquid": {"bulk_modulus": 4e5, "viscosity": 1.0},
}
SOFT = {"material_neo_hookean": {"youngs_modulus": 1e4}}
"""For the own steps of the projection: dt_max is its step then, a tick. In stiffer matter shear waves ask for shares of one that do
not end on it, and frames show by 0.03 to 0.06 cells."""
SECONDS = 0.125
"""Time at which positions are compared: three frames at 24 a second."""


@pytest.fixture(autouse=True)
def _the_last_candidate_is_the_cheapest(monkeypatch):
    """Presets that measure try every candidate, and take the last one, whatever the clock says: the first has a case of its own."""
    tried = auto_steps._cost

    def cost(solver, *arguments):
        dt = tried(solver, *arguments)[1]
        return 9.0 - solver.candidates.index * 8.0, dt

    monkeypatch.setattr(auto_steps, "_cost", cost)


def material_of(preset: str) -> str:
    """Return the matter that a preset is for."""
    if "foam" in preset:
        return "material_herschel_bulkley"
    return "material_liquid" if "surface" in preset else "material_neo_hookean"


def dressed(graph: Graph, preset: str) -> str:
    """Give the matter what the stages of a preset read, tension, a solute, heat; return the id of its material."""
    last = "matter"
    if "surface" in preset:
        graph.add("material_surface_tension", "surface", material=graph[last], tension=100.0)
        last = "surface"
    if preset in ("surface_tension_solute", "surface_tension_heat"):
        graph.add("material_surfactant", "soap", material=graph[last], tension=50.0, diffusivity=0.01)
        graph.add("set_attribute", "soaped", particles=graph["block"], attribute="concentration", value=0.5)
        graph.nodes["sim"].connect("sources", [graph["soaped"]])
        last = "soap"
    if "heat" in preset or "melting" in preset:
        graph.add("material_thermal", "warm", material=graph[last])
        last = "warm"
    graph.nodes["block"].connect("material", graph[last])
    return last


@functools.cache
def moved(
    preset: str, fps: float, start: int, dt: float | None = None, least: float = 0.0, seconds: float = SECONDS, soft: bool = False
) -> np.ndarray:
    """Return positions by id [m] of a block that is thrown on a slope and meets a keyed ball, with dt up to `dt` [s]."""
    material = material_of(preset)
    frames = round(seconds * fps)
    graph = shot(
        end=start + frames,
        start=start,
        start_frame=start,
        fps=fps,
        size=0.2,
        cell_size=CELL,
        centre=(0.0, 0.16, 0.0),
        velocity=(1.0, -1.0, 0.0),
        material=material,
        knobs=(SOFT if soft else STIFF)[material],
        colliders=[
            ("slope", "collide_plane", {"rotation": (0.0, 0.0, -10.0), "friction": 0.3}),
            ("ball", "collide_sphere", {"radius": 0.1}),
        ],
        substeps=preset,
        precision="double",
        **({} if dt is None else {"dt_max": dt, "dt_min": least}),
    )
    matter = dressed(graph, preset)
    for time, place in ((0.0, [0.5, 0.1, 0.0]), (SECONDS, [0.2, 0.1, 0.05])):
        graph.key("ball.centre", start + time * fps, place)
    stream = graph.add("emit_box", "nozzle", material=graph[matter], size=(0.1, 0.1, 0.1), centre=(-1.0, 1.0, 0.0))
    graph.add("emit_stream", "stream", template=stream, velocity=(0.0, -1.0, 0.0), start_frame=start + SECONDS * fps / 3)
    graph.nodes["sim"].connect("emitters", [graph["stream"]])
    particles = Evaluator(graph).value("sim.particles", start + frames)
    # identities of what came by the stream follow the order of birth, which is that of the layers
    order = np.lexsort((particles["id"],))
    return particles["position"][order]


ROUNDING = {"continuum_foam": 1e-5}
"""What rounding may grow to in the shot [cells], 1e-7 elsewhere: foam keeps 95 % of it (FLIP), and its tears are steps."""


def off(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest distance of particles in cells."""
    assert a.shape == b.shape
    return float(np.linalg.norm(a - b, axis=1).max() / CELL)


@pytest.mark.parametrize("preset", PRESETS)
def test_with_a_fixed_step_frames_do_not_show(preset):
    """dt_max and dt_min hold dt at a share of all ticks: 24, 96 and 8 frames a second, from 1 and from 1001, agree to rounding."""
    dt = SECONDS / (192 if "foam" in preset else 96)  # foam's own limit lies between the two
    first = moved(preset, 24.0, 1, dt, dt)
    others = ((96.0, 1), (24.0, 1001), (8.0, -5))
    for fps, start in others[:1] if preset.startswith("auto") else others:  # the rest is that of the candidate
        assert off(first, moved(preset, fps, start, dt, dt)) < ROUNDING.get(preset, 1e-7), (fps, start)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_number_of_the_first_frame_never_shows(preset):
    """dt as the solve chooses it: a shot from 1001 is the shot from 1, to rounding."""
    assert off(moved(preset, 24.0, 1), moved(preset, 24.0, 1001)) < ROUNDING.get(preset, 1e-7)


@pytest.mark.parametrize("preset", PRESETS)
def test_with_its_own_steps_the_rate_hardly_shows(preset):
    """dt as the solve chooses it: 24 and 96 frames a second agree to 1 % of a cell, since steps end on the same ticks."""
    soft = "incompressible" in preset or "melting" in preset
    assert off(moved(preset, 24.0, 1, soft=soft), moved(preset, 96.0, 1, soft=soft)) < 0.01


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic", "surface_tension"])
def test_thirty_frames_a_second_are_twenty_four_where_both_have_the_step(preset):
    """A dt_max of 1/960 s divides the ticks of 1/96 s and of 1/120 s: 24 and 30 frames agree to rounding after 1/6 s."""
    first, other = (moved(preset, fps, 1, 1.0 / 960.0, 0.0, 1.0 / 6.0) for fps in (24.0, 30.0))
    assert off(first, other) < 1e-7
