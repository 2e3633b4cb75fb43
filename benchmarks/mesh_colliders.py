"""Processor seconds of honey in a jar over a pile of slabs: the bodies as meshes, and as boxes of the same sizes.

    python benchmarks/mesh_colliders.py                        # a jar that stands, and one that tilts: two minutes
    python benchmarks/mesh_colliders.py --scenes still --rounds 9

The walls of the jar are thinner than a cell, so that both kinds keep apart what lies on their two sides. One thread, in turns;
medians. The exit code is 1 when the meshes take more than 1.5 times as long as the boxes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
from environments import busy_warning

from mpm_nodes.bench.threads import set_threads
from mpm_nodes.data import Collider, CollisionRule
from mpm_nodes.kernels.level_sets.level_set import BOX, LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.materials.library import named_material
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block

MOST = 1.5
WIDTH, HEIGHT, WALL = 0.056, 0.08, 0.003
"""Inside of the jar, its height, and its walls [m]."""
JAR = np.array([0.055, 0.145, 0.0])
SPEED = 96.0
"""How fast the jar tilts [degrees/s]."""
SCENES = ("still", "tilting")

Part = tuple[tuple[float, float, float], tuple[float, float, float]]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table; 1 when a ratio is above its target."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--cell", type=float, default=0.004, help="cell size [m]")
    parser.add_argument("--substeps", type=int, default=56, help="of a round")
    parser.add_argument("--rounds", type=int, default=5, help="of which the medians are taken")
    args = parser.parse_args(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    set_threads(1)
    print("| jar | particles | meshes, ms a substep | in collide_grid | boxes | in it | ratio |\n|---|---|---|---|---|---|---|")
    worst = 0.0
    for scene in args.scenes:
        solvers = [solver(scene, meshes, args.cell) for meshes in (True, False)]
        spent = [spent_by(each, args.substeps) for _ in range(args.rounds) for each in solvers]
        (mesh, mesh_collides), (boxes, boxes_collide) = (np.median(spent[k::2], axis=0) for k in range(2))
        ratio = statistics.median(one[0] / other[0] for one, other in zip(spent[::2], spent[1::2], strict=True))
        worst = max(worst, ratio)
        row = f"{mesh:.2f} | {mesh_collides:.2f} | {boxes:.2f} | {boxes_collide:.2f} | {ratio:.2f}"
        print(f"| {scene} | {solvers[0].particles.count:,} | {row} |", flush=True)
    return 0 if worst <= MOST else 1


def solver(scene: str, meshes: bool, cell: float) -> SubstepSolver:
    """Return a solve of a scene, its kernels compiled."""
    motion = tilt() if scene == "tilting" else [(np.zeros(1), np.zeros(1))]
    jar, slabs = jar_parts(), slab_parts()
    half = np.array([0.5 * WIDTH, 0.0, 0.5 * WIDTH])
    low = JAR - [0.0, 0.5 * HEIGHT - 0.001, 0.0] - half
    honey = block(named_material("honey"), tuple(low), tuple(low + 2.0 * half + [0.0, 0.066, 0.0]), cell)
    bodies = [
        *colliders("jar", jar, JAR, motion[0], CollisionRule.SEPARATE, cell if meshes else 0.0),
        *colliders("slabs", slabs, np.zeros(3), (np.zeros(1), np.zeros(1)), CollisionRule.STICKY, cell if meshes else 0.0),
    ]
    made = SubstepSolver(honey, "explicit_apic", cell_size=cell, colliders=bodies)
    for _ in range(3):
        made.step(keep=False)
    return made


def jar_parts() -> list[Part]:
    """Return size and centre of the bottom and the four walls of the jar, from its middle."""
    wide, out = WIDTH + 2.0 * WALL, 0.5 * (WIDTH + WALL)
    sides: list[Part] = [((wide, WALL, wide), (0.0, -0.5 * (HEIGHT - WALL), 0.0))]
    for sign in (-1.0, 1.0):
        sides += [((WALL, HEIGHT, wide), (sign * out, 0.0, 0.0)), ((wide, HEIGHT, WALL), (0.0, 0.0, sign * out))]
    return sides


def slab_parts() -> list[Part]:
    """Return size and centre of three slabs on each other."""
    return [((0.1, 0.013, 0.1), (0.0, 0.013 * (n + 0.5), 0.0)) for n in range(3)]


def tilt() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return times [s] and angles [rad] of the jar's keys, one a degree."""
    angles = np.arange(91.0)
    return [(angles / SPEED, np.radians(angles))]


def colliders(
    name: str, parts: list[Part], at: np.ndarray, motion: tuple[np.ndarray, np.ndarray], rule: CollisionRule, cell: float
) -> list[Collider]:
    """Return parts of a body that turns about z at a place: one level set of their meshes, or where `cell` is 0 a box for each."""
    times, angles = motion
    turns = np.stack([np.cos(0.5 * angles), 0.0 * angles, 0.0 * angles, np.sin(0.5 * angles)], -1)
    c, s = np.cos(angles), np.sin(angles)

    def posed(kind: int, centre: tuple[float, float, float], **shape) -> Collider:
        x, y, z = centre
        moves = at + np.stack([c * x - s * y, s * x + c * y, z + 0.0 * angles], -1)
        return Collider(name, rule, 0.3, PosedLevelSets(kind, pose_times=times, rotations=turns, translations=moves, **shape))

    if not cell:
        return [posed(BOX, centre, sizes=tuple(0.5 * edge for edge in size)) for size, centre in parts]
    points, triangles = [], []
    for n, (size, centre) in enumerate(parts):
        mesh = box_mesh(size)
        points.append(mesh.points + centre)
        triangles.append(triangulate(mesh.counts, mesh.indices)[0] + 8 * n)
    level_set = mesh_level_set(np.concatenate(points), np.concatenate(triangles), 0.25 * cell)
    return [posed(LEVEL_SET, (0.0, 0.0, 0.0), level_sets=(level_set,), level_set_times=np.zeros(1))]


def spent_by(which: SubstepSolver, substeps: int) -> tuple[float, float]:
    """Return processor milliseconds of a substep, and the share of them in milliseconds that `collide_grid` takes."""
    begin, stages = time.process_time(), dict(which.stage_seconds)
    for _ in range(substeps):
        which.step(keep=False)
    spent = 1e3 * (time.process_time() - begin) / substeps
    seconds = {name: which.stage_seconds[name] - before for name, before in stages.items()}
    return spent, spent * seconds["collide_grid"] / sum(seconds.values())


if __name__ == "__main__":
    sys.exit(main())
