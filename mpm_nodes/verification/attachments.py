"""Springs that tie matter: how far they stretch, how they swing, when they break, what they bear."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import BodyForce, FrameContext, GraphSettings
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.attachments import force_attach, with_attachments
from mpm_nodes.nodes.fields import FieldShape, field_shape
from mpm_nodes.nodes.forces import force_wind
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.forces import PRESETS
from mpm_nodes.verification.quantities import column, momentum
from mpm_nodes.verification.scenes import block, changed, material

CELL, GRAVITY, FPS = 0.1, 9.81, 24.0
SQUARE = 400.0
"""Stiffness over mass of what is tied [1/s^2]: it swings with a period of 0.314 s."""


def tied(
    forces: Callable[[float], list[BodyForce]],
    substeps: Any = "explicit_apic",
    *,
    gravity: Any = (0.0, -GRAVITY, 0.0),
    velocity: Any = (0.0, 0.0, 0.0),
    sides: tuple[int, int, int] = (4, 4, 4),
    dt_max: float = 2e-3,
) -> SubstepSolver:
    """Return a jelly block around the origin with forces, which its mass [kg] says; 24 frames a second from frame 1 on.

    Args:
        forces: Returns them.
        substeps: Substep graph.
        gravity: [m/s^2], or a function of the time.
        velocity: That it begins with [m/s].
        sides: [cells].
        dt_max: Longest substep [s].
    """
    half = 0.5 * CELL * np.array(sides)
    start = block(material("neo_hookean", youngs_modulus=4e4), -half, half, CELL)
    start = changed(start, velocity=np.tile(np.asarray(velocity, float), (len(start), 1)))
    mass = float(np.prod(sides)) * CELL**3 * start.materials[0].density
    wired = forces(mass)
    (source,), _ = with_attachments([start], [], wired)
    run = SubstepSolver(source, substeps, cell_size=CELL, gravity=gravity, dtype=np.float64, dt_max=dt_max)
    run.step_context.frame_at, run.step_context.frame_seconds = lambda time: 1.0 + FPS * time, 1.0 / FPS
    push(run, wired)
    return run


def attached(**knobs: Any) -> BodyForce:
    """Return a `force_attach` of a shot of many frames."""
    return force_attach(FrameContext(2, GraphSettings(cell_size=CELL, end=1000)), **knobs)


def borne(run: SubstepSolver, duration: float) -> dict[str, Any]:
    """Run on; return what attachments tell: mean forces [N], shape (n, 3), ties that hold, and those that broke, shape (n,)."""
    step = run.step_context
    step.frame += 1
    step.frame_seconds = duration
    run.advance(duration)
    told = step.report["attachments"]
    return {"force": np.array(told["force"]).reshape(-1, 3), "tied": np.array(told["tied"]), "broken": np.array(told["broken"])}


def _height(run: SubstepSolver) -> float:
    return float(column(run, "position")[:, 1].mean())


class AttachedMatter(VerificationProblem):
    """What is tied hangs as deep, swings as slowly and bears as much as its spring says, and falls freely once it is let go.

    Scene: a jelly cube of 4^3 cells of 0.1 m, mass m, tied as a whole with k = 400 m N/m, explicit, implicit and projected: in
        gravity with critical damping, for 1 s; without, undamped, pushed to 0.5 m/s; let go by a key at frame 25, a second later. A
        bar of 2 x 8 x 2 cells that is tied by its upper quarter, at k = 4000 m, with drag until it rests; with a breaking force F,
        its weight growing to 0.9 F and 1.1 F.
    Exact: sag m g / k; period 2 pi sqrt(m / k); told force m g; after frame 25 the velocity -g t, and no force; the weight of the
        bar; no tie breaks, and all do.
    Tolerance: 1e-3; 0.5 %; 1e-3 of m g; 1e-6 of it; 1e-3 of the bar's weight; none.
    """

    name = "attached_matter"
    source = "textbook (harmonic oscillator)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Hang it, swing it, load it, let it go."""
        for preset, substeps in PRESETS.items():
            if preset not in registry.default().presets:
                continue
            dt = 2e-3 if preset == "explicit_apic" else 5e-3
            run = tied(lambda mass: [attached(stiffness=SQUARE * mass)], substeps, dt_max=dt)
            weight = float(column(run, "mass").sum()) * GRAVITY
            before = _height(run)
            run.advance(1.0)
            yield Finding.relative(GRAVITY / SQUARE, before - _height(run), 1e-3, f"{preset}: sag [m]")
            yield Finding.relative(-weight, float(borne(run, 0.1)["force"][0, 1]), 1e-3, f"{preset}: force on what holds it [N]")
            yield Finding.relative(2.0 * math.pi / math.sqrt(SQUARE), _period(substeps), 5e-3, f"{preset}: period [s]")
            yield from self._let_go(preset, substeps, dt)
            run = tied(_hung, substeps, sides=(2, 8, 2), dt_max=dt)
            weight = float(column(run, "mass").sum()) * GRAVITY
            run.advance(2.0)
            yield Finding.relative(-weight, float(borne(run, 0.1)["force"][0, 1]), 1e-3, f"{preset}: force on the end of a bar [N]")
            for share, exact in ((0.9, 0.0), (1.1, 1.0)):
                broken = self._loaded(substeps, share, dt)
                yield Finding(exact, broken, 0.0, f"{preset}: share of ties that break at {share} of the breaking force")

    @staticmethod
    def _loaded(substeps: Any, share: float, dt: float) -> float:
        """Return the share of the ties of a bar that break as its weight grows for a second to that share of the breaking force."""

        def gravity(time: float) -> tuple[float, float, float]:
            return (0.0, -GRAVITY * min(time, 1.0), 0.0)

        run = tied(lambda mass: _hung(mass, mass * GRAVITY / share), substeps, gravity=gravity, sides=(2, 8, 2), dt_max=dt)
        found = borne(run, 1.5)
        return float(found["broken"][0] / (found["broken"][0] + found["tied"][0]))

    @staticmethod
    def _let_go(preset: str, substeps: Any, dt: float) -> Iterator[Finding]:
        def kept(mass: float) -> list[BodyForce]:
            return [attached(stiffness=KeyedNumber([(1, SQUARE * mass, "step"), (25, 0.0, "step")]))]

        run = tied(kept, substeps, dt_max=dt)
        run.advance(1.0)
        mass = float(column(run, "mass").sum())
        before = float(momentum(run)[1])
        found = borne(run, 0.1)
        yield Finding.relative(-0.1 * GRAVITY, (float(momentum(run)[1]) - before) / mass, 1e-6, f"{preset}: speed let go [m/s]")
        yield Finding(0.0, float(np.abs(found["force"]).max()), 0.0, f"{preset}: force let go [N]")


