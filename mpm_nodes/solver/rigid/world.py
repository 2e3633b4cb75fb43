"""MuJoCo's model of the rigid bodies of a solve, and of the colliders and walls that they meet.

Bodies, their inertia and the contacts among them are MuJoCo's (Todorov 2012); what the matter does to them comes as impulses. Poses
are those of the colliders' own frames, in the world. Velocities are (v, w): of the centre of mass [m/s], and of the turn [rad/s].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import Collider, MpmNodesError
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP, STICKY
from mpm_nodes.kernels.level_sets.level_set import BOX, CAPSULE, PLANE, SPHERE
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

if TYPE_CHECKING:
    from mpm_nodes.solver.walls import WallSet

__all__ = ["RigidWorld"]

SAG = 0.01
"""How deep a body sinks into another by its own weight [cells]: contacts of bodies are stiff springs."""
WEIGHT = 9.81
"""Acceleration for which that holds [m/s^2]."""
LEAST_DAMPED, MOST_DAMPED = 1e-3, 3.0
"""Damping ratios of contacts of bodies: the second keeps 2.4 % of the speed; one with more would need shorter steps."""
UPRIGHT = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
"""Turn from our planes and capsules, which stand along y, to MuJoCo's, along z."""
FREE = 7
"""Numbers of a pose: three of a place, four of a quaternion (w, x, y, z)."""


