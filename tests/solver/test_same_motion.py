"""The motion of a shot depends on neither its frames per second nor the number of its first frame."""

from __future__ import annotations

import json

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes.graph import registry as registries
from mpm_nodes.graph.evaluator import Evaluator

CELL = 0.1
PRESETS = sorted(name for name in registries.default().presets if not name.startswith("auto"))
"""All but those that measure which of the others is faster: that choice may differ from run to run."""
STIFF = {
    "material_neo_hookean": {"youngs_modulus": 4e5},
    "material_herschel_bulkley": {"bulk_modulus": 4e5, "shear_modulus": 1e5, "yield_stress": 1e3},
}
SECONDS = 0.125
"""Time at which positions are compared: three frames at 24 a second."""


def moved(preset: str, fps: float, start: int, **solve) -> np.ndarray:
    """Return positions by id after 1/8 s of a block that is thrown on a slope and meets a keyed ball on its way, [m]."""
    material = "material_herschel_bulkley" if "foam" in preset else "material_neo_hookean"
    frames = round(SECONDS * fps)
    set_ = {"resampling_interval": 100000} if "resampling_interval" in parameters(preset) else {}
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
        knobs=STIFF[material],
        colliders=[
            ("slope", "collide_plane", {"rotation": (0.0, 0.0, -10.0), "friction": 0.3}),
            ("ball", "collide_sphere", {"radius": 0.1}),
        ],
        substeps={"preset": preset, "set": set_},
        precision="double",
        **solve,
    )
    matter = "matter"
    if "heat" in preset or preset == "melting":
        graph.add("material_thermal", "warm", material=graph["matter"])
        graph.nodes["block"].connect("material", graph["warm"])
        matter = "warm"
    for seconds, place in ((0.0, [0.5, 0.1, 0.0]), (SECONDS, [0.2, 0.1, 0.05])):
        graph.key("ball.centre", start + seconds * fps, place)
    stream = graph.add("emit_box", "nozzle", material=graph[matter], size=(0.1, 0.1, 0.1), centre=(-1.0, 1.0, 0.0))
    graph.add("emit_stream", "stream", template=stream, velocity=(0.0, -1.0, 0.0), start_frame=start + SECONDS * fps / 3)
    graph.nodes["sim"].connect("emitters", [graph["stream"]])
    particles = Evaluator(graph).value("sim.particles", start + frames)
    # identities of what came by the stream follow the order of birth, which is that of the layers
    order = np.lexsort((particles["id"],))
    return particles["position"][order]


def parameters(preset: str) -> list[str]:
    return list(json.loads(registries.default().presets[preset].read_text()).get("parameters", {}))


ROUNDING = {"continuum_foam": 1e-5}
"""What rounding may grow to in the shot [cells], 1e-7 elsewhere: foam keeps 95 % of it (FLIP), and its tears are steps."""


def off(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest distance of particles in cells."""
    assert a.shape == b.shape
    return float(np.linalg.norm(a - b, axis=1).max() / CELL)


@pytest.mark.parametrize("preset", PRESETS)
def test_with_a_fixed_step_frames_do_not_show(preset):
    """dt_max and dt_min hold dt: 24, 96 and 8 frames a second, from 1 and from 1001, give the same positions to rounding."""
    held = {"dt_max": SECONDS / 240, "dt_min": SECONDS / 240}
    first = moved(preset, 24.0, 1, **held)
    for fps, start in ((96.0, 1), (24.0, 1001), (8.0, -5)):
        assert off(first, moved(preset, fps, start, **held)) < ROUNDING.get(preset, 1e-7), (fps, start)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_number_of_the_first_frame_never_shows(preset):
    """dt as the solve chooses it: a shot from 1001 is the shot from 1, to rounding."""
    assert off(moved(preset, 24.0, 1), moved(preset, 24.0, 1001)) < ROUNDING.get(preset, 1e-7)


@pytest.mark.parametrize("preset", PRESETS)
def test_with_its_own_steps_the_rate_hardly_shows(preset):
    """dt as the solve chooses it: 24 and 96 frames a second agree to 1 % of a cell, since steps end on the same ticks."""
    assert off(moved(preset, 24.0, 1), moved(preset, 96.0, 1)) < 0.01
