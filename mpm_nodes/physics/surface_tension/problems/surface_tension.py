"""Surface tension: energy and derivatives of a sample, closed surfaces, momentum, pressure, oscillation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Particles, SurfaceTension
from mpm_nodes.kernels.cells.bins import bins_of, places_of
from mpm_nodes.physics.surface_tension.kernels import energy
from mpm_nodes.physics.surface_tension.kernels.edge_cuts import NO_MIRRORS, cut_edges
from mpm_nodes.physics.surface_tension.kernels.sampling import Spread, sample_union, triangles_of
from mpm_nodes.physics.surface_tension.kernels.union import union_of_spheres
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import angular_momentum, centre_of_mass, column, momentum, momentum_scale
from mpm_nodes.verification.scenes import OPEN, SLIP, changed, material, settle, walled

H = 0.1
TENSION = 1.0
SPHERES, DISCS = 0.867, 0.73
"""Radii of the level set in space and in a slab [cells], C21 section 4.1."""
EVERYWHERE = np.full(3, 1 << 40, np.int64)
"""Cell beyond all, along each axis."""


def liquid(bulk_modulus: float = 100.0, viscosity: float = 0.0) -> Any:
    """Return a liquid of unit density and tension."""
    made = material("liquid", 1.0, bulk_modulus=bulk_modulus)
    return type(made)(made.law, made.params, 1.0, "drop", viscosity=viscosity, surface_tension=SurfaceTension(TENSION))


def lattice(radius: float, low: Any, high: Any, matter: Any) -> Particles:
    """Return eight particles a cell within `radius` cells of the origin (of the z axis where `high` is not a cube)."""
    axes = [(np.arange(2 * a, 2 * b) + 0.5) * 0.5 * H for a, b in zip(low, high, strict=True)]
    position = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    flat = high[2] - low[2] == 2
    position = position[(position[:, : 2 if flat else 3] ** 2).sum(axis=1) < (radius * H) ** 2]
    return Particles({"position": position, "volume": np.full(len(position), (0.5 * H) ** 3)}, (matter,), 0.5 * H)


def disc(radius: int, matter: Any) -> Particles:
    """Return a slab of two cells, a disc of `radius` cells."""
    return lattice(radius, (-radius, -radius, 0), (radius, radius, 2), matter)


def slab(particles: Particles, preset: str = "surface_tension", **settings: Any) -> SubstepSolver:
    """Return a solve of a slab between two walls, without gravity."""
    far = 100.0 * H
    walls = walled((-far, -far, 0.0), (far, far, 2 * H), OPEN, OPEN, OPEN, OPEN, SLIP, SLIP)
    substeps = {"preset": preset, "set": {"slab": "z", "radius": DISCS, **settings}}
    return SubstepSolver(
        particles, substeps, cell_size=H, dtype=np.float64, origin=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0), walls=walls
    )


class SurfaceEnergyDerivatives(VerificationProblem):
    """Force and Hessian of a sample are derivatives of its energy.

    Scene: twenty random normals and displacement gradients of up to 0.5, tensions of both signs.
    Exact: the energy is k |cof(I + A) n|; central differences of it, and of its gradient; all of that, and the
        eigenvalues below zero of it set to zero.
    Tolerance: 1e-13 of the energy; 1e-6 and 1e-5 of the differences.
    """

    name = "surface_energy_derivatives"
    source = "C21 eq. 7 and 16"

    def findings(self) -> Iterator[Finding]:
        """Compare at random states."""
        random, worst, step = np.random.default_rng(4), np.zeros(4), 1e-5
        units = np.eye(9)
        for _ in range(20):
            n = random.normal(size=3)
            n /= np.linalg.norm(n)
            A = random.uniform(-0.5, 0.5, 9) / 3.0

            def area(at: np.ndarray, n: np.ndarray = n) -> float:
                return float(energy.stretched(tuple(n), tuple(at))[3])

            def gradient(at: np.ndarray, n: np.ndarray = n) -> np.ndarray:
                return np.array(energy.surface_gradient(tuple(n), tuple(at)))

            F = np.eye(3) + A.reshape(3, 3)
            exact = np.linalg.norm(np.linalg.det(F) * np.linalg.inv(F).T @ n)
            first = [(area(A + step * unit) - area(A - step * unit)) / (2.0 * step) for unit in units]
            second = np.array([(gradient(A + step * unit) - gradient(A - step * unit)) / (2.0 * step) for unit in units])
            worst[0] = max(worst[0], abs(area(A) / exact - 1.0))
            worst[1] = max(worst[1], np.abs(gradient(A) - first).max())
            for k in (1.0, -1.0):
                values, vectors = np.linalg.eigh(0.5 * k * (second + second.T))
                kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
                for place, whole, should in ((2, False, kept), (3, True, 0.5 * k * (second + second.T))):
                    mine = [energy.second_derivative(tuple(n), tuple(A), tuple(unit), k, whole) for unit in units]
                    worst[place] = max(worst[place], np.abs(np.array(mine) - should).max())
        yield Finding(0.0, float(worst[0]), 1e-13, "energy")
        yield Finding(0.0, float(worst[1]), 1e-6, "gradient")
        yield Finding(0.0, float(worst[2]), 1e-5, "positive part of the Hessian")
        yield Finding(0.0, float(worst[3]), 1e-5, "all of it")


def samples_of(
    position: np.ndarray, cell_size: float = H, radius: float = SPHERES, shift: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return samples of the surface around particles of an eighth of a cell each: places, area vectors, places of owners [m]."""
    store, places, bins, inside, cuts = _cut(position, cell_size, radius, shift)
    points = sample_union(bins, places, inside, cuts, (-EVERYWHERE, EVERYWHERE), Spread(1.0), 0)
    of = np.repeat(np.arange(len(places.slot)), np.diff(points.start))
    at = cell_size * (4.0 * places.coord[of] + 1.5 + 0.5 * points.position)
    vectors = points.normal * (points.area * 0.25 * cell_size**2)[:, None]
    return at, vectors, store.unpack("position")[points.owner]


