"""Forces and fields in the axes of a body that moves and turns."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import BodyForce, BodyMotion, GraphSettings, Particles
from mpm_nodes.graph.declare import registry
from mpm_nodes.nodes.fields import NoiseKind, field_noise
from mpm_nodes.nodes.forces import force_acceleration, force_attraction, force_wind
from mpm_nodes.nodes.moving import moving_field, moving_force
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.forces import CELL, PRESETS, pushed
from mpm_nodes.verification.quantities import column, momentum
from mpm_nodes.verification.scenes import block, material

FPS, TURN, SPEED = 24.0, 3.0, 0.4
"""Frames a second; what the axes turn about y [rad/s], and how fast their origin goes along x [m/s]."""


def turning(frames: float = 24.0, speed: float = 0.0) -> BodyMotion:
    """Return axes that turn, and whose origin goes along x, from frame 1 on, with eight keys a frame as colliders have them."""
    at = np.arange(8 * int(frames) + 1) / 8.0
    half = 0.5 * TURN * at / FPS
    turns = np.stack([np.cos(half), 0.0 * half, np.sin(half), 0.0 * half], axis=1)
    return BodyMotion(1.0 + at, turns, np.outer(speed * at / FPS, [1.0, 0.0, 0.0]))


class ForcesInMovingAxes(VerificationProblem):
    """Forces and fields that move with a body act where it is and as it is turned, and still air in it goes along.

    Scene: axes that turn about y at 3 rad/s, for a second, in steps of 2 ms: a jelly cube of 4^3 cells that a thrust of 2 m/s^2
        along their x accelerates; a particle at rest in an attraction of 40 /s^2 whose centre lies 0.3 m off their origin, and
        one 0.2 m off it in still air with a drag of 3 /s, where the origin goes along x at 0.4 m/s. A curl of noise at 2,000
        places, between two keys.
    Exact: with the place x - i z as a complex number: the velocity a / (i W) (exp(i W t) - 1); the driven oscillator
        P exp(i W t) + A exp(i w t) + B exp(-i w t), P = 0.3 w^2 / (w^2 - W^2), at rest at 0; in the axes that only go along
        C exp(p t) + D exp(q t), p and q the roots of s^2 + k s = i k W; the noise R f(R^T (x - t)).
    Tolerance: 1e-4 of a / W, steps take the middle of a thrust that turns; 0.5 % of 0.3 m; 0.5 % of 0.2 m; 1e-9. The attraction
        misses it: kicks before drifts err by the first order of dt, 0.8 % here and 0.4 % in steps of 1 ms.
    """

    name = "moving_axes"
    source = "textbook (driven oscillator, rotating frames)"
    misses = ("place in an attraction that goes round, of its radius",)

    def findings(self) -> Iterator[Finding]:
        """Turn them."""
        thrust, time = 2.0, 1.0
        exact = thrust / (1j * TURN) * (cmath.exp(1j * TURN * time) - 1.0)
        force = moving_force(force_acceleration(acceleration=(thrust, 0.0, 0.0)), turning())
        for preset, substeps in PRESETS.items():
            if preset not in registry.default().presets:
                continue
            run = _on_frames(pushed([force], substeps, dt_max=2e-3))
            run.advance(time)
            v = momentum(run) / column(run, "mass").sum()
            error = abs(complex(v[0], -v[2]) - exact) * TURN / thrust
            yield Finding(0.0, error, 1e-4, f"{preset}: speed by a thrust that turns, of a / W")
        stiff, off = 40.0, 0.3
        own = math.sqrt(stiff)
        spring = force_attraction(centre=(off, 0.0, 0.0), strength=stiff, radius=1.0, falloff=-1.0)
        forced = off * stiff / (stiff - TURN**2)
        ahead, back = -0.5 * forced * (1.0 + TURN / own), -0.5 * forced * (1.0 - TURN / own)
        exact = forced * cmath.exp(1j * TURN * time) + ahead * cmath.exp(1j * own * time) + back * cmath.exp(-1j * own * time)
        place = _way(moving_force(spring, turning()), 0.0, time)
        yield Finding(0.0, abs(place - exact) / off, 5e-3, "place in an attraction that goes round, of its radius")
        drag, off = 3.0, 0.2
        root = cmath.sqrt(drag**2 + 4j * drag * TURN)
        p, q = 0.5 * (-drag + root), 0.5 * (-drag - root)
        first = (-SPEED - q * off) / (p - q)
        exact = SPEED * time + first * cmath.exp(p * time) + (off - first) * cmath.exp(q * time)
        still = force_wind(velocity=(0.0, 0.0, 0.0), drag=drag)
        place = _way(moving_force(still, turning(speed=SPEED)), off, time)
        yield Finding(0.0, abs(place - exact) / off, 5e-3, "place in still air that turns and goes along, of the arm")
        noise = field_noise(GraphSettings(), kind=NoiseKind.CURL, size=0.2)
        frame = 5.53
        turn = rotation_matrix((0.0, math.degrees(TURN * (frame - 1.0) / FPS), 0.0))
        there = np.array([SPEED * (frame - 1.0) / FPS, 0.0, 0.0])
        places = np.random.default_rng(3).uniform(-1.0, 1.0, (2000, 3))
        wanted = field_values(noise, (places - there) @ turn, frame) @ turn.T
        found = field_values(moving_field(noise, turning(speed=SPEED)), places, frame)
        yield Finding(0.0, float(np.abs(found - wanted).max()), 1e-9, "noise in the axes")


def _on_frames(run: SubstepSolver) -> SubstepSolver:
    """Return a solver whose simulated seconds begin at frame 1."""
    run.step_context.frame_at, run.step_context.frame_seconds = lambda time: 1.0 + FPS * time, 1.0 / FPS
    return run


def _way(force: BodyForce, off: float, time: float) -> complex:
    """Return where a particle in free space is after a time [s], as x - i z, that begins at rest on x [m]."""
    eight = block(material("neo_hookean"), (off - 0.05, -0.05, -0.05), (off + 0.05, 0.05, 0.05), CELL)
    columns: dict[str, Any] = {name: each[:1] for name, each in eight.attributes.items()}
    columns["position"] = np.array([[off, 0.0, 0.0]])
    start = Particles(columns, eight.materials, eight.spacing)
    run = _on_frames(SubstepSolver(start, "explicit_apic", cell_size=CELL, gravity=(0, 0, 0), dtype=np.float64, dt_max=2e-3))
    run.step_context.forces = (force,)
    run.advance(time)
    x = column(run, "position")[0]
    return complex(x[0], -x[2])
