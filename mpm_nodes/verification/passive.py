"""Passive matter: active matter stands on it as on a clamped floor, and it goes on to the bit from where it was held."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import ActiveMask, Collider, CollisionRule, FrameContext, Particles
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.nodes.collide import collide_box
from mpm_nodes.nodes.fields import constant, field_ramp
from mpm_nodes.nodes.forces import active_mask, sleep
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import activate
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import OPEN, SLIP, block, calm, changed, material, walled

CELL, DENSITY, GRAVITY, YOUNG, POISSON = 0.05, 1000.0, 9.81, 1e6, 0.3
SIDE, HEIGHT = 4 * CELL, 8 * CELL
CLOCK = Clock(fps=24.0)


def advance_frames(run: SubstepSolver, frames: Sequence[int], colliders: Sequence[Collider] = (), rate: float = 0.0) -> None:
    """Move a solver over frames as a solve does, with velocities decaying at a rate [1/s]."""
    for frame in frames:
        clock = CLOCK.over(frame)
        run.begin_frame(clock, colliders, ())
        run.particles.sorted, run.particles.limits = False, None
        while clock.end - run.time > 1e-9:
            dt = run.step(time_left=clock.end - run.time)
            if rate:
                calm(run, math.exp(-rate * dt))
        run.time = clock.end


def _column(substeps: Any, offset: float, low: float) -> tuple[SubstepSolver, Particles]:
    """Return a solver of a column between walls, from `low` to 2 `HEIGHT` [m], moved up by an offset [cells], and its particles."""
    start = block(
        material("neo_hookean", DENSITY, youngs_modulus=YOUNG, poisson_ratio=POISSON), (0, low, 0), (SIDE, 2 * HEIGHT, SIDE), CELL
    )
    start = changed(start, position=start["position"] + [0.0, offset * CELL, 0.0])
    walls = walled((0, -10, 0), (SIDE, 10, SIDE), SLIP, SLIP, OPEN, OPEN, SLIP, SLIP)
    run = SubstepSolver(
        start,
        substeps,
        cell_size=CELL,
        dtype=np.float64,
        walls=walls,
        gravity=(0.0, -GRAVITY, 0.0),
        origin=(0.0, 0.0, 0.0),
        clock=CLOCK,
    )
    return run, start


class PassiveFloor(VerificationProblem):
    """A column whose lower half is passive stands on it as on a clamped floor.

    Scene: a column of rubber of 16 cells between slip walls, whose lower half is passive, at three offsets from the nodes; under
        its weight, damped, for 18 frames; explicit and implicit. The same upper half on a box that is sticky and clamps.
    Exact: u(y) = -rho g (H y - y^2 / 2) / M, M = lambda + 2 mu, on average rho g H^2 / (3 M); the passive body bears the weight.
    Tolerance: 3 % of the average; between body and box 1 %; 2 % of the weight.
    """

    name = "passive_floor"
    source = "textbook (uniaxial strain)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let columns stand."""
        modulus = YOUNG * (1.0 - POISSON) / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON))
        sinks = DENSITY * GRAVITY * HEIGHT**2 / (3.0 * modulus)
        for name, substeps in (("explicit", "explicit_apic"), ("implicit", "implicit_apic")):
            for offset in (0.0, 0.3, 0.7):
                place = f"{name}, {offset} cells off"
                found, force = self.stands(substeps, offset)
                yield Finding.relative(sinks, found, 0.03, f"{place}: sinks by [m]")
                box, _ = self.stands(substeps, offset, box=True)
                yield Finding(box, found, 0.01 * sinks, f"{place}: sinks on a box by [m]")
                yield Finding.relative(-DENSITY * GRAVITY * HEIGHT * SIDE**2, force, 0.02, f"{place}: force on what is passive [N]")

    @staticmethod
    def stands(substeps: Any, offset: float, box: bool = False) -> tuple[float, float]:
        """Return by how much the upper half sinks on average [m], and the vertical force on what it stands on [N]."""
        run, start = _column(substeps, offset, HEIGHT if box else 0.0)
        floor: tuple[Collider, ...] = ()
        surface = HEIGHT + offset * CELL
        if box:
            at, size = (SIDE / 2, surface - HEIGHT, SIDE / 2), (4 * SIDE, 2 * HEIGHT, 4 * SIDE)
            floor = (collide_box(FrameContext(1), centre=at, size=size, rule=CollisionRule.STICKY, clamp=True),)
        else:
            activate(run, active_mask(field_ramp(low=surface, high=surface)))
        run.step_context.contact_forces = True
        advance_frames(run, range(1, 19), floor, rate=20.0)
        run.step_context.frame = 1
        advance_frames(run, (19,), floor)
        upper = start["position"][:, 1] > surface
        moved = (run.snapshot([])["position"] - start["position"])[upper, 1]
        force = np.array(run.step_context.report["contact_forces"]["force"]).reshape(-1, 3)[0, 1]
        return -float(moved.mean()), float(force)