def _cut(position: np.ndarray, cell_size: float, radius: float, shift: bool) -> tuple[Any, ...]:
    store = ParticleStore(["velocity"], cell_size=cell_size, dtype=np.float64)
    store.append({"position": position})
    store.sort()
    places = places_of(store.block_coord, store.block_body)
    bins = bins_of(store.offset, store.stride, store.shift, store.block_start, store.array("material"), places)
    inside, phi = union_of_spheres(bins, places, 2.0 * radius, 0)
    depth = 2.0 * radius - 0.5 if shift else 0.0
    cuts = cut_edges(bins, places, (inside, phi), np.full(store.count, 0.125), depth, NO_MIRRORS, 0)
    return store, places, bins, inside, cuts


def surface_of(position: np.ndarray) -> dict[str, Any]:
    """Return samples and mesh of the surface around particles: areas and open edges of the mesh, samples with their owners."""
    store, places, _, inside, cuts = _cut(position, H, SPHERES, True)
    mesh = triangles_of(places, inside, cuts)
    first = 4 * places.coord[mesh.place].astype(np.int64)[:, None, :]
    vertices = np.concatenate([mesh.edges[..., :3] + first, mesh.edges[..., 3:]], axis=2).reshape(-1, 4)
    named = np.unique(vertices, axis=0, return_inverse=True)[1].reshape(-1, 3)
    sides = np.concatenate([named[:, [0, 1]], named[:, [1, 2]], named[:, [2, 0]]])
    edges, way = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True)
    balance = np.bincount(way.ravel(), np.sign(sides[:, 1] - sides[:, 0]), len(edges))
    corners = mesh.corners * (0.5 * H)
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    at, vectors, owner = samples_of(position)
    return {
        "open edges": int(np.count_nonzero(balance)),
        "area": float(areas.sum()),
        "samples": at,
        "vectors": vectors,
        "owner": owner,
        "particles": store.unpack("position"),
    }