class RigidWorld:
    """The bodies of a solve over one frame.

    Args:
        colliders: All of the solve; those with a `rigid` move by themselves.
        walls: Walls of the domain.
        origin: Point that walls are measured from [m].
        cell_size: Grid spacing h [m]: contacts among bodies give way by a small part of it.

    Attributes:
        places: Of each rigid body its place among the colliders, shape (n,).
        reach: How far each reaches from its centre of mass [m], shape (n,).
        starts: Centres of mass as the substep began [m], shape (n, 3).

    Raises:
        MpmNodesError: A body has no mesh, or none that bounds a volume.
    """

    def __init__(self, colliders: Sequence[Collider], walls: WallSet, origin: np.ndarray, cell_size: float) -> None:
        import mujoco

        self._library = mujoco
        self.places = np.array([b for b, each in enumerate(colliders) if each.rigid is not None], np.int64)
        self._moved = [b for b, each in enumerate(colliders) if each.rigid is None]
        self._colliders, self._walls, self._origin = tuple(colliders), walls, origin
        self._stiffness = math.sqrt(WEIGHT / (SAG * cell_size))
        spec = mujoco.MjSpec()
        spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
        for b, collider in enumerate(colliders):
            self._add(spec, b, collider, 0.05 * cell_size)
        self._sides = [side for side in range(6) if walls.rules[side] in (STICKY, SLIP, SEPARATE)]
        for side in self._sides:
            geom = spec.worldbody.add_body(name=f"wall {side}", mocap=True).add_geom(
                type=mujoco.mjtGeom.mjGEOM_PLANE, size=(1.0, 1.0, 1.0), friction=(float(walls.rules[6]), 0.0, 0.0)
            )
            geom.solmix = 0.0
        try:
            self._model = spec.compile()
        except ValueError as error:
            raise MpmNodesError(f"rigid_body: its mesh bounds no volume ({error}); close it, and turn its faces outwards") from None
        self._data = mujoco.MjData(self._model)
        numbers = [self._model.body(str(b)).id for b in range(len(colliders))]
        self._bodies = np.array(numbers, np.int64)[self.places]
        self._mocaps = [int(self._model.body_mocapid[numbers[b]]) for b in self._moved]
        self._planes = [int(self._model.body(f"wall {side}").mocapid[0]) for side in self._sides]
        self._kind = mujoco.mjtState.mjSTATE_INTEGRATION
        self._start = np.empty(mujoco.mj_stateSize(self._model, self._kind))
        self._first(colliders)
        self.reach = np.array([self._reach(body) for body in self._bodies])

    # ---------------------------------------------------------------- building
    def _add(self, spec: Any, b: int, collider: Collider, width: float) -> None:
        """Add a collider: its frame is that of the body."""
        mujoco, rigid, shape = self._library, collider.rigid, collider.shape
        body = spec.worldbody.add_body(name=str(b), mocap=rigid is None)
        if rigid is not None:
            body.add_freejoint()
        given: dict[str, Any] = {"friction": (collider.friction, 0.0, 0.0)}
        if shape.kind == SPHERE:
            given |= {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": (shape.sizes[0], 0.0, 0.0)}
        elif shape.kind == BOX:
            given |= {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": shape.sizes}
        elif shape.kind == CAPSULE:
            given |= {"type": mujoco.mjtGeom.mjGEOM_CAPSULE, "size": (*shape.sizes, 0.0), "quat": UPRIGHT}
        elif shape.kind == PLANE:
            given |= {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": (1.0, 1.0, 1.0), "quat": UPRIGHT}
        elif collider.mesh is None and rigid is None:
            return  # there is nothing to meet
        else:
            _add_mesh(mujoco, spec, b, collider)
            given |= {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": str(b)}
        geom = body.add_geom(**given)
        geom.solimp = (0.95, 0.95, width, 0.5, 2.0)
        if rigid is None:
            geom.solmix = 0.0
            return
        geom.density = rigid.density
        damping = _damping(rigid.restitution)
        geom.solref = (1.0 / (damping * self._stiffness), damping)

    def _first(self, colliders: Sequence[Collider]) -> None:
        """Put every body where its collider begins."""
        mujoco, model, data = self._library, self._model, self._data
        for body, b in zip(self._bodies, self.places, strict=True):
            shape, joint = colliders[b].shape, model.body_jntadr[body]
            at = model.jnt_qposadr[joint]
            data.qpos[at : at + 3], data.qpos[at + 3 : at + FREE] = shape.translations[0], shape.rotations[0]
        mujoco.mj_forward(model, data)
        twists = np.zeros((len(self._bodies), 6))
        for k, b in enumerate(self.places):
            rigid = colliders[b].rigid
            assert rigid is not None
            twists[k] = *rigid.velocity, *rigid.angular_velocity
        self._set_twists(twists)
        mujoco.mj_forward(model, data)
        self.go_on()

    def _set_twists(self, twists: np.ndarray) -> None:
        """Write velocities of free bodies: MuJoCo has those of the frame's origin, and turns in the frame."""
        model, data = self._model, self._data
        for body, (v, w) in zip(self._bodies, twists.reshape(-1, 2, 3), strict=True):
            at = model.jnt_dofadr[model.body_jntadr[body]]
            turn = data.xmat[body].reshape(3, 3)
            data.qvel[at : at + 3] = v - np.cross(w, data.xipos[body] - data.xpos[body])
            data.qvel[at + 3 : at + 6] = turn.T @ w

    def _reach(self, body: int) -> float:
        geom = int(self._model.body_geomadr[body])
        return float(self._model.geom_rbound[geom] + np.linalg.norm(self._data.geom_xpos[geom] - self._data.xipos[body]))

    # ---------------------------------------------------------------- the state
    def state(self) -> np.ndarray:
        """Return all that MuJoCo goes on from."""
        self._data.xfrc_applied[:] = 0.0
        state = np.empty_like(self._start)
        self._library.mj_getState(self._model, self._data, state, self._kind)
        return state

    def come_back(self, state: np.ndarray) -> None:
        """Go on from what `state` returned."""
        self._library.mj_setState(self._model, self._data, state, self._kind)
        self._library.mj_forward(self._model, self._data)

    def go_on(self) -> None:
        """Begin a substep where the bodies are now."""
        self._start, self.starts = self.state(), self.centres()

    def poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return quaternions (w, x, y, z), shape (n, 4), and places [m], shape (n, 3), of the bodies' frames."""
        return self._data.xquat[self._bodies].copy(), self._data.xpos[self._bodies].copy()

    def centres(self) -> np.ndarray:
        """Return the centres of mass [m], shape (n, 3)."""
        return np.array(self._data.xipos[self._bodies])

    def twists(self) -> np.ndarray:
        """Return the velocities (v, w), shape (n, 6)."""
        found, row = np.empty((len(self._bodies), 6)), np.empty(6)
        for k, body in enumerate(self._bodies):
            self._library.mj_objectVelocity(self._model, self._data, self._library.mjtObj.mjOBJ_BODY, body, row, 0)
            found[k, :3], found[k, 3:] = row[3:], row[:3]
        return found

    def momenta(self) -> np.ndarray:
        """Return momentum [N s] and angular momentum about the centre of mass [N m s] of each body, shape (n, 6)."""
        found = self.twists()
        for k, body in enumerate(self._bodies):
            turn = self._data.ximat[body].reshape(3, 3)
            found[k, :3] *= self._model.body_mass[body]
            found[k, 3:] = turn @ (self._model.body_inertia[body] * (turn.T @ found[k, 3:]))
        return found

    # ---------------------------------------------------------------- moving
    def place_others(self, bodies_real: np.ndarray, pose_at: int) -> None:
        """Put colliders and walls where the substep ends.

        Args:
            bodies_real: `Bodies.real`, posed.
            pose_at: Column of the pose at the end: nine of the turn, three of the place.
        """
        mujoco, data = self._library, self._data
        for number, b in zip(self._mocaps, self._moved, strict=True):
            row = bodies_real[b, pose_at : pose_at + 12]
            mujoco.mju_mat2Quat(data.mocap_quat[number], np.ascontiguousarray(row[:9]))
            data.mocap_pos[number] = row[9:] + self._origin
        for number, side in zip(self._planes, self._sides, strict=True):
            axis, high = side >> 1, side & 1
            normal = np.zeros(3)
            normal[axis] = 1.0 - 2.0 * high
            mujoco.mju_quatZ2Vec(data.mocap_quat[number], normal)
            place = np.zeros(3)
            place[axis] = self._walls.box[high, axis] + self._origin[axis]
            data.mocap_pos[number] = place

    def advance(self, dt: float, gravity: Sequence[float], impulses: np.ndarray) -> None:
        """Move the bodies by a substep, from where they were as it began.

        Args:
            dt: Its length [s].
            gravity: [m/s^2].
            impulses: On each body at its centre of mass, and their moments about it, shape (n, 6) [N s, N m s].
        """
        mujoco, model, data = self._library, self._model, self._data
        mocap = data.mocap_pos.copy(), data.mocap_quat.copy()
        mujoco.mj_setState(model, data, self._start, self._kind)
        data.mocap_pos[:], data.mocap_quat[:] = mocap
        model.opt.timestep, model.opt.gravity[:] = dt, gravity
        data.xfrc_applied[:] = 0.0
        data.xfrc_applied[self._bodies] = impulses / dt
        mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)

    def kick(self, impulses: np.ndarray) -> None:
        """Give the bodies impulses where they are now (see `advance`)."""
        model, data = self._model, self._data
        change = np.zeros((1, model.nv))
        for row, jacobian in zip(impulses, self._jacobians(), strict=True):
            change += row @ jacobian
        solved = np.empty_like(change)
        self._library.mj_solveM(model, data, solved, change)
        data.qvel[:] += solved[0]
        self._library.mj_forward(model, data)

    def inverse_masses(self) -> np.ndarray:
        """Return how velocities (v, w) follow from impulses, shape (6 n, 6 n), without contacts among the bodies."""
        jacobian = np.concatenate(self._jacobians())
        solved = np.empty_like(jacobian)
        self._library.mj_solveM(self._model, self._data, solved, jacobian)
        return np.asarray(jacobian @ solved.T)

    def _jacobians(self) -> list[np.ndarray]:
        """Return of each body how (v, w) follows from MuJoCo's velocities, shape (6, nv)."""
        found = []
        for body in self._bodies:
            moves, turns = np.zeros((3, self._model.nv)), np.zeros((3, self._model.nv))
            self._library.mj_jacBodyCom(self._model, self._data, moves, turns, body)
            found.append(np.concatenate([moves, turns]))
        return found


def _add_mesh(mujoco: Any, spec: Any, b: int, collider: Collider) -> None:
    """Add the mesh of a collider in the collider's own frame, as triangles."""
    mesh, shape = collider.mesh, collider.shape
    if mesh is None:
        raise MpmNodesError(f"rigid_body: collider '{collider.name}' has no mesh to weigh; take another collide node")
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, shape.rotations[-1])
    triangles, _ = triangulate(mesh.counts, mesh.indices)
    added = spec.add_mesh(name=str(b))
    added.uservert = ((mesh.points - shape.translations[-1]) @ turn.reshape(3, 3)).ravel()
    added.userface = triangles.ravel()
    if collider.rigid is not None:
        added.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_EXACT


def _damping(restitution: float) -> float:
    """Return the damping ratio of a contact that keeps this share of the speed.

    A mass on a spring with a damper leaves where their force is 0, with exp(-2 d / s atan(s / d)) of its speed, s = sqrt(1 - d^2);
    beyond d = 1 with exp(-2 d / s atanh(s / d)), s = sqrt(d^2 - 1).
    """
    low, high = 0.0, MOST_DAMPED
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _kept(middle) > restitution else (low, middle)
    return max(high, LEAST_DAMPED)


def _kept(damping: float) -> float:
    """Return the share of the speed that a contact keeps (see `_damping`)."""
    root = math.sqrt(abs(1.0 - damping * damping))
    if root < 1e-6:
        return math.exp(-2.0)
    angle = math.atan2(root, damping) if damping < 1.0 else math.atanh(root / damping)
    return math.exp(-2.0 * damping / root * angle)
