"""Sources of matter: boxes, spheres, meshes and level sets filled with particles, streams, and their union."""

from __future__ import annotations

from mpm_nodes.data import (
    A,
    Degrees,
    GraphSettings,
    Material,
    Metres,
    MetresPerSecond,
    Particles,
    RadiansPerSecond,
    Range,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare import node
from mpm_nodes.nodes.seeding import Placement, Seeding, fill_region

_Size = Range(min=0.0, exclusive_min=True, soft_max=10.0)
_Fraction = Range(min=0.0, max=1.0)


@node(category="Emit", label="Box Emitter", version=1)
def emit_box(
    settings: GraphSettings,
    material: Material,
    *,
    size: A[Vec3, Metres, _Size] = (1.0, 1.0, 1.0),
    centre: A[Vec3, Metres] = (0.0, 1.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: int = 0,
) -> Particles:
    """Fill a box with particles, eight a cell.

    Args:
        material: Material of the particles.
        size: Edge lengths.
        centre: Centre of the box.
        rotation: Turns about x, then y, then z.
        velocity: Initial velocity of the centre.
        angular_velocity: Initial spin about the centre.
        seeding: Lattice (8 per cell, stretched to fill the box evenly) or Poisson disc (least distance 0.42 cells).
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    from mpm_nodes.kernels.regions import box_region

    placement = Placement(centre, rotation, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed)
    return fill_region("emit_box", box_region(size), placement, settings, material)


@node(category="Emit", label="Sphere Emitter", version=1)
def emit_sphere(
    settings: GraphSettings,
    material: Material,
    *,
    radius: A[float, Metres, _Size] = 0.5,
    centre: A[Vec3, Metres] = (0.0, 1.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: int = 0,
) -> Particles:
    """Fill a ball with particles, eight a cell.

    Args:
        material: Material of the particles.
        radius: Radius of the ball.
        centre: Centre of the ball.
        velocity: Initial velocity of the centre.
        angular_velocity: Initial spin about the centre.
        seeding: Lattice (8 per cell, aligned with the grid) or Poisson disc (least distance 0.42 cells).
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    from mpm_nodes.kernels.regions import sphere_region

    still = (0.0, 0.0, 0.0)
    placement = Placement(centre, still, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed)
    return fill_region("emit_sphere", sphere_region(radius), placement, settings, material)
