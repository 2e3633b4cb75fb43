"""The state of the rigid bodies of a solve, and where they are in a substep."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import Collider, RigidBody, StepContext, frozen
from mpm_nodes.kernels.level_sets.level_set import PosedLevelSets
from mpm_nodes.physics.rigid_bodies.numerics.model import MOTORISED
from mpm_nodes.physics.rigid_bodies.numerics.pushes import pushed
from mpm_nodes.physics.rigid_bodies.numerics.world import RigidWorld
from mpm_nodes.solver.moved_bodies import MovedBodies
from mpm_nodes.solver.stores import Saved

if TYPE_CHECKING:
    from mpm_nodes.solver.walls import WallSet

__all__ = ["RigidBodies", "speed_of_keys"]


class RigidBodies(MovedBodies):
    """All rigid bodies of a solve. Their model follows from a frame's colliders alone, so that a solve that resumes has the same.

    Args:
        colliders: Those of the solve as it begins: the bodies begin where the frame ends that these were made for, as fast as
            keys moved them then.
        pace: Simulated seconds per second of the shot in that frame.

    Attributes:
        names_of_bodies: The names of the rigid ones.
        slope: What implicit substeps have learnt of how matter answers (`implicit_coupling`), square; empty: nothing.
        slopes: The same of the stages that meet bodies one after the other (`agreement`), by their names.
        pushes: How fast matter changed the bodies' velocities in them, in the substep before, times the bodies' reach, shape (n, 6)
            [m/s^2].
        given: Impulses of the matter that earlier stages of the substep have found, and their moments, shape (n, 6) [N s, N m s].
    """

    def __init__(self, colliders: Sequence[Collider], pace: float = 1.0) -> None:
        self.names_of_bodies = tuple(each.rigid.name for each in colliders if each.rigid is not None)
        self._joints = tuple(_joint_of(each.rigid) for each in colliders if each.rigid is not None)
        self._world: RigidWorld | None = None
        self._restored = np.zeros(0)
        self.times = np.zeros(2)
        shapes = [each.shape for each in colliders if each.rigid is not None]
        self.turns = np.array([[shape.rotations[end] for shape in shapes] for end in (0, -1)])
        self.places = np.array([[shape.translations[end] for shape in shapes] for end in (0, -1)])
        self._first = self.turns[1].copy(), self.places[1].copy()
        self._carried = np.array([speed_of_keys(shape) for shape in shapes]) / pace
        self._begun = self.turns[0].copy(), self.places[0].copy()
        self._fallen: set[str] = set()
        self._moves = False
        self.slope = np.zeros((0, 0))
        self.slopes, self.pushes = dict[str, np.ndarray](), dict[str, np.ndarray]()
        self.given = np.zeros((len(self.names_of_bodies), 6))

    def has_moved(self, step: StepContext) -> bool:
        """See `MovedBodies`."""
        return bool((self.times == (step.time, step.time + step.dt)).all())

    @property
    def world(self) -> RigidWorld:
        """MuJoCo's model in this frame."""
        assert self._world is not None
        return self._world

    @property
    def numbers(self) -> np.ndarray:
        """See `MovedBodies`."""
        return self.world.places

    @property
    def starts(self) -> np.ndarray:
        """See `MovedBodies`."""
        return self.world.starts

    def centres(self) -> np.ndarray:
        """See `MovedBodies`."""
        return self.world.centres()

    @property
    def has_begun(self) -> bool:
        """See `MovedBodies`."""
        return self._world is not None

    def begin_frame(self, colliders: Sequence[Collider], walls: WallSet, origin: np.ndarray, cell_size: float, time: float) -> None:
        """Make the model of a frame, with the bodies where they are."""
        state = self._state()
        begins = [*zip(*self._first, strict=True)]
        self._world = RigidWorld(colliders, begins, self._carried, walls, (origin, cell_size), self._world)
        if len(state):
            self._world.come_back(state)
        self.times[:] = time
        self.turns, self.places = (np.stack([each, each]) for each in self._world.poses())
        self._begun = self.turns[1].copy(), self.places[1].copy()

    def over_the_frame(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """See `MovedBodies`."""
        turns, places = np.stack([self._begun[0], self.turns[1]], axis=1), np.stack([self._begun[1], self.places[1]], axis=1)
        return {name: (frozen(turns[k]), frozen(places[k])) for k, name in enumerate(self.names_of_bodies)}

    def place_others(self, real: np.ndarray, dt: float) -> None:
        """See `MovedBodies`."""
        self.world.place_others(real, dt)

    def begin_substep(self) -> None:
        """See `Store`: the bodies stand where a substep begins."""
        self._moves = False

    def begin_move(self, step: StepContext) -> None:
        """See `MovedBodies`."""
        if self._moves:  # once more, over a shorter one
            self.world.go_back()
        else:
            self.world.go_on()
        self._moves = True
        self.given[:] = 0.0
        time, dt, self._dt, self._gravity = step.time, step.dt, step.dt, step.gravity
        self._pushed = np.zeros((len(self.names_of_bodies), 6))
        if step.forces:
            self._pushed = pushed(self.world, step.forces, step.moment(0.5 * dt), dt)
        self.times[:] = time, time + dt
        self.turns[0], self.places[0] = self.world.poses()
        self.move(np.zeros((len(self.names_of_bodies), 6)))

    def move(self, impulses: np.ndarray) -> None:
        """Move the bodies through that substep once more, with impulses on them, shape (n, 6) (see `RigidWorld.advance`)."""
        self.world.advance(self._dt, self._gravity, impulses + self._pushed)
        self.turns[1], self.places[1] = self.world.poses()
        same = (self.turns[0] * self.turns[1]).sum(axis=1, keepdims=True) >= 0.0
        self.turns[1] = np.where(same, self.turns[1], -self.turns[1])

    def speeds(self, matter: np.ndarray) -> Iterator[tuple[str, float, float]]:
        """See `MovedBodies`."""
        for (name, speed), clear in zip(self.largest_speeds(), self.world.clearances(matter), strict=True):
            yield name, speed, float(clear)

    def largest_speeds(self) -> Iterator[tuple[str, float]]:
        """See `MovedBodies`."""
        for name, twist, reach in zip(self.names_of_bodies, self.world.twists(), self.world.reach, strict=True):
            yield name, float(np.linalg.norm(twist[:3]) + np.linalg.norm(twist[3:]) * reach)

    def newly_fallen(self, matter: np.ndarray, gravity: Sequence[float]) -> list[str]:
        """Return the names of bodies that have fallen below all that they could meet (see `RigidWorld.fallen`), each once."""
        fallen = self.world.fallen(matter, np.array(gravity, float))
        names = [name for name, gone in zip(self.names_of_bodies, fallen, strict=True) if gone and name not in self._fallen]
        self._fallen.update(names)
        return names

    def kind(self) -> dict[str, Any]:
        """See `Store`."""
        return {"names": list(self.names_of_bodies), "joints": list(self._joints)}

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`."""
        tables = {"state": self._state(), "turns": self.turns, "places": self.places, "times": self.times}
        tables |= {"first turns": self._first[0], "first places": self._first[1], "carried": self._carried}
        tables |= {"slope": self.slope, "given": self.given}
        tables |= {f"slope {name}": slope for name, slope in self.slopes.items()}
        tables |= {f"push {name}": push for name, push in self.pushes.items()}
        return Saved({}, {}, {name: table.copy() if copy else table for name, table in tables.items()})

    def restore(self, saved: Saved) -> None:
        """See `Store`; before the first frame there is no model to put it into."""
        self._restored = saved.tables["state"].copy()
        self.turns, self.places, self.times = (saved.tables[name].copy() for name in ("turns", "places", "times"))
        self._first = saved.tables["first turns"].copy(), saved.tables["first places"].copy()
        self._carried, self.slope = saved.tables["carried"].copy(), saved.tables["slope"].copy()
        self.given = saved.tables["given"].copy() if "given" in saved.tables else np.zeros_like(self._carried)
        for known, prefix in ((self.slopes, "slope "), (self.pushes, "push ")):
            known.clear()
            known.update((name[len(prefix) :], table.copy()) for name, table in saved.tables.items() if name.startswith(prefix))
        if self._world is not None:
            self._world.come_back(self._restored)

    def _state(self) -> np.ndarray:
        """Return MuJoCo's state; nothing before the first frame."""
        return self._restored if self._world is None else self._world.state()


def _joint_of(rigid: RigidBody) -> str:
    """Return in words what MuJoCo's state of a body hangs on: what it may do, by which body, and whether there could be a motor."""
    joint = rigid.joint
    if joint is None:
        return f"{rigid.name} free"
    by = f" by {joint.parent}" if joint.parent else ""
    return f"{rigid.name} {joint.kind.value}{by}{' with a motor' if joint.kind in MOTORISED else ''}"


def speed_of_keys(shape: PosedLevelSets) -> np.ndarray:
    """Return how fast keys move a shape at their end, its frame's (v, w) per second of the shot, shape (6,) [m/s, rad/s]."""
    times = shape.pose_times
    if len(times) < 2 or not times[-1] > times[-2]:
        return np.zeros(6)
    before, after = shape.rotations[-2:]
    w, x, y, z = before * (1.0, -1.0, -1.0, -1.0)
    a, b, c, d = after
    turn = np.array([a * w - b * x - c * y - d * z, a * x + b * w + c * z - d * y, a * y - b * z + c * w + d * x])
    turn = np.append(turn, a * z + b * y - c * x + d * w)
    turn *= 1.0 if turn[0] >= 0.0 else -1.0
    sine = float(np.linalg.norm(turn[1:]))
    angle = 2.0 * math.atan2(sine, turn[0])
    spin = turn[1:] * (angle / sine if sine > 0.0 else 0.0)
    return np.concatenate([shape.translations[-1] - shape.translations[-2], spin]) / (times[-1] - times[-2])
