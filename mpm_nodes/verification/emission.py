"""Streams: how much they bring, how fast across the nozzle, and how full what they fill becomes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mpm_nodes.data import BIRTH, CurvePath, Emitter, GraphSettings, Particles
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.emit import emit_box, emit_sphere
from mpm_nodes.nodes.fields import FieldShape, ShapeOutput, field_ramp, field_shape
from mpm_nodes.nodes.profiles import parabolic
from mpm_nodes.nodes.streams import FlowUnit, Profile, emit_stream
from mpm_nodes.solver.emission import Stream
from mpm_nodes.solver.metering import MeteredStream
from mpm_nodes.solver.room import filled_share
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SEPARATE, block, material, settle, walled

CELL, GRAVITY = 0.02, 9.81
SETTINGS = GraphSettings(cell_size=CELL, fps=24.0, start=1, end=60)


def nozzle(size: tuple[float, float, float], place: tuple[float, float, float], **liquid: Any) -> Particles:
    """Return a box of a liquid as a template."""
    return emit_box(SETTINGS, material("liquid", **{"bulk_modulus": 2e5, "viscosity": 5.0, **liquid}), size=size, centre=place)


def most_off(emitter: Emitter, seconds: float = 2.0, spans: int = 301) -> tuple[float, int]:
    """Return by how many particles a stream was off its volume at most, and how many came, in spans like those of substeps."""
    stream = MeteredStream(emitter, np.zeros(1, np.int32), Clock.of(SETTINGS))
    off, came = 0.0, 0
    for begin, end in itertools.pairwise([-math.inf, *np.linspace(0.0, seconds, spans)]):
        columns = stream.between(begin, end)
        came += 0 if columns is None else len(columns["position"])
        off = max(off, abs(came - min(stream.volume(end), stream.metering.volume) / stream.each))
    return off, came


class MeteredEmission(VerificationProblem):
    """Streams bring rate x time to a particle, at a rate in m^3/s, in kg/s, keyed, in bursts, up to a volume, with a profile.

    Scene: a nozzle of 8 x 8 cm, 1000 and 1300 kg/m^3, on cells of 2 cm; spans of 1/150 s over 2 s. A round nozzle of 16 spacings in
        radius. A nozzle that travels a quarter of a circle of 0.5 m in 1 s, with half of its velocity.
    Exact: particles V t / V_p; integrals of the keys by hand. Speeds 2 (1 - r^2 / R^2) of their mean. Velocity 0.5 pi / 4 m/s at
        right angles to the arm, at every moment; births on the circle.
    Tolerance: 1 particle; 5 % of the mean speed within 0.9 R; 1e-3 of the speed, 1e-3 of the radius.
    """

    name = "metered_emission"
    source = "textbook (volume; Poiseuille flow)"

    def findings(self) -> Iterator[Finding]:
        """Count what comes."""
        template = nozzle((0.08, 0.04, 0.08), (0.0, 1.0, 0.0), density=1300.0)
        each = float(np.mean(template["volume"]))
        bursts = KeyedNumber([(1, 2e-3, "step"), (7, 0.0, "step"), (13, 1e-3, "linear"), (25, 3e-3, "step")])
        exact = 2e-3 * 6 / 24 + 0.5 * (1e-3 + 3e-3) * 12 / 24 + 3e-3 * 1.0
        cases: dict[str, tuple[dict[str, Any], float]] = {
            "a rate": ({"rate": 2e-3}, 4e-3),
            "a rate in kg/s": ({"rate": 2.6, "rate_unit": FlowUnit.MASS}, 4e-3),
            "bursts and a rise": ({"rate": bursts}, exact),
            "a velocity, up to a volume": ({"volume": 1.2345e-3}, 1.2345e-3),
            "a parabolic profile": ({"rate": 2e-3, "profile": Profile.PARABOLIC}, 4e-3),
        }
        for what, (knobs, volume) in cases.items():
            off, came = most_off(emit_stream(SETTINGS, template, velocity=(0.0, -0.7, 0.0), **knobs))
            yield Finding(0.0, off, 1.0, f"particles off at most, {what}")
            yield Finding(volume / each, float(came), 1.0, f"particles, {what}")
        yield from self._profile()
        yield from self._path(template)

    def _profile(self) -> Iterator[Finding]:
        spacing = 0.5 * CELL
        grid = spacing * (np.stack(np.meshgrid(*[np.arange(-20, 20) + 0.5] * 2), axis=-1).reshape(-1, 2))
        disc = grid[np.hypot(*grid.T) < 16.0 * spacing]
        places = np.column_stack([disc[:, 0], np.zeros(len(disc)), disc[:, 1]])
        share = np.hypot(*disc.T) / math.sqrt(len(disc) * spacing**2 / math.pi)
        speed = parabolic(Particles({"position": places}, (), spacing), np.array([0.0, -1.0, 0.0]))
        off = np.abs(speed - 2.0 * (1.0 - share**2))[share < 0.9]
        yield Finding(0.0, float(off.max()), 0.05, "speed across a round nozzle, of its mean")
        yield Finding(1.0, float(speed.mean()), 1e-12, "its mean")

    def _path(self, template: Particles) -> Iterator[Finding]:
        turns = np.linspace(0.0, 0.5 * math.pi, 2001)
        line = 0.5 * np.column_stack([np.cos(turns), np.zeros(len(turns)), np.sin(turns)])
        travel = KeyedNumber([(1, 0.0, "linear"), (25, 1.0, "linear")])
        emitter = emit_stream(SETTINGS, template, velocity=(0.0, -1e-3, 0.0), rate=1e-4, inherit_velocity=50.0)
        length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
        moving = replace(emitter, path=CurvePath(line, length, travel))
        stream = MeteredStream(moving, np.zeros(1, np.int32), Clock.of(SETTINGS))
        slow, round_off = 0.0, 0.0
        for begin, end in itertools.pairwise(np.linspace(0.01, 0.99, 50)):
            columns = stream.between(begin, end)
            if columns is None:
                continue
            velocity = columns["velocity"][:, [0, 2]]
            slow = max(slow, float(np.abs(np.linalg.norm(velocity, axis=1) - 0.25 * math.pi / 2.0).max()))
            turned = np.arctan2(-velocity[:, 0], velocity[:, 1])  # of the arm, at birth
            born = columns["position"][:, [0, 2]] - (end - turned / (0.5 * math.pi))[:, None] * velocity
            middle = born - 0.5 * np.column_stack([np.cos(turned), np.sin(turned)]) + [0.5, 0.0]
            half = np.abs(template["position"][:, [0, 2]]).max()
            round_off = max(round_off, float(np.abs(middle).max() - half))
        yield Finding(0.0, slow / (0.25 * math.pi / 2.0), 1e-3, "half of the speed along a quarter of a circle, off by")
        yield Finding(0.0, max(round_off, 0.0) / 0.5, 1e-3, "births outside of the nozzle as it travels, of the radius")


class TurningSource(VerificationProblem):
    """A nozzle that follows its path turns its stream, and one that deforms gives births and velocities between frames.

    Scene: a nozzle of 8 x 8 cm that travels a quarter of a circle of 0.5 m in 1 s and follows it, with a stream outward at 0.3 m/s;
        births in spans of 1/50 s. A sheet of 8 x 8 particles, a layer thick, that bends by a sine from frame to frame, another way
        in each, streaming at 0.5 m/s for six frames in spans of 1/150 s.
    Exact: at an angle a of the travel the stream goes out at a, and places lie on the nozzle turned by a; velocities are those of
        the turning body. Particles of the sheet come from where each is by then, straight between frames, and take its velocity
        along; as many come as the speed says.
    Tolerance: 2e-3 of the speed and of the radius; 1e-9 m and m/s; no particle.
    """

    name = "turning_source"
    source = "textbook (rigid motion)"

    def findings(self) -> Iterator[Finding]:
        """Let both stream."""
        yield from self._turning()
        yield from self._deforming()

    @staticmethod
    def _turning() -> Iterator[Finding]:
        turns, speed, rate = np.linspace(0.0, 0.5 * math.pi, 2001), 0.3, 0.5 * math.pi
        line = 0.5 * np.column_stack([np.cos(turns), np.zeros(len(turns)), np.sin(turns)])
        length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
        template = nozzle((0.02, 0.08, 0.08), (0.5, 0.0, 0.0))
        own = {BIRTH: np.zeros(len(template)), "depth": float(template["position"][:, 0].max()) - template["position"][:, 0]}
        template = replace(template, attributes={**template.attributes, **own})
        travel = KeyedNumber([(1, 0.0, "linear"), (25, 1.0, "linear")])
        emitter = emit_stream(SETTINGS, template, velocity=(speed, 0.0, 0.0))
        turning = replace(emitter, path=CurvePath(line, length, travel, follows=True))
        stream = Stream(turning, np.zeros(1, np.int32), Clock.of(SETTINGS))
        off, far, born = 0.0, 0.0, 0
        for begin, end in itertools.pairwise(np.linspace(0.02, 0.98, 49)):
            columns = stream.between(begin, end)
            if columns is None:
                continue
            angle, born = rate * columns[BIRTH], born + len(columns[BIRTH])
            out, along = (np.column_stack([np.cos(a), 0.0 * a, np.sin(a)]) for a in (angle, angle + 0.5 * math.pi))
            front = columns["position"] - (end - columns[BIRTH])[:, None] * columns["velocity"]
            # in the axes of the nozzle: how far out, up and along from its middle
            radius, aside = (front * out).sum(axis=1), (front * along).sum(axis=1)
            edge = float(template["position"][:, 0].max())
            far = max(far, float(np.abs(radius - edge).max()))
            lattice = np.abs(np.subtract.outer(np.concatenate([aside, front[:, 1]]), np.unique(template["position"][:, 2])))
            far = max(far, float(lattice.min(axis=1).max()))
            carried = columns["velocity"] - speed * out
            exact = rate * ((radius - columns["depth"])[:, None] * along - aside[:, None] * out)
            off = max(off, float(np.linalg.norm(carried - exact, axis=1).max()))
        yield Finding(1.0, float(born > 500), 0.0, "whether it streams")
        yield Finding(0.0, far / 0.5, 2e-3, "births outside of the nozzle as it turns, of the radius")
        yield Finding(0.0, off / speed, 2e-3, "velocity less that of stream and nozzle, of that of the stream")

    @staticmethod
    def _deforming() -> Iterator[Finding]:
        spacing, speed, clock = 0.5 * CELL, 0.5, Clock.of(SETTINGS)
        x, z = (each.ravel() * spacing for each in np.meshgrid(np.arange(8.0), np.arange(8.0)))
        flat = np.column_stack([x, 0.0 * x, z])

        def sheet(frame: int) -> np.ndarray:
            turn = 2.0 * frame
            return np.asarray(flat + 0.02 * np.column_stack([np.sin(40.0 * z + turn), 0.0 * x, np.cos(30.0 * x - turn)]))

        def emitter(frame: int) -> Emitter:
            columns = {"position": sheet(frame), BIRTH: np.zeros(64), "tag": np.arange(64.0)}
            template = Particles({**columns, "volume": np.full(64, spacing**3)}, (material("liquid"),), spacing)
            return Emitter(template, (0.0, -speed, 0.0), deforms=True)

        stream, came, off, slip = Stream(emitter(1), np.zeros(1, np.int32), clock), 0, 0.0, 0.0
        for frame in range(2, 8):
            over = clock.over(frame)
            stream.follow(emitter(frame), np.zeros(1, np.int32), over)
            for begin, end in itertools.pairwise(np.linspace(over.begin, over.end, 8)):
                columns = stream.between(begin if begin > 0.0 else -math.inf, end)
                if columns is None:
                    continue
                who, share = columns["tag"].astype(int), ((columns[BIRTH] - over.begin) / (over.end - over.begin))[:, None]
                way = sheet(frame)[who] - sheet(frame - 1)[who]
                exact = way / (over.end - over.begin) + [0.0, -speed, 0.0]
                slip = max(slip, float(np.abs(columns["velocity"] - exact).max()))
                there = sheet(frame - 1)[who] + share * way + (end - columns[BIRTH])[:, None] * exact
                off, came = max(off, float(np.abs(columns["position"] - there).max())), came + len(who)
        yield Finding(0.0, off, 1e-9, "births off the sheet as it bends [m]")
        yield Finding(0.0, slip, 1e-9, "velocity less that of stream and sheet [m/s]")
        layers = math.floor(speed * 6 / 24 / spacing + 1e-9) + 1
        yield Finding(64.0 * layers, float(came), 0.0, "particles of a sheet that bends")


class SurfaceSource(VerificationProblem):
    """A stream leaves a surface along its normals, and out of a plane it is the stream along the plane's normal.

    Scene: a ball of 10 spacings in radius at 1 m/s for 0.3 s in spans of 1/150 s, and at 2e-3 m^3/s. A box of 8 x 8 particles, two
        layers whose distance is that from a horizontal plane, streaming upward; the same as a plain stream.
    Exact: velocities are radial, births lie on the outermost radius; rate x time / V particles; the volume of a shell of two
        spacings for each two spacings of way. Particle by particle the plain stream.
    Tolerance: 1e-3 of the direction; 1e-6 m; 1 particle; 5 %; 1e-9 m.
    """

    name = "surface_source"
    source = "textbook (a ball)"

    def findings(self) -> Iterator[Finding]:
        """Let a ball and a box stream."""
        spacing, radius, clock = 0.5 * CELL, 5 * CELL, Clock.of(SETTINGS)
        ball = emit_sphere(SETTINGS, material("liquid"), radius=radius, centre=(0.0, 0.0, 0.0))
        distance = field_shape(shape=FieldShape.BALL, radius=radius, output=ShapeOutput.DISTANCE)
        emitter = emit_stream(SETTINGS, ball, surface=distance, velocity=(0.0, 1.0, 0.0))
        stream, volume, aside, off = Stream(emitter, np.zeros(1, np.int32), clock), 0.0, 0.0, 0.0
        outermost = float(np.linalg.norm(ball["position"], axis=1).max())
        for begin, end in itertools.pairwise(np.linspace(0.0, 0.3, 46)):
            columns = stream.between(begin, end)
            if columns is None:
                continue
            volume += float(columns["volume"].sum())
            out = columns["position"] / np.linalg.norm(columns["position"], axis=1, keepdims=True)
            aside = max(aside, float(np.linalg.norm(columns["velocity"] - out, axis=1).max()))
            way = (end - begin) * 1.0
            height = np.linalg.norm(columns["position"], axis=1) - outermost
            off = max(off, float(np.maximum(height - way, -height).max()))
        yield Finding(0.0, aside, 1e-3, "velocity less that along the normal, of it")
        yield Finding(0.0, max(off, 0.0), 1e-4 * spacing, "births not between the surface and the way of a span [m]")
        shell = 4.0 / 3.0 * math.pi * (radius**3 - (radius - 2.0 * spacing) ** 3)
        yield Finding.relative(shell * 0.3 / (2.0 * spacing), volume, 0.05, "volume out of a ball [m^3]")
        rated = emit_stream(SETTINGS, ball, surface=distance, velocity=(0.0, 1.0, 0.0), rate=2e-3)
        off_by, came = most_off(rated)
        yield Finding(0.0, off_by, 1.0, "particles off at most, out of a ball at a rate")
        yield Finding(4e-3 / float(np.mean(ball["volume"])), float(came), 1.0, "particles out of a ball at a rate")
        box, up = nozzle((0.08, 0.02, 0.08), (0.0, 0.5, 0.0)), (0.0, 0.5, 0.0)
        plain = emit_stream(SETTINGS, box, velocity=up)
        plane = emit_stream(SETTINGS, box, velocity=(0.3, 0.4, 0.0), surface=field_ramp(low=0.0, high=1.0))
        found = []
        for each in (plain, plane):
            run, parts = Stream(each, np.zeros(1, np.int32), clock), []
            for begin, end in itertools.pairwise([-math.inf, *np.linspace(0.0, 0.3, 46)]):
                columns = run.between(begin, end)
                parts += [] if columns is None else [columns["position"]]
            places = np.concatenate(parts)
            found.append(places[np.lexsort(places.round(6).T)])
        same = len(found[0]) == len(found[1])
        yield Finding(0.0, float(np.abs(found[0] - found[1]).max()) if same else math.inf, 1e-9, "out of a plane, off a stream [m]")


class FilledJar(VerificationProblem):
    """A stream fills a jar to its volume and stops; under matter it presses it aside, and does not pack it.

    Scene: a box of 8 x 8 cells, filled by honey-like liquid of 5 Pa s from 2 cells above its rim until 10 cells of it are full; the
        region is the box and the way down to it, a cell wider. A pool of 20 x 20 x 10 cells with a nozzle of 4 x 4 cells in it,
        0.5 m/s for 0.6 s. The same nozzle at 2 m/s in a closed box of 12 cells, filled for 0.5 s with twice the volume that is
        left in it.
    Exact: volume in the box, and as its level comes to rest; in the pool rate x time, and a density of 1, over cells of two cells.
    Tolerance: 2 particles and 2 % of the level; 2 % of what comes, densities up to 1.1; of the closed box 5 % of its volume and
        densities up to 1.15.
    """

    name = "filled_jar"
    source = "conservation of volume"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Fill them."""
        yield from self._jar()
        due, came, densest, _ = self._pool(60.0, 0.5, 0.6)
        yield Finding.relative(due, came, 0.02, "particles into a pool")
        yield Finding(1.0, densest, 0.1, "densest place under the nozzle")
        _, _, densest, share = self._pool(12.0, 2.0, 0.5)
        yield Finding(1.0, share, 0.05, "matter in a closed box, of its volume")
        yield Finding(1.0, densest, 0.15, "densest place in the closed box")

    def _jar(self) -> Iterator[Finding]:
        wide, deep = 8.0 * CELL, 10.0 * CELL
        region = field_shape(shape=FieldShape.BOX, centre=(0.0, 0.5, 0.0), size=(wide + 2 * CELL, 2.0, wide + 2 * CELL))
        template = nozzle((4 * CELL, 2 * CELL, 4 * CELL), (0.0, 14.0 * CELL, 0.0))
        emitter = emit_stream(SETTINGS, template, region, velocity=(0.0, -1.0, 0.0), volume=wide * wide * deep, rate=4e-3)
        nothing = Particles({"position": np.zeros((0, 3))}, template.materials, template.spacing)
        walls = walled((-0.5 * wide, 0.0, -0.5 * wide), (0.5 * wide, 1.0, 0.5 * wide), SEPARATE)
        run = SubstepSolver(nothing, emitters=[emitter], cell_size=CELL, walls=walls, gravity=(0.0, -GRAVITY, 0.0), dt_max=0.005)
        run.advance(1.6)
        each = float(np.mean(template["volume"]))
        yield Finding(wide * wide * deep / each, float(run.particles.count), 2.0, "particles in a jar")
        settle(run, 0.5, 5.0)
        exact = deep * (1.0 - 2.0 * 1000.0 * GRAVITY * deep / (3.0 * 2e5))
        yield Finding.relative(exact, float(2.0 * column(run, "position")[:, 1].mean()), 0.02, "level of the jar at rest [m]")

    def _pool(self, high: float, speed: float, seconds: float) -> tuple[float, float, float, float]:
        """Return particles due and come, the densest place near the nozzle, and the share of the box that is filled."""
        half, size = 10.0 * CELL, 4.0 * CELL
        template = nozzle((size, 2 * CELL, size), (0.0, 4.0 * CELL, 0.0))
        emitter = emit_stream(SETTINGS, template, velocity=(0.0, -1.0, 0.0), rate=speed * size * size, room_only=True)
        pool = block(template.materials[0], (-half, 0.0, -half), (half, half, half), CELL)
        walls = walled((-half, 0.0, -half), (half, high * CELL, half), SEPARATE)
        run = SubstepSolver(pool, emitters=[emitter], cell_size=CELL, walls=walls, gravity=(0.0, -GRAVITY, 0.0), dt_max=0.005)
        places = np.stack(np.meshgrid(*[np.arange(-0.08, 0.081, 0.01)] * 3), axis=-1).reshape(-1, 3) + [0.0, 0.09, 0.0]
        densest = 0.0
        for _ in range(5):
            run.advance(0.2 * seconds)
            densest = max(densest, float(filled_share(places, run.particles).max()))
        each = float(np.mean(template["volume"]))
        share = float(column(run, "volume").sum()) / (4.0 * half * half * high * CELL)
        return speed * size * size * seconds / each, float(run.particles.count - len(pool)), densest, share