class ClosedSurface(VerificationProblem):
    """The surface is closed whatever the particles do, samples stand for all of it, and that of a ball is a sphere's.

    Scene: a lone particle; a thread; a sheet of one layer; two balls that touch; random clouds of several densities; a ball of ten
        cells.
    Exact: no edge that fewer triangles leave than enter; areas of samples sum to the mesh's, area vectors to zero; owners are
        nearest; 4 pi R^2 of the ball of R cells, and of R + 0.867 - 0.25 for the union of spheres that is not drawn in: spheres
        stand on the outermost particles, a quarter of a cell inside.
    Tolerance: none for edges; 1e-12 of the area; 1e-5 cells for owners, the rounding of single precision; 6 % of the sphere's area,
        never less than all of it: the surface over a lattice is rough.
    """

    name = "closed_surface"
    source = "C21 section 4.1"

    def findings(self) -> Iterator[Finding]:
        """Sample each cloud."""
        random, line = np.random.default_rng(5), np.arange(14) * 0.5 * H
        ball = lattice(3, (-3, -3, -3), (3, 3, 3), liquid())["position"]
        sheet = np.stack(np.meshgrid(line, line, [0.03], indexing="ij"), axis=-1).reshape(-1, 3)
        clouds = {
            "a lone particle": np.array([[0.031, 0.12, -0.07]]),
            "a thread": np.outer(line, (0.6, 0.5, 0.62)),
            "a sheet": sheet,
            "two balls": np.concatenate([ball, ball + [5.6 * H, 0.3 * H, 0.0]]),
            **{f"{count} at random": random.uniform(-5 * H, 5 * H, (count, 3)) for count in (100, 400)},
        }
        for name, position in clouds.items():
            found = surface_of(position)
            area = float(np.linalg.norm(found["vectors"], axis=1).sum())
            distance = np.linalg.norm(found["samples"] - found["owner"], axis=1)
            nearest = [np.linalg.norm(found["particles"] - place, axis=1).min() for place in found["samples"]]
            yield Finding(0.0, found["open edges"], 0.0, f"{name}: open edges")
            yield Finding(0.0, area / found["area"] - 1.0, 1e-12, f"{name}: area of the samples")
            yield Finding(0.0, float(np.abs(found["vectors"].sum(axis=0)).max()) / area, 1e-12, f"{name}: sum of area vectors")
            yield Finding(0.0, float(np.abs(distance - nearest).max()) / H, 1e-5, f"{name}: owners")
        cells = 10
        ball = lattice(cells, (-cells,) * 3, (cells,) * 3, liquid())["position"]
        for shift, radius in ((True, cells), (False, cells + SPHERES - 0.25)):
            vectors = samples_of(ball, shift=shift)[1]
            area = float(np.linalg.norm(vectors, axis=1).sum())
            how = "drawn in" if shift else "of the union of spheres"
            yield Finding(1.03, area / (4.0 * math.pi * (radius * H) ** 2), 0.03, f"a ball: area {how}, over the sphere's")
            yield Finding(0.0, float(np.linalg.norm(vectors.sum(axis=0))) / area, 1e-10, f"a ball: sum of area vectors {how}")


class EllipseMomentum(VerificationProblem):
    """A drop that oscillates keeps momentum, angular momentum and centre of mass; without mass of the samples it does not.

    Scene: an ellipse (slab, 6 cells, stretched by 1.2) that spins and drifts, explicit, 100 substeps, float64; then the same
        with massless samples.
    Exact: momentum and angular momentum stay; the centre of mass moves at its speed.
    Tolerance: 1e-10 of sum m |v|, of that times the radius, and of the radius. The massless variant must lose a thousand times as
        much, or the test would show nothing.
    """

    name = "ellipse_momentum"
    source = "C21 sections 5 and 6.1"
    slow = True
    substeps = 100

    def findings(self) -> Iterator[Finding]:
        """Run both variants."""
        lost = {}
        for massless in (False, True):
            drop = disc(6, liquid())
            x = drop["position"] * [1.2, 1.0 / 1.2, 1.0]
            velocity = np.stack([0.3 - 0.4 * x[:, 1], 0.1 + 0.4 * x[:, 0], 0.0 * x[:, 0]], axis=1)
            run = slab(changed(drop, position=x, velocity=velocity), massless=massless)
            run.step()
            before = momentum(run), angular_momentum(run), centre_of_mass(run), run.time
            for _ in range(self.substeps):
                run.step()
            scale, radius = momentum_scale(run), 6 * H
            drift = before[2] + (run.time - before[3]) * before[0] / column(run, "mass").sum()
            lost[massless] = [
                float(np.abs(momentum(run) - before[0])[:2].max()) / scale,
                abs(float(angular_momentum(run)[2] - before[1][2])) / (scale * radius),
                float(np.abs(centre_of_mass(run) - drift)[:2].max()) / radius,
            ]
        for value, what in zip(lost[False], ("momentum", "angular momentum", "centre of mass"), strict=True):
            yield Finding(0.0, value, 1e-10, what)
        yield Finding(1.0, float(lost[True][0] > 1e-7), 0.0, "massless samples lose momentum")


class WholeEllipse(EllipseMomentum):
    """From the first swing until the drop is nearly round momentum, angular momentum and centre of mass stay.

    Scene: that of ellipse_momentum, 800 substeps: three periods of the swing.
    Exact: momentum and angular momentum stay; the centre of mass moves at its speed.
    Tolerance: 1e-10 of sum m |v|, of that times the radius, and of the radius; the massless variant must lose a thousand times as
        much.
    """

    name = "whole_ellipse"
    source = "C21 section 6.1"
    substeps = 800


