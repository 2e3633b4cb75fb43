"""Bodies that keep velocities of their own: across a gap, sliding on each other, and in a stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mpm_nodes.data import FrameContext, Particles
from mpm_nodes.nodes.attachments import force_attach, with_attachments
from mpm_nodes.nodes.emit import merge_particles
from mpm_nodes.nodes.fields import FieldShape, field_shape
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.moving_liquid import TAP
from mpm_nodes.verification.quantities import column, kinetic_energy, momentum
from mpm_nodes.verification.scenes import STICKY, block, changed, material, settle, walled

H = 0.05


def bodies(*parts: Particles) -> Particles:
    """Join blocks, each a body of its own."""
    return merge_particles(parts, bodies=True)


def moving(part: Particles, *velocity: float) -> Particles:
    """Return a block that moves [m/s]."""
    return changed(part, velocity=np.tile(np.array(velocity, float), (len(part), 1)))


def apart(particles: Particles, friction: float = 0.0, adhesion: float = 0.0, **options: Any) -> SubstepSolver:
    """Return a solve whose bodies keep velocities of their own."""
    substeps = {"preset": "separate_bodies", "set": {"friction": friction, "adhesion": adhesion}}
    return SubstepSolver(particles, substeps, cell_size=H, dtype=np.float64, **{"origin": (0.0, 0.0, 0.0), **options})


class BodiesApart(VerificationProblem):
    """Bodies do not feel each other across empty space; where they meet, momentum stays and they part again.

    Scene: two blocks of 4 cells that pass each other at 2 m/s with one cell and with a tenth of a cell between them; two that meet
        head on at 2 m/s, without friction; no gravity, float64.
    Exact: each passing block keeps its velocity; the head-on pair keeps its momentum, parts, and never gains kinetic energy above
        what it began with.
    Tolerance: 1e-12 of the speed and of the momentum, rounding over a hundred substeps; the pair is to leave with at least half of
        its speed, as blocks of an elastic law do that ring afterwards.
    """

    name = "bodies_apart"
    source = "Bardenhagen 2000"

    def findings(self) -> Iterator[Finding]:
        """Pass, then meet."""
        matter = material("neo_hookean", youngs_modulus=1e5)
        for gap in (1.0, 0.1):
            low = 0.2 + gap * H
            pair = bodies(
                moving(block(matter, (0, 0, 0), (0.2, 0.2, 0.2), H), 1.0, 0.0, 0.0),
                moving(block(matter, (0.1, low, 0), (0.3, low + 0.2, 0.2), H), -1.0, 0.0, 0.0),
            )
            solver = apart(pair, friction=0.5, gravity=(0.0, 0.0, 0.0))
            for _ in range(100):
                solver.step(1e-3)
            velocity, body = column(solver, "velocity"), solver.particles.unpack("body")
            change = np.abs(velocity - np.where(body == 0, 1.0, -1.0)[:, None] * [1.0, 0.0, 0.0]).max()
            yield Finding(0.0, float(change), 1e-12, f"change of velocity in passing, gap of {gap:g} cells")
        pair = bodies(
            moving(block(matter, (0, 0, 0), (0.2, 0.2, 0.2), H), 0.0, 1.0, 0.0),
            moving(block(matter, (0, 0.26, 0), (0.2, 0.46, 0.2), H), 0.0, -1.0, 0.0),
        )
        solver = apart(pair, gravity=(0.0, 0.0, 0.0))
        begin, energy = momentum(solver), kinetic_energy(solver)
        drift = growth = 0.0
        for _ in range(150):
            solver.step(5e-4)
            drift = max(drift, float(np.abs(momentum(solver) - begin).max()))
            growth = max(growth, kinetic_energy(solver) / energy - 1.0)
        velocity, body = column(solver, "velocity")[:, 1], solver.particles.unpack("body")
        yield Finding(0.0, drift / 8.0, 1e-12, "drift of the momentum, in shares of one block's")
        yield Finding(0.0, growth, 1e-12, "growth of the kinetic energy")
        yield Finding(
            0.75, float(velocity[body == 1].mean() - velocity[body == 0].mean()) / 2.0, 0.25, "speed of parting, in shares"
        )


class BlockOnBlock(VerificationProblem):
    """A block slides on another by Coulomb's law, wherever their common face lies between the nodes.

    Scene: a block of 8 x 3 x 4 cells that moves at 1 m/s along a table of 28 x 3 x 6 cells, stiff and damped until both have
        settled; friction 0.3; the face at three places between two nodes; then the mean acceleration over 0.2 s.
    Exact: - mu g. Held by friction 0.7 under gravity that leans by 30 degrees: no acceleration.
    Tolerance: 5 % of it, and of g sin 30: edges and the deformed faces push aside a little.
    """

    name = "block_on_block"
    source = "Coulomb"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Slide at three offsets, then hold."""
        for offset in (0.0, 0.375, 0.7):
            solver = self._settled(offset, 0.3)
            upper = solver.particles.unpack("body") == 1
            velocity = column(solver, "velocity")
            velocity[upper, 0] += 1.0
            solver.particles.pack("velocity", velocity)
            measured = self._acceleration(solver, 0.2)
            yield Finding.relative(-0.3 * 9.81, measured, 0.05, f"sliding, face {offset:g} cells off the nodes")
        solver = self._settled(0.0, 0.7)
        lean = np.radians(30.0)
        solver.gravity = (9.81 * float(np.sin(lean)), -9.81 * float(np.cos(lean)), 0.0)
        settle(solver, 0.1, 40.0)
        yield Finding(0.0, self._acceleration(solver, 0.2), 0.05 * 9.81 * 0.5, "held at 30 degrees")

    @staticmethod
    def _settled(offset: float, friction: float) -> SubstepSolver:
        matter, low = material("neo_hookean", youngs_modulus=2e6), offset * H
        top = low + 3 * H
        pair = bodies(
            block(matter, (0, low, 0), (28 * H, top, 6 * H), H),
            block(matter, (4 * H, top, H), (12 * H, top + 3 * H, 5 * H), H),
        )
        solver = apart(pair, friction, walls=walled((-1, low, -1), (3, 2, 2), STICKY))
        settle(solver, 0.1, 40.0)
        return solver

    @staticmethod
    def _acceleration(solver: SubstepSolver, duration: float) -> float:
        """Return the mean acceleration of the upper block along x [m/s^2]."""

        def speed() -> float:
            return float(column(solver, "velocity")[solver.particles.unpack("body") == 1, 0].mean())

        before = speed()
        solver.advance(duration)
        return (speed() - before) / duration


