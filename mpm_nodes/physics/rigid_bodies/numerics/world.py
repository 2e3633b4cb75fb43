"""MuJoCo's model of the rigid bodies of a solve, and of the colliders and walls that they meet.

Bodies, their inertia and the contacts among them are MuJoCo's (Todorov 2012); what the matter does to them comes as impulses. Poses
are those of the colliders' own frames, in the world. Velocities are (v, w): of the centre of mass [m/s], and of the turn [rad/s].
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import Collider, RigidBody
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP, STICKY
from mpm_nodes.kernels.level_sets.level_set import PLANE, POSE
from mpm_nodes.physics.rigid_bodies.numerics.model import MOTORISED, box_of, fingerprint, mass_unit, model_of, wall_name

if TYPE_CHECKING:
    from mpm_nodes.solver.walls import WallSet

__all__ = ["RigidWorld"]

ROUNDING = 1e-9
"""Share by which the force of a motor stays below its strength where it must not be clamped."""


class RigidWorld:
    """The bodies of a solve over one frame.

    Args:
        colliders: All of the solve; those with a `rigid` move by themselves.
        begins: Quaternion (w, x, y, z) and place [m] of each of these as the solve begins.
        carried: How fast keys moved the frame of each until then, (v, w), shape (n, 6) [m/s, rad/s].
        walls: Walls of the domain.
        measures: Point that walls are measured from [m], and grid spacing h [m]: contacts among bodies give way by a small part
            of it.
        before: The world of the frame before: where nothing but places differs its model serves again.

    Attributes:
        places: Of each rigid body its place among the colliders, shape (n,).
        reach: How far each reaches from its centre of mass [m], shape (n,).
        starts: Centres of mass as the substep began [m], shape (n, 3).

    Raises:
        MpmNodesError: See `model_of`.
    """

    UNSTABLE = ("BADQPOS", "BADQVEL", "BADQACC")

    def __init__(
        self,
        colliders: Sequence[Collider],
        begins: Sequence[tuple[np.ndarray, np.ndarray]],
        carried: np.ndarray,
        walls: WallSet,
        measures: tuple[np.ndarray, float],
        before: RigidWorld | None = None,
    ) -> None:
        import mujoco

        self._library = mujoco
        if mujoco.get_mju_user_warning() is None:  # else MuJoCo writes a file into the working folder
            mujoco.set_mju_user_warning(_pass_on)
        origin, cell_size = measures
        self.places = np.array([b for b, each in enumerate(colliders) if each.rigid is not None], np.int64)
        self._moved = [b for b, each in enumerate(colliders) if each.rigid is None]
        self._walls, self._origin = walls, origin
        self._sides = [side for side in range(6) if walls.rules[side] in (STICKY, SLIP, SEPARATE)]
        given = colliders, begins, self._sides, float(walls.rules[6]), cell_size
        self._names = [each.rigid.name for each in colliders if each.rigid is not None]
        self._fingerprint, self._unit = fingerprint(*given), mass_unit(colliders, cell_size)
        known = before is not None and before._fingerprint == self._fingerprint
        self._model: Any = before._model if before is not None and known else model_of(*given)
        self._data = mujoco.MjData(self._model)
        numbers = [self._model.body(str(b)).id for b in range(len(colliders))]
        self._bodies = np.array(numbers, np.int64)[self.places]
        self._numbers, self._floors = numbers, [b for b, each in enumerate(colliders) if each.shape.kind == PLANE]
        self._boxes = {b: box for b, box in enumerate(map(box_of, colliders)) if box is not None}
        self._mocaps = [int(self._model.body_mocapid[numbers[b]]) for b in self._moved]
        self._planes = [int(self._model.body(wall_name(side)).mocapid[0]) for side in self._sides]
        self._kind = mujoco.mjtState.mjSTATE_INTEGRATION
        self._start = np.empty(mujoco.mj_stateSize(self._model, self._kind))
        self._speeds, self._gains = np.zeros(self._model.nu), self._model.actuator_gainprm[:, 0].copy()
        for b, each in enumerate(colliders):  # motors stand in the order in which bodies hang on each other
            joint = None if each.rigid is None else each.rigid.joint
            if joint is not None and joint.kind in MOTORISED:
                self._speeds[self._model.actuator(str(b)).id] = joint.speed
        self._drift: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._begin([each.rigid for each in colliders if each.rigid is not None], carried)
        self.reach = np.array([self._reach(body) for body in self._bodies])

    def _begin(self, bodies: Sequence[RigidBody], carried: np.ndarray) -> None:
        """Let the bodies begin where their colliders are, as fast as keys and their own velocity say, or their joints let them."""
        data = self._data
        data.ctrl[:] = self._speeds
        self._library.mj_forward(self._model, data)
        twists = np.array([(*each.velocity, *each.angular_velocity) for each in bodies]) + carried
        twists[:, :3] += np.cross(carried[:, 3:], self.centres() - data.xpos[self._bodies])
        data.qvel[:] = np.linalg.lstsq(np.concatenate(self._jacobians()), twists.ravel(), rcond=None)[0]
        self._library.mj_forward(self._model, data)
        self.go_on()

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
        self._data.ctrl[:] = self._speeds
        self._library.mj_forward(self._model, self._data)

    def go_on(self) -> None:
        """Begin a substep where the bodies are now."""
        self._start, self.starts = self.state(), self.centres()

    def go_back(self) -> None:
        """Put the bodies back to where the substep began."""
        self.come_back(self._start)

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
        return self._unit * found

    def equimomental_points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return eight points of each body that have its inertia where each has an eighth of its mass, and the masses.

        Returns:
            Shape (n, 8, 3) [m], (n,) [kg].
        """
        mass, moments = self._model.body_mass[self._bodies], self._model.body_inertia[self._bodies]
        half = 0.5 * moments.sum(axis=1, keepdims=True)
        reach = np.sqrt(np.maximum(half - moments, 0.0) / mass[:, None])
        corners = np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3, indexing="ij"), axis=-1).reshape(1, 8, 3)
        turns = self._data.ximat[self._bodies].reshape(-1, 3, 3)
        return self.centres()[:, None] + (corners * reach[:, None]) @ turns.transpose(0, 2, 1), self._unit * mass

    # ---------------------------------------------------------------- moving
    def place_others(self, bodies_real: np.ndarray, dt: float) -> None:
        """Put colliders and walls where the substep begins, and note how they move.

        Args:
            bodies_real: `Bodies.real`, posed.
            dt: The substep [s]; 0: they stand.
        """
        mujoco, data = self._library, self._data
        self._drift.clear()
        for number, b in zip(self._mocaps, self._moved, strict=True):
            first, last = bodies_real[b, POSE : POSE + 12], bodies_real[b, POSE + 12 : POSE + 24]
            mujoco.mju_mat2Quat(data.mocap_quat[number], np.ascontiguousarray(first[:9]))
            data.mocap_pos[number] = first[9:] + self._origin
            if dt > 0.0 and not np.array_equal(first, last):
                turned = last[:9].reshape(3, 3) @ first[:9].reshape(3, 3).T - np.eye(3)
                self._drift[self._numbers[b]] = turned / dt, data.mocap_pos[number].copy(), (last[9:] - first[9:]) / dt
        for number, side in zip(self._planes, self._sides, strict=True):
            axis, high = side >> 1, side & 1
            normal, speed = np.zeros(3), float(self._walls.rules[7 + side])
            normal[axis] = 1.0 - 2.0 * high
            mujoco.mju_quatZ2Vec(data.mocap_quat[number], normal)
            place = np.zeros(3)
            place[axis] = self._walls.box[high, axis] + self._origin[axis] - speed * dt
            data.mocap_pos[number] = place
            if dt > 0.0 and speed:
                self._drift[int(self._model.body(wall_name(side)).id)] = np.zeros((3, 3)), place, speed * np.abs(normal)
        mujoco.mj_kinematics(self._model, data)

    def advance(self, dt: float, gravity: Sequence[float], impulses: np.ndarray) -> None:
        """Move the bodies by a substep, from where they were as it began.

        Args:
            dt: Its length [s].
            gravity: [m/s^2].
            impulses: On each body at its centre of mass, and their moments about it, shape (n, 6) [N s, N m s].

        Raises:
            SimulationDiverged: Something threw a body so hard that MuJoCo would put all of them back to their beginning.
        """
        mujoco, model, data = self._library, self._model, self._data
        mocap = data.mocap_pos.copy(), data.mocap_quat.copy()
        mujoco.mj_setState(model, data, self._start, self._kind)
        data.mocap_pos[:], data.mocap_quat[:] = mocap
        model.opt.timestep, model.opt.gravity[:] = dt, gravity
        data.xfrc_applied[:] = 0.0
        data.xfrc_applied[self._bodies] = impulses / (self._unit * dt)
        mujoco.mj_step1(model, data)
        self._soften_motors(dt)
        if self._drift:
            self._let_surfaces_move()
        mujoco.mj_step2(model, data)
        self._refuse_unstable()
        model.actuator_gainprm[:, 0], model.actuator_biasprm[:, 2] = self._gains, -self._gains
        for update in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_makeM, mujoco.mj_factorM, mujoco.mj_comVel):
            update(model, data)  # what is asked for; contacts are found when the next substep begins

    def _refuse_unstable(self) -> None:
        """Raise `SimulationDiverged` where the last substep left what can be computed."""
        from mpm_nodes.solver.divergence import SimulationDiverged

        for name in self.UNSTABLE:
            told = self._data.warning[int(getattr(self._library.mjtWarning, f"mjWARN_{name}"))]
            if told.number:
                body = self._model.dof_bodyid[min(int(told.lastinfo), self._model.nv - 1)]
                number = int(np.argmax(self._bodies == body))
                raise SimulationDiverged(
                    f"rigid body '{self._names[number]}' was thrown beyond what can be computed; raise its density, or make it "
                    "larger than a cell"
                )

    def _soften_motors(self, dt: float) -> None:
        """Weaken motors that would turn their joint beyond their speed in this substep: what clamps a force is explicit."""
        model, data = self._model, self._data
        behind, strength = np.abs(data.ctrl - data.actuator_velocity), model.actuator_forcerange[:, 1]
        for k in np.flatnonzero(self._gains * behind >= strength):
            joint = int(model.jnt_dofadr[model.actuator_trnid[k, 0]])
            answer, unit = np.empty((1, model.nv)), np.zeros((1, model.nv))
            unit[0, joint] = 1.0
            self._library.mj_solveM(model, data, answer, unit)
            if strength[k] * answer[0, joint] * dt > behind[k]:
                gain = (1.0 - ROUNDING) * strength[k] / behind[k]
                model.actuator_gainprm[k, 0], model.actuator_biasprm[k, 2] = gain, -gain

    def _let_surfaces_move(self) -> None:
        """Let contacts see how fast the surfaces of colliders and walls move, which MuJoCo puts to places without a velocity.

        The reference acceleration of a contact is - B (v2 - v1) and a spring, in the axes of the contact.
        """
        model, data = self._model, self._data
        for contact in data.contact:
            if contact.efc_address < 0:
                continue
            apart = np.zeros(3)
            for end, sign in ((0, -1.0), (1, 1.0)):
                geom, flex = int(contact.geom[end]), int(contact.flex[end])
                body = int(model.geom_bodyid[geom] if geom >= 0 else model.flex_vertbodyid[model.flex_vertbodyadr[flex]])
                if body in self._drift:
                    turned, place, shift = self._drift[body]
                    apart += sign * (turned @ (contact.pos - place) + shift)
            rows = slice(contact.efc_address, contact.efc_address + contact.dim)
            data.efc_aref[rows] -= data.efc_KBIP[rows, 1] * (contact.frame.reshape(3, 3) @ apart)[: contact.dim]

    def kick(self, impulses: np.ndarray) -> None:
        """Give the bodies impulses where they are now (see `advance`)."""
        model, data = self._model, self._data
        change = np.zeros((1, model.nv))
        for row, jacobian in zip(impulses, self._jacobians(), strict=True):
            change += row @ jacobian / self._unit
        solved = np.empty_like(change)
        self._library.mj_solveM(model, data, solved, change)
        data.qvel[:] += solved[0]
        self._library.mj_forward(model, data)

    def inverse_masses(self) -> np.ndarray:
        """Return how velocities (v, w) follow from impulses, shape (6 n, 6 n), without contacts among the bodies."""
        jacobian = np.concatenate(self._jacobians())
        solved = np.empty_like(jacobian)
        self._library.mj_solveM(self._model, self._data, solved, jacobian)
        return np.asarray(jacobian @ solved.T) / self._unit

    def _jacobians(self) -> list[np.ndarray]:
        """Return of each body how (v, w) follows from MuJoCo's velocities, shape (6, nv)."""
        found = []
        for body in self._bodies:
            moves, turns = np.zeros((3, self._model.nv)), np.zeros((3, self._model.nv))
            self._library.mj_jacBodyCom(self._model, self._data, moves, turns, body)
            found.append(np.concatenate([moves, turns]))
        return found

    # ---------------------------------------------------------------- what is near
    def clearances(self, matter: np.ndarray) -> np.ndarray:
        """Return how far each body is at least from matter, colliders, walls and other bodies, shape (n,) [m].

        Args:
            matter: Corners of a box around the matter [m], shape (2, 3).
        """
        model, data, centres = self._model, self._data, self.centres()
        apart = np.full(len(centres), np.inf)
        if np.isfinite(matter).all():
            apart = np.minimum(apart, _off_box(centres, matter))
        weld, parent = model.body_weldid, model.body_parentid
        for b, number in enumerate(self._numbers):
            if b not in self._boxes and b not in self._floors:
                continue
            own = (centres - data.xpos[number]) @ data.xmat[number].reshape(3, 3)
            off = _off_box(own, self._boxes[b]) if b in self._boxes else own[:, 1]
            one, others = weld[number], weld[self._bodies]
            joined = (others == one) | (weld[parent[others]] == one) | (others == weld[parent[one]])
            apart = np.minimum(apart, np.where(joined & (one > 0) & (others > 0), np.inf, off))
        for side in self._sides:
            axis, high = side >> 1, side & 1
            off = (1.0 - 2.0 * high) * (centres[:, axis] - self._walls.box[high, axis] - self._origin[axis])
            apart = np.minimum(apart, off)
        return np.maximum(apart - self.reach, 0.0)

    def fallen(self, matter: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        """Return which bodies have fallen below matter, colliders and walls, and fall on, shape (n,).

        Args:
            matter: Corners of a box around the matter [m], shape (2, 3).
            gravity: [m/s^2], shape (3,).
        """
        model, data, centres = self._model, self._data, self.centres()
        down = gravity / max(float(np.linalg.norm(gravity)), 1e-300)
        floors = [data.xmat[self._numbers[b]].reshape(3, 3)[:, 1] for b in self._floors]
        floors += [np.eye(3)[side >> 1] * (1.0 - 2.0 * (side & 1)) for side in self._sides]
        if not gravity.any() or any(normal @ down < -1e-6 for normal in floors):
            return np.zeros(len(centres), bool)
        lowest = np.array([(matter * down).max(axis=0).sum() if np.isfinite(matter).all() else -np.inf])
        others = [(b, self._numbers[b]) for b in self._boxes if b not in self.places]
        for b, number in others:
            own, box = data.xmat[number].reshape(3, 3).T @ down, self._boxes[b]
            lowest = np.maximum(lowest, data.xpos[number] @ down + (box * own).max(axis=0).sum())
        free = np.array([model.body_dofnum[root] == 6 for root in model.body_rootid[self._bodies]])
        return (centres @ down - self.reach > lowest) & (self.twists()[:, :3] @ down > 0.0) & free


def _pass_on(said: str) -> None:
    """Tell what MuJoCo warns of; bodies that it cannot move are an error of ours."""
    if "unstable" not in said:
        warnings.warn(f"MuJoCo: {said}", stacklevel=2)


def _off_box(places: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return the distances of places, shape (n, 3), from a box, 0 in it [m]."""
    return np.asarray(np.linalg.norm(np.maximum(np.maximum(box[0] - places, places - box[1]), 0.0), axis=1))