def _period(substeps: Any) -> float:
    """Return the time between two passages of an undamped swing through the middle, in one direction [s]."""
    dt = 1e-3
    run = tied(
        lambda mass: [attached(stiffness=SQUARE * mass, damping=0.0)],
        substeps,
        gravity=(0.0, 0.0, 0.0),
        velocity=(0.5, 0.0, 0.0),
        dt_max=dt,
    )
    passed, before = list[float](), 0.0
    while len(passed) < 2 and run.time < 1.0:
        run.step(dt)
        place = float(column(run, "position")[:, 0].mean())
        if before < 0.0 <= place:
            passed.append(run.time - dt * place / (place - before))
        before = place
    return passed[1] - passed[0] if len(passed) == 2 else math.inf


def _hung(mass: float, breaking_force: float = 0.0) -> list[BodyForce]:
    """Tie the upper quarter of a bar, and let drag bring it to rest."""
    upper = field_shape(shape=FieldShape.HALF_SPACE, centre=(0.0, 2.0 * CELL, 0.0), rotation=(180.0, 0.0, 0.0))
    return [
        force_wind(velocity=(0.0, 0.0, 0.0), drag=20.0),
        attached(mask=upper, stiffness=10.0 * SQUARE * mass, breaking_force=breaking_force),
    ]