class PassiveHolds(VerificationProblem):
    """What is passive stays as it is to the bit, and falls from rest where it is let go.

    Scene: a block of jelly that flies and spins, deformed, in free space; its left half is passive from frame 3 on, all of it from
        frame 5 on, and all active from frame 8 on.
    Exact: while they are passive, no place, deformation or mass has one bit changed and nothing moves; no particle is lost, in any
        frame. Once let go it falls by g t: on average its velocity is that.
    Tolerance: none; of the velocity 1e-9.
    """

    name = "passive_holds"
    source = "textbook (free fall)"

    def findings(self) -> Iterator[Finding]:
        """Hold a block in two goes, and let it fall."""
        jelly = block(material("neo_hookean", youngs_modulus=2e4), (0.0,) * 3, (4 * CELL,) * 3, CELL)
        place = jelly["position"] - jelly["position"].mean(axis=0)
        speed = np.cross([1.0, 3.0, 2.0], place) + [0.5, 1.0, 0.0] + place @ np.diag([0.0, 2.0, -1.0])
        run = SubstepSolver(
            changed(jelly, velocity=speed),
            cell_size=CELL,
            gravity=(0.0, -GRAVITY, 0.0),
            origin=(0, 0, 0),
            dtype=np.float64,
            clock=CLOCK,
        )
        whole = run.snapshot(["mass"])["mass"]
        advance_frames(run, (1, 2))
        kept = ("position", "deformation", "mass", "volume")
        middle = float(run.snapshot([])["position"][:, 0].mean())
        masks = {
            3: active_mask(field_ramp(direction=(1.0, 0.0, 0.0), low=middle, high=middle)),
            5: ActiveMask(constant(0.0)),
            8: None,
        }
        held, before = np.zeros(len(whole), bool), run.snapshot(kept)
        changed_bits, moving, lost = 0, 0.0, 0
        for frame in range(3, 9):
            if frame in masks:
                activate(run, masks[frame])
                before = run.snapshot(kept)
                held = before["position"][:, 0] <= middle if frame == 3 else np.full(len(whole), frame == 5)
            advance_frames(run, (frame,))
            now = run.snapshot([*kept, "velocity"])
            changed_bits += sum(int((now[name][held] != before[name][held]).sum()) for name in kept)
            moving += float(np.abs(now["velocity"][held]).sum())
            lost += int(not np.array_equal(now["mass"], whole))
        yield Finding(0.0, float(changed_bits), 0.0, "numbers that changed")
        yield Finding(0.0, moving, 0.0, "speed of what is passive [m/s]")
        yield Finding(0.0, float(lost), 0.0, "frames with other masses")
        yield Finding(0.0, float(run.passive.store.count), 0.0, "particles that stay passive")
        fall = float(whole @ now["velocity"][:, 1]) / float(whole.sum())
        yield Finding.relative(-GRAVITY / CLOCK.fps, fall, 1e-9, "velocity after a frame [m/s]")


class MatterSleeps(VerificationProblem):
    """Matter at rest sleeps, stays as it is, and wakes under another gravity to sink as it should.

    Scene: the column of `passive_floor`, whole, on the floor of its walls, damped, for 24 frames; another 24 without damping, with
        and without sleep; then gravity is doubled and it is damped again for 24 frames.
    Exact: without sleep; in the end it sinks by rho g H^2 / (3 M) on average, for twice the gravity, as in `passive_floor`.
    Tolerance: asleep 1 % of a cell; all of it sleeps; in the end 1 % of how far it sinks, against the closed form 3 %.
    """

    name = "matter_sleeps"
    source = "textbook (uniaxial strain)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let a column fall asleep, and wake it."""
        modulus = YOUNG * (1.0 - POISSON) / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON))
        sinks = 2.0 * DENSITY * GRAVITY * (2 * HEIGHT) ** 2 / (3.0 * modulus)
        (asleep, held, woken), (awake, _, without) = (self.sinks(sleeps) for sleeps in (True, False))
        yield Finding(1.0, held, 0.0, "share that sleeps")
        yield Finding(0.0, float(np.abs(asleep - awake).max() / CELL), 0.01, "places of what sleeps [cells]")
        yield Finding.relative(without, woken, 0.01, "sinks, once woken, by [m]")
        yield Finding.relative(sinks, woken, 0.03, "the same by the closed form [m]")

    @staticmethod
    def sinks(sleeps: bool) -> tuple[np.ndarray, float, float]:
        """Return the places after the second spell [m], which share sleeps, and by how much it has sunk in the end [m]."""
        run, start = _column("explicit_apic", 0.0, 0.0)
        run.walls = walled((0, 0, 0), (SIDE, 10, SIDE), SLIP, SLIP, SLIP, OPEN, SLIP, SLIP)
        advance_frames(run, range(1, 25), rate=20.0)
        if sleeps:
            activate(run, sleep(motion=0.01, window=0.25))
        advance_frames(run, range(25, 49))
        rest, held = run.snapshot([])["position"], run.passive.store.count / len(start["position"])
        run.gravity = (0.0, -2.0 * GRAVITY, 0.0)
        advance_frames(run, range(49, 73), rate=20.0)
        return rest, held, -float((run.snapshot([])["position"] - start["position"])[:, 1].mean())
