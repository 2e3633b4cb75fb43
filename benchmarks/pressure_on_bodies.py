"""Which nodes hydrostatic pressure pushes against a ball, and how much of that the contacts of the grid can answer.

    python benchmarks/pressure_on_bodies.py                         # some seconds
    python benchmarks/pressure_on_bodies.py --radii 3 4 5 8 --shift 0.1 0.3 0.2

Water at rest around a ball with the exact pressure of its depth, four particles per cell and axis: forces of pressure and weight
on nodes near the ball sum to its buoyancy. A contact (`collide_grid`) takes what pushes its node along its normal and gives a share
to its image. What then is left makes water flow, though it should rest. Columns, as shares of the buoyancy:

taken      by the contacts
along      left of it on nodes in contact, along the surface
images     left on the images of contacts
others     left on nodes that pressure pushes and no contact has as its image
flux       taken by impulses that keep water from flowing through patches of the surface, -lam_c psi_c(x_i) sum_p V_p grad w_i(x_p)
           on node i, for hats psi_c 1.5 cells wide, the least squares in the mass norm; `collide_grid` does not do that
left now, left by flux    root mean square acceleration of what is left of nodes within two cells of the ball [g]
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np

from mpm_nodes.data import FrameContext, Material, Particles
from mpm_nodes.kernels.collisions.contact_rows import FELLOW, NODE, NORMAL, RATIO
from mpm_nodes.nodes.collide import collide_sphere
from mpm_nodes.solver.run import SubstepSolver

PER_CELL, HAT, BAND = 4, 1.5, 1.6
"""Particles per cell and axis, width of the hats [cells], and how far from the surface pressure pushes nodes [cells]."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--radii", type=float, nargs="+", default=[3.0, 4.0, 5.0], help="radii of the ball [cells]")
    parser.add_argument("--shift", type=float, nargs=3, default=[0.1, 0.3, 0.2], help="its centre, from a node [cells]")
    args = parser.parse_args(arguments)
    names = "taken", "along", "images", "others", "flux", "left now", "left by flux"
    print("radius  " + "  ".join(f"{name:>12}" for name in names))
    for radius in args.radii:
        shares = shares_of(radius, np.array(args.shift))
        print(f"{radius:6g}  " + "  ".join(f"{share:12.3f}" for share in shares))
    return 0


def shares_of(radius: float, centre: np.ndarray) -> tuple[float, ...]:
    """Return the columns for a ball of a radius and with a centre in cells; a cell, gravity and density are 1."""
    reach = math.ceil(radius + 4.0)
    line = (np.arange(2 * reach * PER_CELL) + 0.5) / PER_CELL - reach
    place = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    place = place[np.linalg.norm(place - centre, axis=1) > radius]
    volume = np.full(len(place), 1.0 / PER_CELL**3)
    matter = Particles(
        {"position": place, "volume": volume, "mass": volume}, (Material("liquid", {}, 1.0, "water"),), 1.0 / PER_CELL
    )
    ball = collide_sphere(FrameContext(1), centre=tuple(centre), radius=radius)
    run = SubstepSolver(
        matter, cell_size=1.0, colliders=[ball], gravity=(0.0, 0.0, 0.0), origin=(-reach - 2.0,) * 3, dtype=np.float64
    )
    run.step(1e-9)
    rows = run.colliders.grid_contacts(run.grid)
    node, image = rows[:, NODE].astype(int), rows[:, FELLOW].astype(int)
    nodes = run.grid.places_of(np.arange(64 * run.grid.count)) + run.grid.origin
    index = {tuple(key): i for i, key in enumerate(np.round(nodes).astype(int))}
    phi = np.linalg.norm(nodes - centre, axis=1) - radius
    mass, push, force = forces(place, volume, index, len(nodes))
    normal = rows[:, NORMAL : NORMAL + 3]
    impulse = -np.einsum("ni,ni->n", force[node], normal)[:, None] * normal
    left = force.copy()
    np.add.at(left, node, impulse)
    has = image >= 0
    np.add.at(left, image[has], -(rows[:, RATIO, None] * impulse)[has])
    buoyancy = 4.0 / 3.0 * math.pi * radius**3
    near = (np.abs(phi) < 2.0) & (mass > 0.0)
    held, imaged = np.zeros((2, len(nodes)), bool)
    held[node], imaged[image[has]] = True, True
    shares = [left[which, 1].sum() / buoyancy for which in (near & held, near & imaged & ~held, near & ~imaged & ~held)]
    taken = -((1.0 - rows[:, RATIO]) * impulse[:, 1]).sum() / buoyancy
    by_flux, rest = taken_by_flux(nodes - centre, push, force, mass, (np.abs(phi) < BAND) & (mass > 1e-9))

    def acceleration(of: np.ndarray) -> float:
        return float(np.sqrt((of[near] ** 2 / mass[near, None]).sum() / mass[near].sum()))

    return (taken, *shares, by_flux / buoyancy, acceleration(left), acceleration(rest))


def forces(
    place: np.ndarray, volume: np.ndarray, index: dict[tuple[int, ...], int], count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of the nodes mass, shape (n,), sum V grad w, and sum p V grad w less weight, shape (n, 3); p is minus the height."""
    base = np.floor(place - 0.5).astype(int)
    t = place - base
    w = np.stack([0.5 * (1.5 - t) ** 2, 0.75 - (t - 1.0) ** 2, 0.5 * (t - 0.5) ** 2])
    slope = np.stack([t - 1.5, 2.0 - 2.0 * t, t - 0.5])
    mass, push, force = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 3))
    for at in itertools.product(range(3), repeat=3):
        to = np.array([index[tuple(key)] for key in base + np.array(at)])
        axes = range(3)
        weight = volume * np.prod([w[at[a], :, a] for a in axes], axis=0)
        mass += np.bincount(to, weight, count)
        for a in axes:
            one = volume * np.prod([(slope if b == a else w)[at[b], :, b] for b in axes], axis=0)
            push[:, a] += np.bincount(to, one, count)
            force[:, a] -= np.bincount(to, one * place[:, 1], count)
    force[:, 1] -= mass
    return mass, push, force


def taken_by_flux(
    nodes: np.ndarray, push: np.ndarray, force: np.ndarray, mass: np.ndarray, band: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return what impulses through patches of the surface take of the upward force, and the forces they leave, shape (n, 3)."""
    at = np.floor(nodes[band] / HAT).astype(int)
    share = nodes[band] / HAT - at
    keys, hats = [], []
    for corner in itertools.product((0, 1), repeat=3):
        keys.append(at + np.array(corner))
        hats.append(np.prod(np.where(corner, share, 1.0 - share), axis=1))
    patches, which = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    hat = np.zeros((len(at), len(patches)))
    np.add.at(hat, (np.tile(np.arange(len(at)), 8), which.ravel()), np.concatenate(hats))
    pushes = (push[band, :, None] * hat[:, None, :]).reshape(-1, len(patches))  # what each patch does to the nodes' components
    root = np.sqrt(mass[band]).repeat(3)
    found = np.linalg.lstsq(pushes / root[:, None], -force[band].ravel() / root, rcond=1e-10)[0]
    given = (pushes @ found).reshape(-1, 3)
    left = force.copy()
    left[band] += given
    return float(-given[:, 1].sum()), left


if __name__ == "__main__":
    raise SystemExit(main())
