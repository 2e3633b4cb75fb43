"""Scenes of two dimensions as slabs between two walls: the same numbers as a two-dimensional run, along every axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mpm_nodes.data import Particles, WallRule
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import OPEN, material, walled

H, BULK, DENSITY, DT, STEPS = 0.1, 1e4, 1000.0, 1e-3, 20


@dataclass
class Plane:
    """Liquid in two dimensions: explicit APIC with quadratic splines (Jiang 2015), in the plainest form.

    Attributes:
        x: Positions [m], shape (n, 2).
        v: Velocities [m/s], shape (n, 2).
        c: Affine velocities [1/s], shape (n, 2, 2).
        e: J - 1, shape (n,).
    """

    x: np.ndarray
    v: np.ndarray
    c: np.ndarray
    e: np.ndarray

    def step(self) -> None:
        """Advance by DT; every particle has the mass DENSITY and the volume 1, whose sizes cancel."""
        base = np.floor(self.x / H - 0.5).astype(int)
        d = self.x / H - base
        w = np.stack([0.5 * (1.5 - d) ** 2, 0.75 - (d - 1.0) ** 2, 0.5 * (d - 0.5) ** 2])
        slope = np.stack([d - 1.5, -2.0 * (d - 1.0), d - 0.5]) / H
        shift = base.min(axis=0)
        size = tuple(base.max(axis=0) - shift + 3)
        m, p = np.zeros(size), np.zeros((*size, 2))
        parts = []
        for i in range(3):
            for j in range(3):
                at = (base[:, 0] + i - shift[0], base[:, 1] + j - shift[1])
                weight = w[i, :, 0] * w[j, :, 1]
                rise = np.stack([slope[i, :, 0] * w[j, :, 1], w[i, :, 0] * slope[j, :, 1]], axis=1)
                away = H * (base + [i, j]) - self.x
                parts.append((at, weight, rise, away))
                np.add.at(m, at, DENSITY * weight)
                moving = self.v + np.einsum("nab,nb->na", self.c, away)
                push = -(BULK * self.e * (1.0 + self.e))[:, None] * rise
                np.add.at(p, at, DENSITY * weight[:, None] * moving + DT * push)
        p /= np.maximum(m, 1e-300)[..., None]
        self.v, self.c, gradient = np.zeros_like(self.v), np.zeros_like(self.c), np.zeros_like(self.c)
        for at, weight, rise, away in parts:
            self.v += weight[:, None] * p[at]
            self.c += 4.0 / H**2 * weight[:, None, None] * p[at][:, :, None] * away[:, None, :]
            gradient += p[at][:, :, None] * rise[:, None, :]
        self.e = self.e + (1.0 + self.e) * DT * np.trace(gradient, axis1=1, axis2=2)
        self.x = self.x + DT * self.v


def scene(seed: int = 7) -> Plane:
    """Return a block of six cells, off its lattice, that moves at random."""
    random = np.random.default_rng(seed)
    axis = (np.arange(12) + 0.5) * 0.5 * H
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    n = len(x)
    return Plane(
        x + random.uniform(-0.01, 0.01, (n, 2)),
        random.normal(0.0, 0.3, (n, 2)),
        random.normal(0.0, 0.5, (n, 2, 2)),
        random.uniform(-0.02, 0.02, n),
    )


def slab_of(plane: Plane, turn: int, cells: int, rule: WallRule) -> SubstepSolver:
    """Return a solve of a slab of the plane, so many cells thick, its axes turned on by `turn`; layer follows layer."""
    n, count = len(plane.x), 2 * cells
    layers = (np.arange(count) + 0.5) * 0.5 * H
    columns = {
        "position": np.concatenate([np.column_stack([plane.x, np.full(n, z)]) for z in layers]),
        "velocity": np.tile(np.column_stack([plane.v, np.zeros(n)]), (count, 1)),
        "affine": np.tile(np.pad(plane.c, ((0, 0), (0, 1), (0, 1))), (count, 1, 1)),
        "volume_change": np.tile(plane.e, count),
        "volume": np.full(count * n, (0.5 * H) ** 3),
    }
    columns["position"], columns["velocity"] = (np.roll(columns[name], turn, axis=1) for name in ("position", "velocity"))
    columns["affine"] = np.roll(columns["affine"], (turn, turn), axis=(1, 2))
    low, high = np.roll([-9.0, -9.0, 0.0], turn), np.roll([9.0, 9.0, cells * H], turn)
    rules = [rule if (side // 2 - turn) % 3 == 2 else OPEN for side in range(6)]
    liquid = material("liquid", DENSITY, bulk_modulus=BULK)
    options = {"cell_size": H, "dtype": np.float64, "origin": (0.0, 0.0, 0.0), "gravity": (0.0, 0.0, 0.0)}
    return SubstepSolver(Particles(columns, (liquid,), 0.5 * H), walls=walled(low, high, *rules), **options)


class SlabEquivalence(VerificationProblem):
    """A slab gives the numbers of a two-dimensional run, whatever its axis.

    Scene: a block of liquid of six cells that moves at random, 20 explicit substeps, float64: in two dimensions by a code of its
        own, and as slabs along z, x and y: eight cells between periodic sides, one and three cells between walls that slip.
    Exact: positions and velocities of every layer are those of the plane.
    Tolerance: 1e-12 of a cell, and of the largest velocity. (Between walls two cells apart, which share their middle nodes, 2e-9.)
    """

    name = "slab_equivalence"
    source = "Jiang 2015, in two dimensions"

    def findings(self) -> Iterator[Finding]:
        """Step all ten."""
        plane, start = scene(), scene()
        for _ in range(STEPS):
            plane.step()
        for cells, rule in ((8, WallRule.PERIODIC), (1, WallRule.SLIP), (3, WallRule.SLIP)):
            for turn in range(3):
                run = slab_of(start, turn, cells, rule)
                for _ in range(STEPS):
                    run.step(DT)
                away, slower = differences(plane, run, turn)
                yield Finding(0.0, away, 1e-12, f"positions, {cells}-cell {rule.value} slab along {'zxy'[turn]} [cells]")
                yield Finding(0.0, slower, 1e-12, f"velocities, {cells}-cell {rule.value} slab along {'zxy'[turn]}")


def differences(plane: Plane, run: SubstepSolver, turn: int) -> tuple[float, float]:
    """Return how far positions [cells] and velocities (of the largest) of any layer are from those of the plane."""
    end, found = run.snapshot(), []
    for name, exact, unit in (("position", plane.x, H), ("velocity", plane.v, np.abs(plane.v).max())):
        layers = np.roll(end[name], -turn, axis=1)[:, :2].reshape(-1, *exact.shape)
        found.append(float(np.abs(layers - exact).max() / unit))
    return found[0], found[1]
