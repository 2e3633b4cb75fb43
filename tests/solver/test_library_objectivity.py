"""Every material of the library is objective, in explicit and implicit substeps: scenes that are turned, and balls that spin.

Speeds, gravity and steps follow from a material's wave speed and its strength, so that pastes and rubber are strained alike.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpm_nodes.data import CollisionRule, FrameContext, Material, Particles
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.nodes.collide import collide_plane
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.implicit import SHARP
from mpm_nodes.verification.quantities import angular_momentum, momentum, momentum_scale
from mpm_nodes.verification.scenes import ball, block, changed

SUBSTEPS = {"explicit": "explicit_apic", "implicit": {"preset": "implicit_apic", "set": SHARP}}
FOAMS = sorted(name for name, entry in LIBRARY.items() if entry.law == "herschel_bulkley")
HOLDING = sorted(name for name, entry in LIBRARY.items() if entry.law != "liquid" and entry.params.get("cohesion", 1.0) > 0.0)
"""What holds a shape; liquids and dry grains spread as they spin."""
CELL = 0.1


def waves(matter: Material) -> float:
    """Return the speed of sound at rest [m/s]."""
    return float(call_law(matter.law, "wave_speed", params=dict(matter.params), density=matter.density)[0])


def in_order(solver: SubstepSolver, name: str) -> np.ndarray:
    """Return an attribute in order of id."""
    return solver.particles.unpack(name)[np.argsort(solver.particles.unpack("id").ravel())]


# ---------------------------------------------------------------- turned scenes
def landed(matter: Material, substeps: object, degrees: tuple[float, float, float], step: float) -> np.ndarray:
    """Return positions in cells, turned back, after a spinning block has hit the ground at a tenth of its speed of sound.

    Args:
        matter: What falls.
        substeps: Preset.
        degrees: How the scene is turned.
        step: Length of the twenty substeps, as a fraction of a wave's way through a cell.
    """
    turn, wave = rotation_matrix(degrees), waves(matter)
    start = block(matter, (-CELL, 0.0, -CELL), (CELL, 2.0 * CELL, CELL), CELL)
    x, spin = start["position"], 0.03 * wave / CELL * np.array([[0.0, -3.0, 1.0], [3.0, 0.0, -2.0], [-1.0, 2.0, 0.0]])
    velocity = x @ spin.T + wave * np.array([0.05, -0.1, 0.02])
    start = changed(start, position=x @ turn.T, velocity=velocity @ turn.T)
    down = turn @ np.array([0.0, -1.0, 0.0])
    ground = collide_plane(FrameContext(1), rotation=degrees, rule=CollisionRule.SEPARATE, friction=0.3)
    # the nodes turn with the scene: they lie at whole cells from the origin
    options = {"colliders": [ground], "gravity": tuple(0.01 * wave**2 / CELL * down), "origin": (0.0, 0.0, 0.0)}
    solver = SubstepSolver(start, substeps, cell_size=CELL, dtype=np.float64, **options)
    for _ in range(20):
        solver.step(step * CELL / (1.3 * wave))
    return in_order(solver, "position") @ turn / CELL


def largest_difference(matter: Material, substeps: object, step: float) -> float:
    """Return how far quarter turns about x and z leave the scene, in cells."""
    straight = landed(matter, substeps, (0.0, 0.0, 0.0), step)
    assert straight[:, 1].min() > 0.0  # the ground holds it: in free fall it would lie below
    turned = [landed(matter, substeps, degrees, step) for degrees in ((90.0, 0.0, 0.0), (0.0, 0.0, 90.0))]
    return max(float(np.abs(each - straight).max()) for each in turned)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LIBRARY))
@pytest.mark.parametrize(("substeps", "step", "bar"), [("explicit", 0.3, 1e-7), ("implicit", 1.5, 1e-6)])
def test_a_turned_scene_gives_the_turned_result(name, substeps, step, bar):
    """Rounding where substeps are sums; where they iterate, what solves to 1e-11 leave after twenty of them."""
    assert largest_difference(named_material(name), SUBSTEPS[substeps], step) < bar


@pytest.mark.slow
@pytest.mark.parametrize("name", FOAMS)
def test_a_turned_foam_gives_the_turned_result(name):
    """With tears, recovery and resampling; FLIP keeps 95 % of its rounding."""
    assert largest_difference(named_material(name), "continuum_foam", 0.3) < 1e-5


# ---------------------------------------------------------------- spinning balls
@dataclasses.dataclass(frozen=True)
class Spin:
    """A ball at rest in shape that begins to spin about y, slowly enough to hold its shape.

    Attributes:
        start: Particles.
        cell: Cell size [m]; where matter relaxes the ball is so small that a radian takes its relaxation time.
        rate: [rad/s].
        wave: Speed of sound [m/s].
    """

    start: Particles
    cell: float
    rate: float
    wave: float


def spinning(matter: Material, radius: float = 3.0) -> Spin:
    """Return the scene: centrifugal stress of a thousandth of the shear modulus, at most a tenth of yield stress or cohesion.

    Args:
        matter: What spins.
        radius: Cells.
    """
    params, wave = matter.params, waves(matter)
    if "youngs_modulus" in params:
        modulus = params["youngs_modulus"] / (2.0 + 2.0 * params["poisson_ratio"])
    else:
        modulus = params.get("shear_modulus", 1e-2 * matter.density * wave**2)  # liquids have none
    stress = min(1e-3 * modulus, 0.1 * params.get("yield_stress", np.inf), 0.1 * (params.get("cohesion") or np.inf))
    speed = np.sqrt(stress / matter.density)
    cell = min(CELL, speed * params.get("relaxation_time", np.inf) / radius)
    rate = speed / (radius * cell)
    L = rate * np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    rest = ball(matter, (0.0, 0.0, 0.0), radius * cell, cell)
    start = changed(rest, velocity=rest["position"] @ L.T, affine=np.broadcast_to(L, (len(rest), 3, 3)))
    return Spin(start, cell, rate, wave)


def shape(positions: np.ndarray) -> float:
    """Return how wide matter lies across y, over its height along y."""
    x, y, z = positions.std(axis=0)
    return float(np.hypot(x, z) / y)


def spun(scene: Spin, substeps: object, dt: float | None) -> tuple[float, float, float]:
    """Return what a radian changes of momentum, of angular momentum (both relative) and of the shape.

    Args:
        scene: The ball.
        substeps: Preset.
        dt: Length of substeps [s]; None lets the preset choose.
    """
    options = {"cell_size": scene.cell, "gravity": (0.0, 0.0, 0.0), "dtype": np.float64, "origin": (0.0, 0.0, 0.0)}
    solver = SubstepSolver(scene.start, substeps, **options)
    before, scale, was = angular_momentum(solver), momentum_scale(solver), momentum(solver)
    solver.advance(1.0 / scene.rate, dt)
    turned = np.abs(angular_momentum(solver) - before).max() / np.abs(before).max()
    moved = np.abs(momentum(solver) - was).max() / scale
    return moved, turned, shape(in_order(solver, "position")) / shape(scene.start["position"]) - 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LIBRARY))
def test_a_ball_that_spins_in_explicit_substeps(name):
    """Momentum and angular momentum to rounding, the shape to half a percent (the strain of the spin is a thousandth)."""
    moved, turned, flattened = spun(spinning(named_material(name)), SUBSTEPS["explicit"], None)
    assert moved < 1e-10 and turned < 1e-10
    assert name not in HOLDING or abs(flattened) < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LIBRARY))
def test_a_ball_that_spins_in_implicit_substeps(name):
    """Momentum to the solve's tolerance; backward Euler loses (rate dt)^2 of the angular momentum in each of a hundred substeps."""
    scene = spinning(named_material(name))
    moved, turned, flattened = spun(scene, SUBSTEPS["implicit"], 0.01 / scene.rate)
    assert moved < 1e-8 and turned < 2.0 * 100 * 0.01**2
    assert name not in HOLDING or abs(flattened) < 5e-3