class LaplacePressure(VerificationProblem):
    """The pressure inside a drop at rest carries its surface.

    Scene: a disc (slab, 8 cells) that settles, damped.
    Exact: the virial of the forces: 2 sum V0 J p = sum k dA.
    Tolerance: 1 %: what motion is left.
    """

    name = "laplace_pressure"
    source = "Laplace"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Settle and measure."""
        run = slab(disc(8, liquid()))
        settle(run, 3.0, 4.0)
        e, volume = column(run, "volume_change"), column(run, "volume")
        inside = -2.0 * float(volume @ (100.0 * e * (1.0 + e)))
        run.step(1e-9)
        surface = float(run.step_context.report["surface"]["energy"])
        yield Finding.relative(surface, inside, 0.01, "2 sum V0 J p against sum k dA")
        yield Finding.relative(2.0 * math.pi * 8 * H * 2 * H, surface / TENSION, 0.08, "area of the surface")


class DropVolume(VerificationProblem):
    """A small drop keeps its size, and the pressure in it is that of its own surface.

    Scene: a ball of three cells at rest, viscous, for six capillary times sqrt(rho R^3 / k).
    Exact: the radius that the particles' mean square distance from the centre stands for is that of their volumes V0 J; so is the
        volume that the sampled surface encloses; p = 2 k / R.
    Tolerance: 2 % of the radius, 6 % of the volume, and 15 % of the pressure: errors of order h / R.
    """

    name = "drop_volume"
    source = "Laplace"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it lie."""
        cells, bulk = 3, 400.0
        ball = lattice(cells, (-cells,) * 3, (cells,) * 3, liquid(bulk, 0.05))
        run = SubstepSolver(ball, "surface_tension", cell_size=H, dtype=np.float64, origin=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0))
        while run.time < 6.0 * math.sqrt((cells * H) ** 3 / TENSION):
            run.step()
        run.step(1e-9)
        x, e, v = column(run, "position"), column(run, "volume_change"), column(run, "volume")
        matter = float(v @ (1.0 + e))
        radius = (0.75 * matter / math.pi) ** (1.0 / 3.0)
        samples, away = run.stores["samples"], x - v @ x / v.sum()
        outwards = (samples.unpack("position") * samples.unpack("normal")).sum(axis=1)
        enclosed = float(samples.rows("area")[0].astype(float) @ outwards) / 3.0
        spread = math.sqrt(5.0 / 3.0 * float(v @ (away**2).sum(axis=1)) / v.sum())
        yield Finding.relative(radius, spread, 0.02, "radius of the particles [m]")
        yield Finding.relative(matter, enclosed, 0.06, "volume inside the surface [m^3]")
        yield Finding.relative(2.0 * TENSION / radius, -bulk * float(v @ e) / v.sum(), 0.15, "pressure [Pa]")


def zeros(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return where values change their sign, by linear interpolation."""
    at = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    return times[at] - values[at] * (times[at + 1] - times[at]) / (values[at + 1] - values[at])


def oscillation(run: SubstepSolver, duration: float, dt: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return times and how much wider than high the matter is, in steps of dt [s] or of the preset's choice."""
    times, values = [], []
    while run.time < duration:
        run.step(dt)
        times.append(run.time)
        values.append(stretch_of(run))
    return np.array(times), np.array(values)


def stretch_of(run: SubstepSolver) -> float:
    """Return how much wider than high the matter is."""
    x, m = column(run, "position"), column(run, "mass")
    return float(m @ (x[:, 0] ** 2 - x[:, 1] ** 2)) / float(m @ (x[:, :2] ** 2).sum(axis=1))


class DropOscillation(VerificationProblem):
    """A stretched drop swings at the frequency of Rayleigh.

    Scene: an ellipse (slab, 15 cells, stretched by 1.05) at rest, explicit: the time between its first two round shapes.
    Exact: omega^2 = n (n^2 - 1) k / (rho R^3) with n = 2, the two-dimensional form.
    Tolerance: 8 %, an error of order h / R.
    """

    name = "drop_oscillation"
    source = "Rayleigh 1879, Lamb 1932"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Time half a period between two zeros."""
        exact = math.sqrt(6.0 * TENSION / (15 * H) ** 3)
        drop = disc(15, liquid())
        run = slab(changed(drop, position=drop["position"] * [1.05, 1.0 / 1.05, 1.0]))
        first, second = zeros(*oscillation(run, 5.2 / exact))[:2]
        yield Finding.relative(exact, math.pi / (second - first), 0.08, "frequency [1/s]")
