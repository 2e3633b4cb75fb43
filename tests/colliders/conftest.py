"""Particles in flight, meshes with known insides, and level sets on disk."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import Mesh
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.state import ParticleStore

CELL = 0.1


class Flight:
    """Ballistic particles: no grid, only the collision pass and the position update, as in a substep graph."""

    def __init__(self, position: np.ndarray, velocity: np.ndarray, origin=(0.0, 0.0, 0.0)) -> None:
        self.store = ParticleStore(["velocity"], cell_size=CELL, origin=origin)
        self.store.append(
            {
                "position": position,
                "velocity": np.broadcast_to(velocity, position.shape),
                "mass": np.ones(len(position)),
                "id": np.arange(len(position)),
            }
        )
        self.store.sort()

    def step(self, colliders: ColliderSet, time: float, dt: float) -> None:
        colliders.pose(time, time + dt)
        colliders.collide_particles(self.store)
        store = self.store
        move = np.rint(store.unpack("velocity").astype(float) * (dt / store.h * store.unit)).astype(np.int64)
        for axis in range(3):
            store.offset[axis * store.stride : axis * store.stride + store.count] += move[:, axis].astype(store.offset.dtype)
        store.sort()

    def fly(self, colliders: ColliderSet, until: float, dt: float) -> None:
        for k in range(round(until / dt)):
            self.step(colliders, k * dt, dt)

    def sorted(self, name: str) -> np.ndarray:
        """Return an attribute in the order of ids."""
        return self.store.unpack(name)[np.argsort(self.store.unpack("id"))]


@pytest.fixture
def flight():
    return Flight


@pytest.fixture
def write_usd(tmp_path):
    """Write a mesh to a .usda: points per time code, and the matrix (row vectors) per time code of its parent."""

    def write(mesh: Mesh, points=None, matrices=None, metres=1.0, up="Y", name="mesh.usda"):
        from pxr import Gf, Usd, UsdGeom, Vt

        path = tmp_path / name
        stage = Usd.Stage.CreateNew(str(path))
        stage.SetTimeCodesPerSecond(24)
        UsdGeom.SetStageMetersPerUnit(stage, metres)
        UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z if up == "Z" else UsdGeom.Tokens.y)
        above = UsdGeom.Xform.Define(stage, "/body")
        prim = UsdGeom.Mesh.Define(stage, "/body/mesh")
        prim.GetFaceVertexCountsAttr().Set(Vt.IntArray(np.asarray(mesh.counts).tolist()))
        prim.GetFaceVertexIndicesAttr().Set(Vt.IntArray(np.asarray(mesh.indices).tolist()))
        for code, value in ({None: mesh.points} if points is None else points).items():
            array = Vt.Vec3fArray.FromNumpy(np.asarray(value, np.float32))
            prim.GetPointsAttr().Set(array) if code is None else prim.GetPointsAttr().Set(array, code)
        operation = above.AddTransformOp() if matrices else None
        for code, matrix in (matrices or {}).items():
            operation.Set(Gf.Matrix4d(np.asarray(matrix).tolist()), code)
        stage.GetRootLayer().Save()
        return path

    return write
