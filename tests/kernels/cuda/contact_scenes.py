"""Bodies and walls whose contacts are found on a device, and what meets them: `fusion_scenes.matter`."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import BOX, CAPSULE, LEVEL_SET, PLANE, SPHERE, LeafLevelSet, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set

SEPARATE, STICKY, SLIP = CollisionRule.SEPARATE, CollisionRule.STICKY, CollisionRule.SLIP


def posed(kind: int, sizes: tuple[float, ...], *places: tuple[float, float, float], turns: float = 0.0, **more) -> PosedLevelSets:
    """Return a shape that is at one place, or moves from one to the other in a second and turns by an angle."""
    half = 0.5 * turns * np.arange(len(places))
    rotations = np.stack([np.cos(half), 0.6 * np.sin(half), 0.0 * half, 0.8 * np.sin(half)], axis=1)
    return PosedLevelSets(kind, sizes, np.arange(float(len(places))), rotations, np.array(places), **more)


def crystal(
    sizes: tuple[float, ...], *places: tuple[float, float, float], turns: float = 0.0, times: tuple[float, ...] = (0.0,), runs=False
) -> PosedLevelSets:
    """Return the level sets of an octahedron that has sizes at times; where it `runs`, they carry random velocities."""
    corner = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)], float)
    faces = np.array([(a, b, c) if (a + b + c) % 2 == 0 else (a, c, b) for a in (0, 1) for b in (2, 3) for c in (4, 5)])
    level_sets = tuple(
        running(found) if runs else found for found in (mesh_level_set(size * corner, faces, 0.04) for size in sizes)
    )
    return posed(LEVEL_SET, (), *places, turns=turns, level_sets=level_sets, level_set_times=np.array(times))


def running(level_set: LeafLevelSet) -> LeafLevelSet:
    """Return a level set with velocities of about half a metre a second."""
    random = np.random.default_rng(3)
    shapes = level_set.values.shape, level_set.table.shape
    speeds = [0.5 * random.normal(size=(*shape, 3)).astype(np.float32) for shape in shapes]
    return dataclasses.replace(level_set, velocities=speeds[0], coarse_velocities=speeds[1])


WAY = (0.25, -0.1, 0.25), (0.35, 0.9, 0.15)

# what needs kernels is made at its first use: tests are collected by every worker
STILL = cache(lambda: crystal((0.25,), (0.25, -0.1, 0.25)))
TURNING = cache(lambda: crystal((0.25,), (0.25, -0.1, 0.25), (0.35, 1.4, 0.15), turns=5.0))
GROWING = cache(lambda: crystal((0.22, 0.25), *WAY, turns=3.0, times=(0.0, 0.05)))
CARRIED = cache(lambda: crystal((0.22, 0.25), *WAY, turns=3.0, times=(0.0, 0.05), runs=True))
BELT = cache(lambda: crystal((0.25,), *WAY, turns=3.0, runs=True))
PASSING = cache(lambda: crystal((0.22, 0.25, 0.27), *WAY, turns=3.0, times=(0.0, 0.0045, 0.05)))
BOXED = posed(BOX, (0.3, 0.2, 0.3), (0.25, -0.15, 0.25), (0.25, 0.35, 0.25), turns=1.0)
ROUND = posed(CAPSULE, (0.2, 0.25), (0.25, -0.12, 0.25), (0.25, 0.8, 0.25), turns=3.0)
FLOOR = posed(PLANE, (), (0.2, 0.03, 0.2), (0.2, 0.53, 0.2), turns=0.3)
BALL = posed(SPHERE, (0.17,), (0.5, 0.3, 0.25), (-0.4, 0.3, 0.25))
SIDES = (WallRule.STICKY, WallRule.SEPARATE, WallRule.SLIP, WallRule.OPEN, WallRule.OPEN, WallRule.DELETE)
WALLS = Walls((0.0, -2.0, -2.0), (0.48, 2.0, 0.492), SIDES, 0.2)
SCENES = {
    "still": lambda: {"colliders": (Collider("crystal", SEPARATE, 0.3, STILL()),)},
    "turning": lambda: {"colliders": (Collider("crystal", SEPARATE, 0.3, TURNING()),)},
    "sticky": lambda: {"colliders": (Collider("crystal", STICKY, 0.0, TURNING()),)},
    "slip": lambda: {"colliders": (Collider("crystal", SLIP, 0.0, TURNING()),)},
    "growing": lambda: {"colliders": (Collider("crystal", SEPARATE, 0.3, GROWING()),)},
    "carried": lambda: {"colliders": (Collider("crystal", SEPARATE, 0.3, CARRIED()),)},
    "belt": lambda: {"colliders": (Collider("crystal", STICKY, 0.0, BELT()),)},
    "passing a key": lambda: {"colliders": (Collider("crystal", SEPARATE, 0.3, PASSING()),)},
    "box": lambda: {"colliders": (Collider("box", SEPARATE, 0.4, BOXED),)},
    "capsule": lambda: {"colliders": (Collider("capsule", SEPARATE, 0.0, ROUND),)},
    "plane": lambda: {"colliders": (Collider("floor", STICKY, 0.0, FLOOR),)},
    "ball": lambda: {"colliders": (Collider("ball", SEPARATE, 0.2, BALL),)},
    "adhesion": lambda: {"colliders": (Collider("ball", SEPARATE, 0.2, BALL, adhesion=2e3),)},
    "adhesion of two": lambda: {
        "colliders": (
            Collider("crystal", SEPARATE, 0.3, TURNING(), adhesion=2e3),
            Collider("floor", SEPARATE, 0.2, FLOOR, adhesion=1e3),
        )
    },
    "walls": lambda: {"walls": WALLS},
    "several": lambda: {
        "colliders": (
            Collider("crystal", SEPARATE, 0.3, TURNING()),
            Collider("ball", STICKY, 0.2, BALL),
            Collider("floor", SLIP, 0.2, FLOOR),
        )
    },
    "among walls": lambda: {
        "colliders": (Collider("crystal", SEPARATE, 0.3, TURNING()), Collider("ball", SEPARATE, 0.2, BALL)),
        "walls": WALLS,
    },
}
STRAIGHT = [name for name in SCENES if name not in ("capsule", "ball", "adhesion", "several", "among walls")]
"""Scenes without bent surfaces: there no particle's path is halved another way."""