class StackOfFive(VerificationProblem):
    """Five blocks on each other rest.

    Scene: five soft blocks of 4 x 3 x 4 cells on a floor, with friction, damped for 0.5 s; then 0.5 s without damping.
    Exact: no motion, and no block further in the next than their common weight presses them together.
    Tolerance: 2 cm/s, the free fall of 2 ms; a tenth of a cell at each face: the particles' places tell a gap to 0.05 cells.
    """

    name = "stack_of_five"
    source = "statics"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Build the stack, wait, and look."""
        matter, step = material("neo_hookean", youngs_modulus=5e5), 3 * H
        parts = [block(matter, (0, n * step, 0), (4 * H, (n + 1) * step, 4 * H), H) for n in range(5)]
        solver = apart(bodies(*parts), 0.5, walls=walled((-1, 0, -1), (1, 2, 1), STICKY))
        settle(solver, 0.5, 20.0)
        solver.advance(0.5)
        speed = np.linalg.norm(column(solver, "velocity"), axis=1).max()
        yield Finding(0.0, float(speed), 0.02, "largest speed")
        height, body = column(solver, "position")[:, 1], solver.particles.unpack("body")
        for n in range(4):
            inner = height[body == n + 1].min() - height[body == n].max()
            yield Finding(0.5, inner / H, 0.1, f"distance of the particles of blocks {n + 1} and {n + 2} [cells]")


class GluedBodies(VerificationProblem):
    """Bodies that are glued together hold as much as their face times the adhesion, along it friction times as much, and then part.

    Scene: a stiff block of 8 x 2 x 4 cells under one of 10 x 2 x 6 cells that springs hold, glued by 1000 Pa, friction 0.5; gravity
        grows for 0.2 s to 0.9 and 1.1 of the adhesion over the weight on the face, downwards; or, without pressure, to 0.9 and 1.1
        of half of it sideways; the face at three places between two nodes; damped for 0.3 s, then free for 0.6 s.
    Exact: it stays; it falls, and slides. The momentum of a glued pair whose blocks fly apart at 0.1 m/s stays.
    Tolerance: 0.1 cells where it stays, more than one cell where it falls and slides; 1e-12 of the momentum of one.
    """

    name = "glued_bodies"
    source = "Dugdale 1960; Coulomb"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Hang it, draw it along, fly apart."""
        for offset in (0.0, 0.375, 0.7):
            for along, which in ((False, "hanging"), (True, "drawn along")):
                for share in (0.9, 1.1):
                    moved = self._moved(offset, share, along)
                    what = f"{which} at {share} of the strength, face {offset} cells off the nodes: moves [cells]"
                    if share < 1.0:
                        yield Finding(0.0, moved, 0.1, what)
                    else:
                        yield Finding(1.0, min(moved, 1.0), 0.0, f"{what}, one at most")
        matter = material("neo_hookean", youngs_modulus=1e5)
        pair = bodies(
            moving(block(matter, (0, 0, 0), (0.2, 0.2, 0.2), H), 0.0, -0.05, 0.0),
            moving(block(matter, (0.05, 0.2, 0), (0.25, 0.4, 0.2), H), 0.0, 0.05, 0.0),
        )
        solver = apart(pair, 0.5, 2000.0, gravity=(0.0, 0.0, 0.0))
        begin, drift = momentum(solver), 0.0
        for _ in range(100):
            solver.step(5e-4)
            drift = max(drift, float(np.abs(momentum(solver) - begin).max()))
        yield Finding(0.0, drift / (8.0 * 0.05), 1e-12, "drift of the momentum of a glued pair, in shares of one block's")

    @staticmethod
    def _moved(offset: float, share: float, along: bool) -> float:
        """Return how far a glued block moves from what it hangs on [cells]."""
        matter, face = material("neo_hookean", youngs_modulus=5e5), (3 + offset) * H
        pair = bodies(
            block(matter, (H, face - 2 * H, H), (9 * H, face, 5 * H), H),
            block(matter, (0, face, 0), (10 * H, face + 2 * H, 6 * H), H),
        )
        strength = 1000.0 / (matter.density * 2 * H)
        pull = np.array([0.5, 0.0, 0.0]) if along else np.array([0.0, -1.0, 0.0])
        top = field_shape(shape=FieldShape.BOX, centre=(0.0, face + 2 * H, 0.0), size=(9.0, 2 * H, 9.0))
        force = force_attach(FrameContext(2), mask=top, stiffness=1e7)
        (source,), _ = with_attachments([pair], [], [force])
        solver = apart(source, 0.5, 1000.0, gravity=lambda time: tuple(share * strength * min(time / 0.2, 1.0) * pull))
        push(solver, [force])
        solver.step(1e-6)
        begin = between(solver)
        settle(solver, 0.3, 20.0)
        solver.advance(0.6)
        return float(np.abs(between(solver) - begin).max() / H)


def between(solver: SubstepSolver) -> np.ndarray:
    """Return the way from the centre of body 0 to that of the others, shape (3,) [m]."""
    place, first = column(solver, "position"), solver.particles.unpack("body") == 0
    return np.asarray(place[~first].mean(axis=0) - place[first].mean(axis=0))


class PouredBody(VerificationProblem):
    """Liquid from a tap comes to rest at the level of its mass where bodies keep velocities of their own.

    Scene: the tap of `moving_liquid` by `separate_bodies`.
    Exact: as there.
    Tolerance: as there, 2 %.
    """

    name = "poured_body"
    source = "conservation of volume"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it come to rest."""
        yield Finding(1.0, replace(TAP, preset="separate_bodies").level(), 0.02, "level of a tap, separate_bodies")
