"""A body that runs into soft matter at several times its waves' speed: nothing is thrown far, and dt does not collapse."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.kernels.algebra import mat3

MATTER = {
    "material_neo_hookean": {"youngs_modulus": 1e5, "poisson_ratio": 0.3},
    "material_fixed_corotated": {"youngs_modulus": 1e5, "poisson_ratio": 0.3},
    "material_liquid": {"bulk_modulus": 1e5},
    "material_oldroyd_b": {},
    "material_snow": {},
}
SHAPES = {"collide_box": {"size": (0.2, 0.6, 0.6)}, "collide_sphere": {"radius": 0.15}, "collide_capsule": {"length": 0.3}}
CELL, RADIUS, START = 0.03, 0.15, -0.31
QUICK = [("material_neo_hookean", "collide_box", 60.0, 1440.0), ("material_neo_hookean", "collide_sphere", 150.0, 240.0)]
PACES = ((60.0, 24.0), (60.0, 1440.0), (120.0, 1440.0), (150.0, 240.0))
ALL = [(law, shape, *pace) for law in MATTER for shape in SHAPES for pace in PACES]


def hit(law: str, shape: str, speed: float, fps: float) -> tuple[float, float]:
    """Hit a ball in explicit substeps.

    Returns:
        Its largest speed over the body's, and the shortest mean dt of a frame over the time in which the body crosses a cell.
    """
    frames = max(2, round(0.75 / speed * fps))
    graph = Graph(cell_size=CELL, fps=fps, start=1, end=frames + 1)
    ball = graph.add("emit_sphere", "ball", material=graph.add(law, "matter", **MATTER[law]), radius=RADIUS, centre=(0.0, 0.0, 0.0))
    path = {"keys": [[frame, [START + speed * (frame - 1) / fps, 0.0, 0.0], "linear"] for frame in (1, frames + 2)]}
    body = graph.add(shape, "body", **SHAPES[shape])
    graph.nodes["body"].knobs["centre"] = path
    graph.add("solve", "sim", sources=[ball], colliders=[body], substeps="explicit_apic", gravity=(0.0, 0.0, 0.0))
    evaluator = Evaluator(graph)
    fastest, shortest, done = 0.0, np.inf, 0
    for frame in range(1, frames + 2):
        particles = evaluator.value("sim.particles", frame)
        fastest = max(fastest, float(np.linalg.norm(particles["velocity"], axis=1).max()))
        substeps_done = evaluator.states(frame)["sim"].solver.substeps_done
        shortest = min(shortest, 1.0 / fps / max(substeps_done - done, 1))
        done = substeps_done
    return fastest / speed, shortest / (CELL / speed)


@pytest.mark.parametrize(("law", "shape", "speed", "fps"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in ALL)])
def test_nothing_is_thrown(law, shape, speed, fps):
    """Nothing is faster than twice the body, and substeps are longer than a fiftieth of the body's way through a cell."""
    ratio, share = hit(law, shape, speed, fps)
    assert ratio < 2.0 and share > 0.02


def advanced(F: np.ndarray, A: np.ndarray) -> np.ndarray:
    return np.array(mat3.advance_deformation(tuple(F.ravel()), tuple(np.asarray(A, float).ravel()))).reshape(3, 3)


def test_packed_matter_is_packed_no_further():
    """Below a tenth of its volume F stays until it grows; turning and shearing go on, and elsewhere every step is taken."""
    F = np.diag((0.12, 1.0, 1.0))
    for A, taken in (((-0.1, 0.0, 0.0), True), ((-0.2, 0.0, 0.0), False), ((-0.9, 0.5, 0.5), False), ((0.3, 0.0, 0.0), True)):
        assert np.array_equal(advanced(F, np.diag(A)), (np.eye(3) + np.diag(A)) @ F if taken else F)
    packed = np.diag((0.05, 1.0, 1.0))
    spin = np.array([[0.0, -0.1, 0.0], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for A in (spin, np.diag((0.01, 0.0, 0.0))):
        assert np.array_equal(advanced(packed, A), (np.eye(3) + A) @ packed)
    assert np.array_equal(advanced(packed, np.diag((-0.01, 0.0, 0.0))), packed)
    assert np.isnan(advanced(np.full((3, 3), np.nan), spin)).all()


def test_packed_matter_gives_back_what_it_has_stored():
    """A stretched particle that pulls itself together comes to rest though it is packed: a stress that stays never lets it."""
    F, velocity, dt = np.diag((0.01, 1.5, 3.0)), np.zeros(3), 0.02
    fastest = 0.0
    for _ in range(2000):  # a lone particle: its affine velocity is driven by its own stress, here with a little drag
        stretches = np.linalg.norm(F, axis=1)
        velocity = 0.99 * (velocity - dt * (stretches**2 - 1.0 + 1.5 * (np.prod(stretches) - 1.0) * np.prod(stretches)))
        F = advanced(F, np.diag(np.clip(dt * velocity, -0.5, 0.5)))
        fastest = max(fastest, float(np.abs(velocity).max()))
    assert fastest < 20.0 and np.abs(np.diag(F) - 1.0).max() < 0.2
