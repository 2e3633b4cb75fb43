"""Forces: what they give to matter, and to nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import BodyForce, GraphSettings, Particles, SpatialField
from mpm_nodes.graph.declare import registry
from mpm_nodes.nodes.fields import FieldShape, NoiseKind, constant, field_noise, field_shape
from mpm_nodes.nodes.fields_of_curves import CurveOutput, line_field
from mpm_nodes.nodes.forces import force_acceleration, force_air, force_attraction, force_vortex, force_wind
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column, kinetic_energy, momentum
from mpm_nodes.verification.scenes import ball, block, material

PRESETS = {
    "explicit_apic": "explicit_apic",
    "implicit_apic": {"preset": "implicit_apic", "set": {"tolerance": 1e-13, "minimise_energy.krylov_tolerance": 1e-6}},
    "incompressible": "incompressible",
}
CELL, GRAVITY = 0.1, 9.81
SLANTING, PLATE = "impulse of a slanting wind", "acceleration of a plate, of a cube's"
ASKEW = "impulse on a turned plate askew"


def pushed(
    forces: Sequence[BodyForce], substeps: Any = "explicit_apic", gravity: float = 0.0, dt_max: float = 0.01
) -> SubstepSolver:
    """Return a jelly cube of four cells around the origin, at rest, with forces."""
    start = block(material("neo_hookean", youngs_modulus=1e4), (-2 * CELL,) * 3, (2 * CELL,) * 3, CELL)
    options = {"cell_size": CELL, "gravity": (0.0, -gravity, 0.0), "dtype": np.float64, "dt_max": dt_max}
    run = SubstepSolver(start, substeps, **options)
    run.step_context.forces = tuple(forces)
    return run


def told(run: SubstepSolver, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """Advance; return the impulse of each force [N s], shape (n, 3), and its work [J], shape (n,)."""
    run.advance(duration)
    told = run.step_context.report["forces"]
    return np.array(told["impulse"]).reshape(-1, 3), np.array(told["work"])


class ImpulseAndWork(VerificationProblem):
    """Matter has the momentum that forces and gravity gave it, and forces tell it; a drag draws it along as fast as it should.

    Scene: a jelly cube of 4^3 cells in free space for 0.2 s in steps of 1 ms: accelerated at (3, 1, 0) m/s^2, in half of it, in
        wind of 2 m/s along z with a drag of 3 /s, linear and quadratic (3 /m), and falling through still air of the linear one.
    Exact: m a t, and half of it; told impulses are the change of momentum. Along the wind m u (1 - exp(-k t)) and
        m u (1 - 1 / (1 + k u t)). Falling: g / k (1 - exp(-k t)), with kicks and drag in turns, which err by k dt / 2 of it.
    Tolerance: 1e-12 of m a t, 1e-9 where grid solves lie between (implicit, projected); the fall k dt.
    """

    name = "impulse_and_work"
    source = "textbook (momentum)"

    def findings(self) -> Iterator[Finding]:
        """Push it in three kinds of substeps."""
        time, dt, wind, rate = 0.2, 1e-3, 2.0, 3.0
        acceleration = np.array([3.0, 1.0, 0.0])
        half = field_shape(shape=FieldShape.HALF_SPACE, centre=(0.0, 1e-6, 0.0))
        for preset, substeps in PRESETS.items():
            if preset not in registry.default().presets:
                continue
            close = 1e-12 if preset == "explicit_apic" else 1e-9
            run = pushed([force_acceleration(acceleration=(3.0, 1.0, 0.0))], substeps, dt_max=dt)
            mass = column(run, "mass").sum()
            scale = mass * np.linalg.norm(acceleration) * time
            impulse, work = told(run, time)
            error = np.abs(momentum(run) - mass * time * acceleration).max() / scale
            yield Finding(0.0, float(error), close, f"{preset}: momentum, of m a t")
            yield Finding(0.0, float(np.abs(impulse[0] - momentum(run)).max() / scale), close, f"{preset}: told impulse")
            yield Finding.relative(1.0, float(work[0] / kinetic_energy(run)), 1e-9, f"{preset}: told work, of the kinetic energy")
            run = pushed([force_acceleration(mask=half, acceleration=(3.0, 1.0, 0.0))], substeps, dt_max=dt)
            run.step(dt)
            error = np.abs(momentum(run) - 0.5 * mass * dt * acceleration).max() / (scale * dt / time)
            yield Finding(0.0, float(error), close, f"{preset}: momentum of a half, of m a dt")
            for quadratic, exact in ((False, 1.0 - math.exp(-rate * time)), (True, 1.0 - 1.0 / (1.0 + rate * wind * time))):
                air = force_wind(velocity=(0.0, 0.0, wind), drag=rate, quadratic=quadratic)
                run = pushed([air], substeps, dt_max=dt)
                run.advance(time)
                kind = "quadratic" if quadratic else "linear"
                yield Finding.relative(exact, float(momentum(run)[2] / (mass * wind)), 1e-9, f"{preset}: speed in wind, {kind}")
            run = pushed([force_wind(velocity=(0.0, 0.0, 0.0), drag=rate)], substeps, GRAVITY, dt)
            run.advance(time)
            fall = GRAVITY / rate * (1.0 - math.exp(-rate * time))
            yield Finding.relative(fall, float(-momentum(run)[1] / mass), rate * dt, f"{preset}: speed of a fall through still air")


class CentralForces(VerificationProblem):
    """An attraction like a spring's lets matter swing with its period; a vortex spins it up; neither pushes it away.

    Scene: a jelly cube of 4^3 cells in free space: 0.3 m off the centre of an attraction of 40 m/s^2 at 1 m that grows with the
        distance; around the axis of a vortex of 10 m/s^2 at 1 m for 0.1 s; in steps of 1 ms.
    Exact: period 2 pi sqrt(1 / 40) s, by when it comes back to rest; angular momentum of the vortex strength I t / radius with the
        moment of inertia I of the particles at the start, momentum 0.
    Tolerance: 0.5 %; the cube widens as it spins: 1 %; 1e-9 of the angular momentum over its width.
    """

    name = "central_forces"
    source = "textbook (harmonic oscillator, torque)"

    def findings(self) -> Iterator[Finding]:
        """Let it swing, and spin it up."""
        stiff, dt = 40.0, 1e-3
        spring = force_attraction(centre=(0.3, 0.0, 0.0), strength=stiff, radius=1.0, falloff=-1.0)
        run = pushed([spring], dt_max=dt)
        mass, back, before = column(run, "mass").sum(), 0.0, 0.0
        while run.time < 2.0:
            run.step(dt)
            speed = float(momentum(run)[0] / mass)
            if before < 0.0 <= speed:
                back = run.time - dt * speed / (speed - before)
                break
            before = speed
        yield Finding.relative(2.0 * math.pi / math.sqrt(stiff), back, 5e-3, "period of the swing [s]")
        strength, time = 10.0, 0.1
        run = pushed([force_vortex(strength=strength)], dt_max=dt)
        x, m = column(run, "position"), column(run, "mass")
        inertia = float(m @ (x[:, 0] ** 2 + x[:, 2] ** 2))
        run.advance(time)
        x, v = column(run, "position"), column(run, "velocity")
        spin = float(m @ (x[:, 2] * v[:, 0] - x[:, 0] * v[:, 2]))
        own = float(m @ (column(run, "affine")[:, 0, 2] - column(run, "affine")[:, 2, 0])) * 0.25 * CELL**2
        yield Finding.relative(strength * inertia * time, spin + own, 0.01, "angular momentum of a vortex [kg m^2/s]")
        yield Finding(0.0, float(np.abs(momentum(run)).max() * 4 * CELL / spin), 1e-9, "its momentum, times the width")


class AirDrag(VerificationProblem):
    """Air presses on what matter turns to it, however the matter lies in the cells; a cube falls through it at its terminal speed.

    Scene: neo-Hookean blocks of 1000 kg/m^3 on cells of 0.1 m in a wind of 20 m/s, density 1.2 kg/m^3, coefficient 1, for a step of
        0.1 ms: a cube of 4^3 cells at five offsets from the cells and in a wind along (1, 2, 2) / 3, one of 8^3 cells with its
        particles at random, a plate of 8 x 8 x 1 cells; turned by 30, 40 and 50 degrees a cube of 4^3 cells, and the plate as the
        wind meets it across and askew; a ball of a radius of 4 cells in winds along three directions; a cube of 4^3 cells and
        10 kg/m^3 that falls for 3 s.
    Exact: impulses rho / 2 c A w^2 dt, A the area across the wind, sum |n_a| A_a; the plate's acceleration is 8 times that of a
        cube of 8^3 cells; speed sqrt(2 m g / (rho c A)).
    Tolerance: 1 %; 10 % where the surface is uneven: with particles at random, turned, and of a ball; 1 %; 2 %. Known to miss: the
        slanting wind, 9.9 % too weak, and that on a plate askew, 10.7 %, since a wedge thinner than a cell at the outline loses
        part of its force; the plate across the wind, 2.3 % too strong at its edges.
    """

    name = "air_drag"
    source = "textbook (drag coefficient)"
    misses = (SLANTING, PLATE, ASKEW)

    def findings(self) -> Iterator[Finding]:
        """Blow at blocks, and let one fall."""
        wind, dt, air = 20.0, 1e-4, 1.2

        def impulse(start: Any, n: np.ndarray, area: float) -> tuple[float, float]:
            """Return impulse over that of the area across the wind, and the acceleration [m/s^2]."""
            run = SubstepSolver(start, "explicit_apic", cell_size=CELL, gravity=(0, 0, 0), dtype=np.float64, origin=(0, 0, 0))
            run.step_context.forces = (force_air(velocity=tuple(wind * n), density=air),)
            run.step(dt)
            along = float(momentum(run) @ n)
            return along / (0.5 * air * area * wind**2 * dt), along / (dt * float(column(run, "mass").sum()))

        def blown(sides: tuple[int, int, int], n: np.ndarray, off: float = 0.0, **more: Any) -> tuple[float, float]:
            """Blow at a block, along n in its own axes."""
            low = CELL * off * np.ones(3)
            start = block(material("neo_hookean", youngs_modulus=1e5), low, low + CELL * np.array(sides), CELL, **more)
            area = CELL**2 * float(np.abs(n) @ [sides[1] * sides[2], sides[0] * sides[2], sides[0] * sides[1]])
            return impulse(start, rotation_matrix(more.get("rotation", (0.0, 0.0, 0.0))) @ n, area)

        x, slanting = np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0, 2.0]) / 3.0
        for off in (0.0, 0.2, 0.25, 0.5, 0.8):
            yield Finding.relative(1.0, blown((4, 4, 4), x, off)[0], 0.01, f"impulse on a cube {off} cells off, of the exact")
        yield Finding.relative(1.0, blown((4, 4, 4), slanting)[0], 0.01, SLANTING)
        yield Finding.relative(1.0, blown((8, 8, 8), x, 0.3, jitter=1.0, seed=3)[0], 0.1, "impulse with particles at random")
        flake, lump = blown((1, 8, 8), x, 0.3)[1], blown((8, 8, 8), x, 0.3)[1]
        yield Finding.relative(8.0, flake / lump, 0.01, PLATE)
        turn, askew = (30.0, 40.0, 50.0), np.array([0.6, 0.8, 0.0])
        yield Finding.relative(1.0, blown((4, 4, 4), slanting, 0.3, rotation=turn)[0], 0.1, "impulse on a turned cube")
        yield Finding.relative(1.0, blown((1, 8, 8), x, 0.3, rotation=turn)[0], 0.1, "impulse on a turned plate across the wind")
        yield Finding.relative(1.0, blown((1, 8, 8), askew, 0.3, rotation=turn)[0], 0.1, ASKEW)
        round_one = ball(material("neo_hookean", youngs_modulus=1e5), (0.0, 0.0, 0.0), 4 * CELL, CELL)
        for n in (x, slanting, np.ones(3) / math.sqrt(3.0)):
            told = impulse(round_one, n, math.pi * (4 * CELL) ** 2)[0]
            yield Finding.relative(1.0, told, 0.1, f"impulse on a ball in a wind along ({n[0]:.2f}, {n[1]:.2f}, {n[2]:.2f})")
        light = block(material("neo_hookean", 10.0, youngs_modulus=1e4), (-2 * CELL,) * 3, (2 * CELL,) * 3, CELL)
        run = SubstepSolver(light, "explicit_apic", cell_size=CELL, gravity=(0, -GRAVITY, 0), dtype=np.float64)
        run.step_context.forces = (force_air(density=air),)
        run.advance(3.0)
        mass = float(column(run, "mass").sum())
        exact = math.sqrt(2.0 * mass * GRAVITY / (air * (4 * CELL) ** 2))
        yield Finding.relative(exact, float(-momentum(run)[1] / mass), 0.02, "speed of a cube that falls [m/s]")


class FlowAlongCurve(VerificationProblem):
    """A wind along a curve carries matter along it, as far outside of a bend as its inertia has it; straight on beyond its ends.

    Scene: a particle in free space that a drag of 5 /s draws along a circle with R = 0.5 m, at 1 m/s and with a pull of 5 /s, from
        0.1 m inside, on voxels of 0.05 m for 6 s in steps of 2 ms; 2,000 places around a straight line of 1 m.
    Exact: the pull bends the way, k p (r - R) = v^2 / r, so that r = (R + sqrt(R^2 + 4 v^2 / (k p))) / 2 at the speed v; along and
        around the line, and beyond its ends, v e + p (the way across to it); the distance.
    Tolerance: 0.5 %: between voxels directions are h^2 / (8 R^2) = 0.1 % too short; 1e-5 of the largest, as numbers are single;
        half a voxel, at the tip of the cone over the line.
    """

    name = "flow_along_curve"
    source = "textbook (circular motion)"

    def findings(self) -> Iterator[Finding]:
        """Let a particle go round, and look at places."""
        radius, speed, drag, pull = 0.5, 1.0, 5.0, 5.0
        turn = np.linspace(0.0, 2.0 * math.pi, 257)
        circle = radius * np.column_stack([np.cos(turn), 0.0 * turn, np.sin(turn)])
        flow = line_field(circle, 0.05, CurveOutput.FLOW, speed, pull, (0.3, 0.0))
        eight = block(material("neo_hookean"), (0.35, -0.05, -0.05), (0.45, 0.05, 0.05), CELL)
        start = Particles({name: each[:1] for name, each in eight.attributes.items()}, eight.materials, eight.spacing)
        run = SubstepSolver(start, "explicit_apic", cell_size=CELL, gravity=(0, 0, 0), dtype=np.float64, dt_max=2e-3)
        run.step_context.forces = (force_wind(field=flow, velocity=(0.0, 0.0, 0.0), drag=drag),)
        run.advance(6.0)
        x, v = column(run, "position")[0], column(run, "velocity")[0]
        exact = 0.5 * (radius + math.sqrt(radius**2 + 4.0 * speed**2 / (drag * pull)))
        yield Finding.relative(exact, float(np.hypot(x[0], x[2])), 5e-3, "distance from the middle of the circle [m]")
        yield Finding.relative(speed, float(v @ np.cross([0.0, 1.0, 0.0], x)) / -float(np.hypot(x[0], x[2])), 5e-3, "speed [m/s]")
        yield Finding(0.0, abs(float(x[1])) / radius, 1e-3, "distance from its plane, of the radius")
        e, reach = np.array([0.6, 0.0, 0.8]), 0.3
        line = np.outer([0.0, 0.2, 1.0], e)
        places = np.random.default_rng(4).uniform(-1.3, 1.3, (20_000, 3))
        along = places @ e
        gap = np.linalg.norm(places - np.outer(np.clip(along, 0.0, 1.0), e), axis=1)
        near = np.flatnonzero(gap < reach)[:2000]
        places, along, gap = places[near], along[near], gap[near]
        wanted = speed * e + pull * (np.outer(along, e) - places)
        flow = field_values(line_field(line, 0.05, CurveOutput.FLOW, speed, pull, (reach, 0.0)), places, 1.0)
        yield Finding(0.0, float(np.abs(flow - wanted).max() / (pull * reach)), 1e-5, "flow around a line, of the largest")
        told = field_values(line_field(line, 0.005, CurveOutput.DISTANCE, reach=(0.03, 0.0)), 0.1 * places, 1.0)
        gap = np.linalg.norm(0.1 * places - np.outer(np.clip(0.1 * along, 0.0, 1.0), e), axis=1)
        yield Finding(0.0, float(np.abs(told - np.minimum(gap, 0.03)).max() / 0.005), 0.5, "distance from a line, of a voxel")


class NoiseOfFields(VerificationProblem):
    """Noise is smooth, has the spread that it says, and as a curl no divergence; repeated, its tiles fit.

    Scene: 200,000 places in a box of 100 sizes, at the first frame; steps of 1e-4 sizes.
    Exact: mean 0 and standard deviation 1 of values, 1 along each axis of curls, mean 1 of turbulence; div = 0 to the second order
        of the step; the same values a tile of 8 sizes further.
    Tolerance: 2 %; 1e-4 of the mean gradient; 1e-9.
    """

    name = "noise_of_fields"
    source = "Perlin 2002; Bridson and Hourihan 2007"

    def findings(self) -> Iterator[Finding]:
        """Look at every kind."""
        settings, size, step = GraphSettings(), 0.2, 1e-4
        random = np.random.default_rng(1)
        places = random.uniform(-50.0 * size, 50.0 * size, (200_000, 3))

        def noise(kind: NoiseKind, **more: object) -> SpatialField:
            return field_noise(settings, kind=kind, size=size, evolution=7.3, **more)

        value, rough, curl = (field_values(noise(kind), places, 1.0) for kind in NoiseKind)
        yield Finding(0.0, float(value.mean()), 0.02, "mean of values")
        yield Finding.relative(1.0, float(value.std()), 0.02, "standard deviation of values")
        yield Finding.relative(1.0, float(rough.mean()), 0.02, "mean of turbulence")
        for axis, name in enumerate("xyz"):
            yield Finding.relative(1.0, float(curl[:, axis].std()), 0.02, f"standard deviation of curls along {name}")
        field, d = noise(NoiseKind.CURL), step * size
        few = places[:5000]
        slopes = [field_values(field, few + d * e, 1.0) - field_values(field, few - d * e, 1.0) for e in np.eye(3)]
        divergence = sum(slopes[axis][:, axis] for axis in range(3)) / (2.0 * d)
        typical = np.sqrt(np.mean([np.square(each / (2.0 * d)).sum(axis=1) for each in slopes]))
        yield Finding(0.0, float(np.abs(divergence).max() / typical), 1e-4, "divergence of a curl, of its gradient")
        tiled = noise(NoiseKind.VALUE, repeat=8, octaves=3)
        apart = np.abs(field_values(tiled, few, 1.0) - field_values(tiled, few + 8.0 * size * np.array([1.0, -2.0, 3.0]), 1.0))
        yield Finding(0.0, float(apart.max()), 1e-9, "values a tile further")
        yield Finding(0.0, float(np.abs(field_values(constant(2.5), few, 1.0) - 2.5).max()), 0.0, "a constant")
