"""What no scene may create or lose: mass, momentum, angular momentum, energy."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import GraphSettings, Particles, Transfer, concatenate
from mpm_nodes.nodes.streams import emit_stream
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import (
    angular_momentum,
    column,
    kinetic_energy,
    momentum,
    momentum_scale,
    stored_energy,
)
from mpm_nodes.verification.scenes import ball, block, changed, material, preset


class SpinningBlob(VerificationProblem):
    """A spinning elastic ball in zero gravity keeps momentum and angular momentum, and its energy does not grow.

    Scene: a neo-Hookean ball of radius 3 cells with omega = (6, 9, -4) rad/s and a velocity, 1000 steps at half the
        elastic limit; the spin stretches it by a few percent, so that it also vibrates.
    Exact: sum m v and sum x x m v + l_p stay; the total energy sum m v^2/2 + m D C:C/2 + V0 psi never exceeds the
        initial one. Velocities of symplectic Euler lie half a step from the positions: the kinetic energy is the mean of the two
        around them (taken from one side, it would swing by about omega dt / 2 of what vibrates).
    Tolerance: float64: 1e-11 of sum m |v| after 1000 steps; energy growth 1e-6: APIC only takes, 1.6 % in all.
    """

    name = "spinning_blob"
    source = "Jiang 2015, section 5"

    def findings(self) -> Iterator[Finding]:
        """Spin the ball."""
        h, omega = 0.1, np.array([6.0, 9.0, -4.0])
        start = ball(material("neo_hookean"), (0.0, 0.0, 0.0), 3 * h, h, velocity=(1.0, -0.5, 0.25), angular_velocity=tuple(omega))
        spin = np.cross(np.eye(3), omega)  # rows e_k x omega: this is the matrix of omega x
        start = changed(start, affine=np.broadcast_to(spin, (len(start), 3, 3)))
        solver = SubstepSolver(start, cell_size=h, gravity=(0.0, 0.0, 0.0), dtype=np.float64)
        p, turn, scale = momentum(solver), angular_momentum(solver), momentum_scale(solver)
        kinetic, stored = [kinetic_energy(solver)], [stored_energy(solver)]
        worst_p = worst_turn = 0.0
        for step in range(1000):
            solver.step()
            kinetic.append(kinetic_energy(solver))
            stored.append(stored_energy(solver))
            if step % 10 == 9:
                worst_p = max(worst_p, np.abs(momentum(solver) - p).max())
                worst_turn = max(worst_turn, np.abs(angular_momentum(solver) - turn).max())
        energy = np.array(stored[:-1]) + 0.5 * (np.array(kinetic[:-1]) + np.array(kinetic[1:]))
        yield Finding(0.0, worst_p / scale, 1e-11, "momentum")
        yield Finding(0.0, worst_turn / (scale * 3 * h), 1e-11, "angular momentum")
        yield Finding(0.0, energy.max() / energy[0] - 1.0, 1e-6, "energy growth")


class TwoBodyCollision(VerificationProblem):
    """Two equal elastic balls that meet head-on rebound with most of their energy, and their momenta stay opposite.

    Scene: two neo-Hookean balls of radius 4 cells at -1 and +1 m/s (a tenth of the wave speed), zero gravity, APIC
        and FLIP 0.95.
    Exact: total momentum 0 throughout; the balls separate with 50 to 100 % of the kinetic energy of their centres and
        in all (the rest vibrates or is lost to the contact between the grids).
    Tolerance: momentum 1e-11 of sum m |v| in float64; the energy by its bounds.
    """

    name = "two_body_collision"
    source = "Sulsky 1994"

    def findings(self) -> Iterator[Finding]:
        """Let the balls collide."""
        h, speed, radius = 0.05, 1.0, 0.2
        for transfer in Transfer:
            solver = SubstepSolver(
                self._balls(h, speed, radius),
                preset(transfer=transfer.value),
                cell_size=h,
                gravity=(0.0, 0.0, 0.0),
                dtype=np.float64,
            )
            energy, scale, worst = kinetic_energy(solver), momentum_scale(solver), 0.0
            while solver.time < 0.4:
                solver.step()
                worst = max(worst, np.abs(momentum(solver)).max())
            x, v = column(solver, "position")[:, 0], column(solver, "velocity")
            left = column(solver, "id") < len(x) / 2
            apart = x[~left].mean() - x[left].mean()
            yield Finding(0.0, worst / scale, 1e-11, f"momentum {transfer.value}")
            yield Finding(0.75, 0.5 * (column(solver, "mass") @ (v**2).sum(1)) / energy, 0.25, f"energy kept {transfer.value}")
            yield Finding(0.75, (v[left, 0].mean() / speed) ** 2 * (v[left, 0].mean() < 0), 0.25, f"rebound {transfer.value}")
            yield Finding(1.0, float(apart > 2 * radius + 3 * h), 0.0, f"separated {transfer.value}")

    @staticmethod
    def _balls(h: float, speed: float, radius: float) -> Particles:
        matter = material("neo_hookean")
        away = radius + 1.5 * h
        return concatenate(
            [ball(matter, (sign * away, 0.0, 0.0), radius, h, velocity=(-sign * speed, 0.0, 0.0)) for sign in (-1, 1)]
        )


class SeveralMaterials(VerificationProblem):
    """Matter of three laws in one solve exchanges momentum and neither makes nor loses any.

    Scene: a rubber ball and a snow ball run into a liquid ball between them, off-centre, zero gravity, 200 steps in
        float32.
    Exact: sum m v stays; sum m stays.
    Tolerance: float32: 2e-6 of sum m |v|, i.e. 200 steps of rounding at 6e-8 that partly cancel; mass to the bit.
    """

    name = "several_materials"
    source = "conservation of momentum"

    def findings(self) -> Iterator[Finding]:
        """Let them collide."""
        h = 0.05
        start = concatenate(
            [
                ball(material("neo_hookean"), (-0.35, 0.03, 0.0), 0.15, h, velocity=(2.0, 0.0, 0.0)),
                ball(material("liquid", bulk_modulus=1e5, viscosity=1.0), (0.0, 0.0, 0.0), 0.15, h),
                ball(material("snow", density=400.0), (0.35, -0.04, 0.05), 0.15, h, velocity=(-3.0, 0.5, 0.0)),
            ]
        )
        solver = SubstepSolver(start, cell_size=h, gravity=(0.0, 0.0, 0.0))
        p, scale, mass = momentum(solver), momentum_scale(solver), np.sort(column(solver, "mass"))
        for _ in range(200):
            solver.step()
        liquid = column(solver, "velocity")[solver.particles.unpack("material") == 1]
        yield Finding(0.0, np.abs(momentum(solver) - p).max() / scale, 2e-6, "momentum")
        yield Finding(0.0, np.abs(np.sort(column(solver, "mass")) - mass).max(), 0.0, "mass")
        yield Finding(1.0, float(np.abs(liquid).max() > 0.1), 0.0, "they met")


class EmitterRate(VerificationProblem):
    """A stream delivers rho A v, however its substeps fall.

    Scene: a liquid nozzle of 4 x 4 cells, 3 cells long, at 0.7 m/s, uneven substeps, float32.
    Exact: a layer of particles stands at the mouth at the start, and one follows every spacing / v: after whole nozzle lengths the
        mass is rho A v t and a layer; at any time the layers that have come are 1 + floor(v t / spacing).
    Tolerance: 1e-6 for the float32 masses, and 1e-4 of a layer.
    """

    name = "emitter_rate"
    source = "conservation of mass"

    def findings(self) -> Iterator[Finding]:
        """Let it stream for four nozzle lengths."""
        h, speed, length = 0.05, 0.7, 0.15
        template = block(material("liquid"), (0.0, 0.0, 0.0), (0.2, length, 0.2), h)
        stream = emit_stream(GraphSettings(cell_size=h), template, velocity=(0.0, -speed, 0.0))
        nothing = Particles({"position": np.zeros((0, 3))}, template.materials, template.spacing)
        solver = SubstepSolver(nothing, cell_size=h, emitters=[stream], gravity=(0.0, 0.0, 0.0))
        rate, layer = 1000.0 * 0.2 * 0.2 * speed, 1000.0 * 0.2 * 0.2 * template.spacing
        random, worst = np.random.default_rng(0), 0.0
        end = 4 * length / speed
        while solver.time < end * (1 - 1e-12):
            solver.step(random.uniform(0.2, 1.0) * 2e-3, time_left=end - solver.time)
            come = 1.0 + math.floor(speed * solver.time / template.spacing + 1e-9)
            worst = max(worst, abs(float(column(solver, "mass").sum()) / layer - come))
        yield Finding.relative(rate * end + layer, column(solver, "mass").sum(), 1e-6, "mass after 4 lengths")
        yield Finding(0.0, worst, 1e-4, "layers off at any time")
