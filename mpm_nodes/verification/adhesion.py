"""Contacts that stick by a strength, and the forces that bodies get from the matter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import CollisionRule, FrameContext
from mpm_nodes.nodes.collide import collide_plane, collide_sphere
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contact import rotation_between, rotation_matrix_of
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column, momentum
from mpm_nodes.verification.scenes import block, calm, changed, material

PRESETS: dict[str, Any] = {"explicit": "explicit_apic", "implicit": "implicit_apic"}
CELL, DENSITY, ADHESION = 0.05, 1000.0, 1000.0
CELLS = (4, 3, 4)
HEIGHT = CELLS[1] * CELL
UP = (0.0, 1.0, 0.0)
OBLIQUE = (1.0, 2.0, 2.0)


def stuck_block(
    substeps: Any, load: Sequence[float], *, normal: Sequence[float] = UP, offset: float = 0.0, jitter: float = 0.0, **contact: Any
) -> SubstepSolver:
    """Return a solver: a rubber block of 4 x 3 x 4 cells that lies on a plane, loaded by gravity that grows for 0.2 s.

    Args:
        substeps: Substep graph.
        load: Weight over the area of the contact, in the frame of the plane: along it, and along its normal [Pa].
        normal: Of the plane, any length.
        offset: Place of the plane along its normal [cells].
        jitter: That of the particles.
        contact: Knobs of `collide_plane`.
    """
    n = np.array(normal) / np.linalg.norm(normal)
    turn = rotation_between(np.array(UP), n)
    side = np.array([CELLS[0], 0, CELLS[2]]) * CELL / 2
    start = block(material("neo_hookean", DENSITY, youngs_modulus=2e5), -side, side + [0.0, HEIGHT, 0.0], CELL, jitter=jitter)
    at = offset * CELL * n
    position = start["position"] @ rotation_matrix_of(turn).T + at
    ground = collide_plane(FrameContext(1), centre=tuple(at), orientation=tuple(turn), **contact)
    gravity = rotation_matrix_of(turn) @ [load[0], load[1], 0.0] / (DENSITY * HEIGHT)
    run = SubstepSolver(
        changed(start, position=position),
        substeps,
        cell_size=CELL,
        dtype=np.float64,
        colliders=[ground],
        gravity=lambda time: tuple(gravity * min(time / 0.2, 1.0)),
        origin=(0.0, 0.0, 0.0),
    )
    run.step_context.contact_forces = True
    return run


def moved(run: SubstepSolver, duration: float, rate: float = 20.0) -> np.ndarray:
    """Run with velocities decaying at a rate [1/s]; return how far the centre of mass moves, shape (3,) [cells]."""
    before = column(run, "position").mean(axis=0)
    while run.time < duration * (1.0 - 1e-12):
        calm(run, math.exp(-rate * run.step(time_left=duration - run.time)))
    return np.asarray((column(run, "position").mean(axis=0) - before) / CELL)


def pressed(run: SubstepSolver, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """Run on; return the mean force on the colliders [N] and torque [N m], shape (colliders, 3)."""
    run.step_context.frame += 1
    run.advance(duration)
    told = run.step_context.report["contact_forces"]
    return tuple(np.array(told[name]).reshape(-1, 3) / duration for name in ("force", "torque"))  # type: ignore[return-value]


class Adhesion(VerificationProblem):
    """A block hangs under a ceiling by adhesion until its weight over the area exceeds it, however the ceiling lies in the grid.

    Scene: a rubber block of 4 x 3 x 4 cells, 1000 kg/m^3, under a plane with an adhesion of 1000 Pa, at three offsets from the
        nodes, and oblique to them; damped, its weight grows for 0.2 s and stays until 0.6 s; explicit and implicit.
    Exact: it stays where rho g H < A: at 0.9 A it moves by less than 0.1 cells; at 1.1 A it has left: nothing touches the ceiling,
        which gets no force. While it hangs the ceiling gets its weight.
    Tolerance: 10 % in A, that is yes or no; 2 % of the weight.
    """

    name = "adhesion"
    source = "textbook (equilibrium)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Hang lighter and heavier blocks."""
        knobs = {"adhesion": ADHESION}
        for name, substeps in PRESETS.items():
            for normal, offset in ((UP, 0.0), (UP, 0.3), (UP, 0.7), (OBLIQUE, 0.3)):
                place = f"{name}, {offset} cells off{', oblique' if normal is OBLIQUE else ''}"
                light = stuck_block(substeps, (0.0, 0.9 * ADHESION), normal=normal, offset=offset, **knobs)
                yield Finding(0.0, float(np.linalg.norm(moved(light, 0.6))), 0.1, f"{place}: way at 0.9 A [cells]")
                force, weight = pressed(light, 0.01)[0][0], 0.9 * ADHESION * CELLS[0] * CELLS[2] * CELL**2
                pull = float(force @ normal) / float(np.linalg.norm(normal))
                yield Finding.relative(weight, pull, 0.02, f"{place}: force on the ceiling [N]")
                heavy = stuck_block(substeps, (0.0, 1.1 * ADHESION), normal=normal, offset=offset, **knobs)
                moved(heavy, 0.6)
                held = float(np.linalg.norm(pressed(heavy, 0.01)[0])) / weight
                yield Finding(0.0, held, 0.0, f"{place}: force on the ceiling at 1.1 A, of the weight")


