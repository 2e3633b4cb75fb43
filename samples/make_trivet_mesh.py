"""Make trivet.usdc from trivet.vdb: the demo's collider for machines without OpenVDB.

python samples/make_trivet_mesh.py              (needs OpenVDB and usd-core: pip install "mpm-nodes[all]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom, Vt

from usd_io.volumes import mesh_level_set, read_volumes

HERE = Path(__file__).parent
ADAPTIVITY = 0.1
"""How readily flat quads are joined: the mesh stays within 3 mm of the level set, a seventh of the demo's cell."""


def main(target: Path) -> None:
    """Write the stage."""
    volume = read_volumes(HERE / "trivet.vdb")["mesh2ls_trivet"].level_set
    mesh = mesh_level_set(volume, ADAPTIVITY)
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    trivet = UsdGeom.Mesh.Define(stage, "/trivet")
    stage.SetDefaultPrim(trivet.GetPrim())
    trivet.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.round(mesh.points, 4).astype(np.float32)))
    trivet.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.asarray(mesh.counts, np.int32)))
    trivet.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.asarray(mesh.indices, np.int32)))
    trivet.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "trivet.usdc")
