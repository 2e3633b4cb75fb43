"""What a file of another format than the one that is read is told."""

from __future__ import annotations

from pathlib import Path

from mpm_nodes.data import InputError

MESHES = {
    ".abc": "Alembic",
    ".blend": "a Blender file",
    ".bgeo": "Houdini geometry",
    ".dae": "COLLADA",
    ".fbx": "FBX",
    ".glb": "glTF",
    ".gltf": "glTF",
    ".obj": "Wavefront OBJ",
    ".ply": "PLY",
    ".stl": "STL",
}
"""Files of meshes that artists have, by their endings."""
_CONVERT = "open it in Blender or Houdini and export it as USD (.usd, .usda, .usdc or .usdz)"


def refuse_unless_usd(path: Path) -> None:
    """Raise `InputError` with the cure where OpenUSD has no reader for a file's ending; a plug-in for Alembic is taken."""
    from pxr import Sdf

    ending = path.suffix.lower()
    if Sdf.FileFormat.FindByExtension(path.name.lower()):
        return
    if ending == ".vdb":
        raise InputError(
            f"{path}: is a volume, and USD is read here; take collide_vdb or emit_level_set, or another of the VDB nodes"
        )
    what = f"is {MESHES[ending]}, which is not read" if ending in MESHES else f"'{ending}' is not the ending of a USD file"
    raise InputError(f"{path}: {what}; {_CONVERT}")


def refuse_unless_vdb(path: Path) -> None:
    """Raise `InputError` with the cure where a file that is no VDB has the ending of one with meshes."""
    ending = path.suffix.lower()
    if ending in MESHES:
        raise InputError(f"{path}: is {MESHES[ending]}, and volumes are read here; {_CONVERT}, and take collide_usd or emit_mesh")
    if ending in (".usd", ".usda", ".usdc", ".usdz"):
        raise InputError(f"{path}: is a USD file, and volumes are read here; for its meshes take collide_usd or emit_mesh")