class CohesiveFriction(VerificationProblem):
    """A block on a slope stays until what draws it along exceeds mu (p + A), and then accelerates by the rest.

    Scene: the block of `adhesion` on a plane, pressed on it by p = 1000 Pa, with friction 0.5 and an adhesion of 1000 Pa; drawn
        along it by 0.9, 1.1 and 1.5 times mu (p + A). Damped for 0.3 s, while the load grows; then free for 0.2 s. The same with
        an adhesion of 0 for what adhesion adds.
    Exact: at rest; accelerated by (load - mu (p + A)) / (rho H).
    Tolerance: 10 % of mu A / (rho H).
    """

    name = "cohesive_friction"
    source = "Coulomb's law with cohesion"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Draw it along."""
        friction, press, offset = 0.5, 1000.0, 0.3
        bar = 0.1 * friction * ADHESION / (DENSITY * HEIGHT)
        for name, substeps in PRESETS.items():
            for adhesion in (0.0, ADHESION):
                most = friction * (press + adhesion)
                for share in (0.9, 1.1, 1.5):
                    load = (share * most, -press)
                    run = stuck_block(substeps, load, offset=offset, friction=friction, adhesion=adhesion)
                    moved(run, 0.3, 60.0)
                    before = momentum(run)[0]
                    run.advance(0.2)
                    found = float(momentum(run)[0] - before) / (0.2 * float(column(run, "mass").sum()))
                    exact = max(share - 1.0, 0.0) * most / (DENSITY * HEIGHT)
                    yield Finding(exact, found, bar, f"{name}: acceleration at {share} mu (p + {adhesion:g} Pa) [m/s^2]")


class ContactForces(VerificationProblem):
    """The force that a collider gets is the weight of what lies on it, and turns it by the arm; pins bear what hangs on them.

    Scene: the block of `adhesion` on a plane under its weight of 1000 Pa over the area, at three offsets from the nodes and oblique
        to them; the plane's centre lies 0.5 m aside, along the plane. A rubber bar of 4 x 12 x 4 cells whose upper end a ball
        holds that is sticky and clamps; damped for 1 s, then looked at for 0.1 s; explicit and implicit.
    Exact: the weight, along it; the weight times 0.5 m, about the horizontal axis across the arm; of the bar the weight.
    Tolerance: 2 %; 2 % of weight times arm; 2 %.
    """

    name = "contact_forces"
    source = "textbook (equilibrium)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Weigh blocks, and hang up a bar."""
        arm = 0.5
        for name, substeps in PRESETS.items():
            for normal, offset in ((UP, 0.0), (UP, 0.3), (UP, 0.7), (OBLIQUE, 0.3)):
                place = f"{name}, {offset} cells off{', oblique' if normal is OBLIQUE else ''}"
                run = stuck_block(substeps, (0.0, -ADHESION), normal=normal, offset=offset, friction=0.5)
                n = np.array(normal) / np.linalg.norm(normal)
                along = rotation_matrix_of(rotation_between(np.array(UP), n))[:, 0]
                plane = run.colliders.colliders[0]
                plane.shape.translations[:] += arm * along
                run.set_colliders([plane])
                moved(run, 1.0)
                force, torque = (each[0] for each in pressed(run, 0.1))
                weight = ADHESION * CELLS[0] * CELLS[2] * CELL**2
                yield Finding(0.0, float(np.linalg.norm(force + weight * n)), 0.02 * weight, f"{place}: force less weight [N]")
                exact = np.cross(-arm * along, -weight * n)
                off = float(np.linalg.norm(torque - exact))
                yield Finding(0.0, off, 0.02 * arm * weight, f"{place}: torque less weight times arm [N m]")
            yield self._pinned(name, substeps)

    @staticmethod
    def _pinned(name: str, substeps: Any) -> Finding:
        side, gravity = np.array([2, 6, 2]) * CELL, 9.81
        start = block(material("neo_hookean", DENSITY, youngs_modulus=2e5), -side, side, CELL)
        pin = collide_sphere(
            FrameContext(1), centre=(0.0, float(side[1]), 0.0), radius=2.5 * CELL, rule=CollisionRule.STICKY, clamp=True
        )
        run = SubstepSolver(
            start, substeps, cell_size=CELL, dtype=np.float64, colliders=[pin], gravity=(0.0, -gravity, 0.0), origin=(0.0, 0.0, 0.0)
        )
        run.step_context.contact_forces = True
        moved(run, 1.0)
        weight = float(column(run, "mass").sum()) * gravity
        return Finding.relative(weight, -float(pressed(run, 0.1)[0][0, 1]), 0.02, f"{name}: force on a pin [N]")
