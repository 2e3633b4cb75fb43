"""Colours and materials on the surface: sharp between materials, and shown by the material that the stage binds."""

import dataclasses

import numpy as np
import pytest

from mpm_nodes.data import Material, Particles, Thermal
from mpm_nodes.materials.looks import find_look
from mpm_nodes.nodes.colours import COLOUR, MATERIAL_COLOURS, colour_particles, shown_colours
from mpm_nodes.nodes.looks import set_looks
from mpm_nodes.nodes.surface import surface_particles

pytest.importorskip("pxr")
SPACING = 0.05


def two_blocks(materials: int = 2) -> Particles:
    """A block whose left half is one material, its right half another."""
    axis = (np.arange(8) + 0.5) * SPACING
    position = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    index = (position[:, 0] > 4 * SPACING).astype(np.int32) if materials > 1 else np.zeros(len(position), np.int32)
    columns = {
        "position": position.astype(np.float32),
        "velocity": np.zeros((len(position), 3), np.float32),
        "material": index,
        "volume": np.full(len(position), SPACING**3, np.float32),
    }
    return Particles(columns, (Material("snow", {}, 400.0),) * materials, SPACING, 0.0)


def test_materials_keep_their_colour_up_to_the_border():
    """Every point has exactly the colour of one material, and the one on whose side it lies; the index is whole."""
    mesh = surface_particles(two_blocks(), attributes=("material",)).mesh
    colours, index = mesh.attributes[COLOUR], mesh.attributes["material"]
    assert index.dtype == np.int32 and set(np.unique(index)) == {0, 1}
    assert np.allclose(colours, MATERIAL_COLOURS[index], atol=1e-5)
    off = mesh.points[:, 0] - 4 * SPACING
    clear = np.abs(off) > 0.5 * SPACING
    assert (index[clear] == (off[clear] > 0.0)).all()


def test_colours_of_ones_own_come_first_and_one_material_has_none():
    """What colour_particles gave is carried without being asked for; one plain material stays plain."""
    painted = colour_particles(two_blocks(), colours=("#ff0000", "#0000ff"))
    colours = surface_particles(painted).mesh.attributes[COLOUR]
    assert set(map(tuple, np.round(colours, 4).tolist())) == {(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)}
    assert COLOUR not in surface_particles(two_blocks(1)).mesh.attributes
    empty = surface_particles(Particles({k: v[:0] for k, v in painted.attributes.items()}, painted.materials, SPACING, 0.0)).mesh
    assert len(empty.points) == 0 and empty.attributes[COLOUR].shape == (0, 3)


def test_the_bound_material_reads_the_colour():
    """Matter with colours is bound to a shader that reads them, matter without to a plain one; bodies keep their own look."""
    from pxr import Usd, UsdGeom, UsdShade

    from usd_io.looks import add_looks

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Xform.Define(stage, "/shot")
    for name in ("mesh", "particles", "collider_bowl"):
        prim = UsdGeom.Mesh.Define(stage, f"/shot/{name}")
        if name != "particles":
            UsdGeom.PrimvarsAPI(prim).CreatePrimvar(COLOUR, prim.GetDisplayColorAttr().GetTypeName(), UsdGeom.Tokens.vertex)
    add_looks(stage, "shot")

    def diffuse(name: str):
        material = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath(f"/shot/{name}")).ComputeBoundMaterial()[0]
        return material.ComputeSurfaceSource()[0].GetInput("diffuseColor")

    source = diffuse("mesh").GetConnectedSources()[0][0].source
    reader = UsdShade.Shader(source.GetPrim())
    assert reader.GetIdAttr().Get() == "UsdPrimvarReader_float3" and reader.GetInput("varname").Get() == COLOUR
    assert diffuse("particles").Get() is not None and not diffuse("particles").HasConnectedSource()
    assert diffuse("collider_bowl").Get() is not None and not diffuse("collider_bowl").HasConnectedSource()


def test_a_melt_has_the_colour_of_its_matter():
    """Chocolate and its melt are one matter: both look as chocolate; two waxes with equal melts are two, each with its melt."""
    blocks, melt = two_blocks(), Material("liquid", {"bulk_modulus": 1e5}, 900.0, "molten chocolate")
    solid = Material("snow", {}, 900.0, "chocolate", thermal=Thermal(1.0, 1.0, 1.0, 1.0, 1.0, 300.0, melt))
    warm = dataclasses.replace(melt, thermal=dataclasses.replace(solid.thermal, melt=None))  # as a solve lists it
    one = Particles(dict(blocks.attributes), (solid, warm), SPACING, 0.0)
    assert (shown_colours(one) == np.float32(find_look("chocolate").colour)).all()
    sweet = set_looks(one, looks=("syrup",))  # it shades the melt that the solve lists, and not the one that the solid names
    assert (shown_colours(sweet) == np.float32(find_look("syrup").colour)).all()
    hard = dataclasses.replace(solid, density=950.0)
    two = Particles(
        {**blocks.attributes, "material": np.arange(len(blocks), dtype=np.int32) % 4}, (solid, hard, melt, melt), SPACING, 0.0
    )
    assert np.array_equal(shown_colours(two)[:4], MATERIAL_COLOURS[[0, 1, 0, 1]])
