"""The benchmark of meshes against boxes runs, and both kinds of bodies are the same ones."""

import mesh_colliders
import numpy as np


def test_meshes_are_timed_against_boxes(capsys):
    """A row with particles, milliseconds of both and their ratio; the exit code says whether it is below the bar."""
    code = mesh_colliders.main(["--scenes", "tilting", "--cell", "0.008", "--substeps", "2", "--rounds", "1"])
    row = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")[1:-1]]
    assert row[0] == "tilting" and int(row[1].replace(",", "")) > 2000
    mesh, mesh_collides, boxes, boxes_collide, ratio = map(float, row[2:])
    assert 0.0 < mesh_collides < mesh and 0.0 < boxes_collide < boxes
    assert code in (0, 1) and ratio > 0.0


def test_both_kinds_are_the_same_bodies():
    """Matter in a jar that tilts meets the level set where it meets the boxes, and both keep its sides apart."""
    ends = []
    for meshes in (True, False):
        solver = mesh_colliders.solver("tilting", meshes, 0.008)
        assert len(solver.colliders.plates) >= 5
        for _ in range(10):
            solver.step(1e-4, keep=False)
        ends.append(solver.snapshot(["position"])["position"])
    assert np.abs(ends[0] - ends[1]).max() < 0.05 * 0.008
