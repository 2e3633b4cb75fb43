"""Small scenes with rigid bodies, for the tests of bodies and of joints."""

from __future__ import annotations

import numpy as np
from solver_scenes import shot

from mpm_nodes.data import FrameContext
from mpm_nodes.physics.rigid_bodies.numerics.world import RigidWorld
from mpm_nodes.solver.walls import WallSet

FIRST = FrameContext(1)


def world_of(*colliders, cell_size=0.1):
    """Return the bodies alone."""
    begins = [(each.shape.rotations[-1], each.shape.translations[-1]) for each in colliders]
    still = np.zeros((sum(each.rigid is not None for each in colliders), 6))
    return RigidWorld(colliders, begins, still, WallSet(None, np.zeros(3)), (np.zeros(3), cell_size))


def splash(**solve):
    """Return a shot in which a box falls onto jelly beside a floor."""
    graph = shot(end=6, material="material_neo_hookean", centre=(0.0, 0.15, 0.0), knobs={"youngs_modulus": 2e4}.items(), **solve)
    floor = graph.add("collide_plane", "floor", friction=0.3)
    box = graph.add("collide_box", "box", centre=(0.02, 0.5, 0.0), size=(0.2, 0.2, 0.2), rotation=(0.0, 0.0, 20.0))
    body = graph.add("rigid_body", "body", collider=box, name="dice", density=600.0, velocity=(0.0, -2.0, 0.0))
    graph.nodes["sim"].inputs["colliders"] = []
    graph.nodes["sim"].connect("colliders", [floor, body])
    graph.add("moved_body", "there", collider=body, bodies="sim.bodies")
    graph.add("write_cache", "cache", particles=graph["sim"], colliders=[graph["there"]])
    return graph


def usd_mesh(path, points, counts, indices):
    """Write a mesh [m] to a USD file, and return its path."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh = UsdGeom.Mesh.Define(stage, "/mesh")
    mesh.CreatePointsAttr([tuple(map(float, point)) for point in points])
    mesh.CreateFaceVertexCountsAttr([int(count) for count in counts])
    mesh.CreateFaceVertexIndicesAttr([int(index) for index in indices])
    stage.Save()
    return str(path)
