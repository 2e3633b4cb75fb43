"""Goals and ages: matter arrives where and when it should, and a drain takes what is old, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import AGE, BIRTH, Emitter, Particles
from mpm_nodes.graph.declare import registry
from mpm_nodes.nodes.fields import field_ramp
from mpm_nodes.nodes.fields_of_particles import own
from mpm_nodes.nodes.forces import drain
from mpm_nodes.nodes.goals import GOAL, GOAL_GROUP, GOAL_WEIGHT, force_goal
from mpm_nodes.solver.rearrangement import rearranged
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.forces import PRESETS
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import block, material

CELL, GRAVITY, FPS = 0.1, 9.81, 24.0
WAY = np.array([1.0, 0.5, 0.2])


class ArrivalAtGoal(VerificationProblem):
    """Matter with a goal goes there on a cubic, arrives at its frame at rest, and stays, in gravity; limits are kept.

    Scene: a jelly cube of 4^3 cells of h = 0.1 m in gravity, each goal (1, 0.5, 0.2) m from its particle, frame 25 of 24
        a second, in steps of 5 ms; the same without gravity with a limit of 1 m/s, and of 3 m/s^2.
    Exact: the way 3 s^2 - 2 s^3 at the share s of the time; at the goal at frame 25, and ten frames later.
    Tolerance: 1 % of the way in the middle; h / 10; speed 5 % of the mean speed on arrival, 0.1 % later; nothing beyond the limits.
    """

    name = "arrival_at_goal"
    source = "Bryson and Ho 1975, chapter 5"

    def findings(self) -> Iterator[Finding]:
        """Send it off in three kinds of substeps, and with limits."""
        long = float(np.linalg.norm(WAY))
        for preset, substeps in PRESETS.items():
            if preset not in registry.default().presets:
                continue
            run = sent(substeps, gravity=GRAVITY)
            begin = run.snapshot(["position"])["position"]
            run.advance(0.5)
            yield Finding(0.0, _off(run, begin + 0.5 * WAY) / long, 0.01, f"{preset}: off the cubic in the middle, of the way")
            run.advance(0.5)
            yield Finding(0.0, _off(run, begin + WAY) / CELL, 0.1, f"{preset}: off the goal on arrival, in cells")
            yield Finding(0.0, _fastest(run) / long, 0.05, f"{preset}: speed on arrival, of the mean speed")
            run.advance(10.0 / FPS)
            yield Finding(0.0, _off(run, begin + WAY) / CELL, 0.1, f"{preset}: off the goal ten frames later, in cells")
            yield Finding(0.0, _fastest(run) / long, 1e-3, f"{preset}: speed ten frames later, of the mean speed")
        run, fastest, strongest = sent("explicit_apic", speed_limit=1.0), 0.0, 0.0
        while run.time < 1.0:
            run.step(5e-3)
            fastest = max(fastest, _fastest(run))
        yield Finding(0.0, max(fastest - 1.0, 0.0), 1e-9, "speed beyond its limit [m/s]")
        run, before = sent("explicit_apic", acceleration_limit=3.0), np.zeros(3)
        while run.time < 1.0:
            run.step(5e-3)
            now = column(run, "velocity").mean(axis=0)
            strongest, before = max(strongest, float(np.linalg.norm(now - before)) / 5e-3), now
        yield Finding(0.0, max(strongest - 3.0, 0.0), 1e-9, "acceleration beyond its limit [m/s^2]")


def sent(substeps: Any, gravity: float = 0.0, **limits: float) -> SubstepSolver:
    """Return a jelly cube at rest that is to be further by `WAY` at frame 25, a second later."""
    start = block(material("neo_hookean", youngs_modulus=1e4), (-2 * CELL,) * 3, (2 * CELL,) * 3, CELL)
    goal = {GOAL: start["position"] + WAY, GOAL_WEIGHT: np.ones(len(start)), GOAL_GROUP: np.ones(len(start), np.int32)}
    start = dataclasses.replace(start, attributes={**start.attributes, **goal})
    options = {"cell_size": CELL, "gravity": (0.0, -gravity, 0.0), "dtype": np.float64, "dt_max": 5e-3}
    run = SubstepSolver(start, substeps, **options)
    run.step_context.frame_at, run.step_context.frame_seconds = lambda time: 1.0 + FPS * time, 1.0 / FPS
    push(run, [force_goal(frame=25.0, **limits)])
    return run


def _off(run: SubstepSolver, places: np.ndarray) -> float:
    return float(np.linalg.norm(run.snapshot(["position"])["position"] - places, axis=1).max())


def _fastest(run: SubstepSolver) -> float:
    return float(np.linalg.norm(column(run, "velocity"), axis=1).max())


class WaysToGoals(VerificationProblem):
    """Particles are sent on ways that are nearly as short as they can be.

    Scene: 4,000 places in a ball, and as many in an L of three boxes; a set of places in disorder, moved.
    Exact: the sum of squared ways is at least the sum over the three axes of what the best order along that axis alone gives; moved
        places are found one by one.
    Tolerance: 5 % above the least; 1e-12 m.
    """

    name = "ways_to_goals"
    source = "Puccetti 2017; Villani 2003, theorem 2.18"

    def findings(self) -> Iterator[Finding]:
        """Pair two shapes, and a shape with itself."""
        random, n = np.random.default_rng(2), 4000
        ball = random.normal(size=(n, 3))
        ball *= 0.3 * (random.random((n, 1)) ** (1 / 3)) / np.linalg.norm(ball, axis=1, keepdims=True)
        strokes = (
            np.array([[-0.4, 0.0, 0.2], [-0.2, 0.0, 0.2], [0.0, 0.0, 0.2]]),
            np.array([[0.1, 1, 0.1], [0.3, 0.1, 0.1], [0.3, 0.1, 0.1]]),
        )
        which = random.choice(3, n, p=[0.625, 0.1875, 0.1875])
        letter = strokes[0][which] + random.random((n, 3)) * strokes[1][which]
        spacing = 0.03
        found = rearranged(ball, spacing, letter, spacing)
        least = sum(float(np.square(np.sort(ball[:, k]) - np.sort(letter[:, k])).sum()) for k in range(3))
        yield Finding(1.0, float(np.square(found - ball).sum()) / least, 0.05, "squared ways, of the least along each axis")
        once = np.sort(found.view([("", float)] * 3).ravel()) == np.sort(
            np.ascontiguousarray(letter).view([("", float)] * 3).ravel()
        )
        yield Finding(1.0, float(once.mean()), 0.0, "goals that are reached once")
        moved = ball + [3.0, -1.0, 2.0]
        back = rearranged(ball, spacing, moved[random.permutation(n)], spacing)
        yield Finding(0.0, float(np.abs(back - moved).max()), 1e-12, "places that moved, not found [m]")


class DrainByAge(VerificationProblem):
    """A drain that a field of the age is wired into takes the particles of that age, and no others.

    Scene: a jet of jelly at 2 m/s in free space for 0.5 s in steps of 5 ms; a drain where the age is above 0.203 s.
    Exact: what is left are the particles of the same jet without a drain that are younger, one by one; what went was older by less
        than a step.
    Tolerance: none.
    """

    name = "drain_by_age"
    source = "textbook (uniform motion)"

    def findings(self) -> Iterator[Finding]:
        """Run it with and without the drain."""
        limit, dt = 0.203, 5e-3
        left = _jet()
        left.step_context.drains = (drain(field_ramp(own(AGE), low=limit, high=limit)),)
        whole, went, latest = _jet(), 0, 0.0
        while whole.time < 0.5 - 1e-9:
            whole.step(dt)
            before = left.snapshot(["birth"])
            left.step(dt)
            gone = before["birth"][~np.isin(before["id"], left.snapshot([])["id"])]
            went, latest = went + len(gone), max(latest, float((left.time - gone).max(initial=0.0)) - limit)
        every = whole.snapshot(["birth"])
        young = set(every["id"][whole.time - every["birth"] < limit].tolist())
        yield Finding(0.0, float(len(young ^ set(left.snapshot([])["id"].tolist()))), 0.0, "particles too many or too few")
        yield Finding(float(len(every) - len(young)), float(went), 0.0, "particles that went")
        yield Finding(0.0, max(latest - dt, 0.0), 1e-12, "how much older than a step beyond it [s]")


def _jet() -> SubstepSolver:
    template = block(material("neo_hookean", youngs_modulus=1e4), (0.0,) * 3, (2 * CELL,) * 3, CELL)
    template = dataclasses.replace(template, attributes={**template.attributes, BIRTH: np.zeros(len(template))})
    emitter = Emitter(template, (2.0, 0.0, 0.0))
    nothing = Particles({"position": np.zeros((0, 3))}, (), template.spacing)
    return SubstepSolver(
        nothing, emitters=[emitter], cell_size=CELL, gravity=(0.0, 0.0, 0.0), dtype=np.float64, dt_max=5e-3, origin=(0, 0, 0)
    )
