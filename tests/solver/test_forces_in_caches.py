"""Forces of the matter on colliders in caches: as attributes of prims, and as CSV."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes import cli
from mpm_nodes.data import InputError
from mpm_nodes.graph.cook.executor import execute
from usd_io.forces import FORCE, TORQUE, read_forces


def weighed(frames=5, **solve):
    """Return a shot in which jelly lies on a floor that stands still, and touches a box that keys move."""
    graph = shot(
        end=frames, material="material_neo_hookean", centre=(0.0, 0.15, 0.0), knobs={"youngs_modulus": 2e4}.items(), **solve
    )
    keys = {"keys": [[1, [0.45, 0.2, 0.0], "linear"], [5, [0.35, 0.2, 0.0], "linear"]]}
    bodies = [graph.add("collide_plane", "floor", friction=0.3), graph.add("collide_box", "pusher", centre=keys, size=(0.4,) * 3)]
    for port in ("pusher", "floor"):
        graph.nodes[port].knobs["name"] = port
    graph.nodes["sim"].inputs["colliders"] = []
    graph.nodes["sim"].connect("colliders", bodies)
    graph.add("write_cache", "cache", particles="sim.particles", colliders=bodies, bodies="sim.bodies")
    return graph


def told_by(graph, out, **how):
    """Cook; return the events `contact_forces` by frame, and the root stage."""
    events = []
    result = execute(graph, out=out, on_event=events.append, **how)
    return {each["frame"]: each for each in events if each["event"] == "contact_forces"}, result.revision_folder / "cache.usda"


def test_a_cache_has_the_forces_on_its_colliders(tmp_path, capsys):
    """Those of the event, in every frame, on one that has a layer of its own, too, which keeps its mesh; `forces` prints them."""
    from pxr import Usd, UsdGeom

    told, root = told_by(weighed(contact_forces=True), tmp_path)
    stage = Usd.Stage.Open(str(root))
    assert set(told) == {2, 3, 4, 5}
    for n, name in enumerate(("floor", "pusher")):
        prim = stage.GetPrimAtPath(f"/cache/collider_{name}")
        assert prim.IsA(UsdGeom.Mesh) and len(UsdGeom.Mesh(prim).GetPointsAttr().Get(3)) in (4, 8)
        for frame, event in told.items():
            for attribute, fact in ((FORCE, "force"), (TORQUE, "torque")):
                assert np.array(prim.GetAttribute(attribute).Get(frame)) == pytest.approx(event[fact][3 * n : 3 * n + 3], rel=1e-6)
    assert told[5]["force"][1] < -1.0 and told[5]["force"][3] > 1.0  # its weight, and what is pushed back
    assert cli.main(["forces", str(root)]) == 0
    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert [(row["frame"], row["collider"]) for row in rows][:3] == [("2", "floor"), ("2", "pusher"), ("3", "floor")] and len(
        rows
    ) == 8
    assert float(rows[-2]["force_y"]) == pytest.approx(told[5]["force"][1], rel=1e-6)
    assert float(rows[-1]["torque_z"]) == pytest.approx(told[5]["torque"][5], rel=1e-6)
    assert cli.main(["forces", str(root), "--out", str(tmp_path / "forces.csv")]) == 0
    assert (tmp_path / "forces.csv").read_text().count("\n") == 9


def test_forces_resume_to_the_same_bits(tmp_path):
    """A cook in two parts writes the layers of one."""
    _, whole = told_by(weighed(contact_forces=True), tmp_path / "whole")
    told_by(weighed(contact_forces=True), tmp_path / "parts", frames=(1, 3))
    _, parts = told_by(weighed(contact_forces=True), tmp_path / "parts", resume=True)
    for number in (3, 4, 5):
        assert (whole.parent / f"cache/cache.{number:04d}.usdc").read_bytes() == (
            parts.parent / f"cache/cache.{number:04d}.usdc"
        ).read_bytes()


def test_a_solve_that_tells_no_forces_is_told(tmp_path, capsys):
    """Before the cook; and a cache without any has its cure."""
    result = execute(weighed(frames=2), out=tmp_path)
    assert any("write_cache.bodies: the solve tells no forces on colliders" in text for text in result.warnings)
    with pytest.raises(InputError, match=r"has no forces; turn solve.contact_forces on"):
        [*read_forces(result.revision_folder / "cache.usda")]
    assert cli.main(["forces", str(tmp_path / "nothing.usda")]) == 5
    assert "is not the root stage of a cache" in capsys.readouterr().err
