"""Tearing, recovery and removal of what is too thin (Y15 section 7), with the stages as they run.

| symbol | meaning |
|---|---|
| F_E, F_P, F | elastic, plastic and total deformation gradient, F = F_E F_P |
| C_P | F_P^T F_P |
| b | unimodular elastic left Cauchy-Green tensor |
| S | eigenvalues of C_P |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Material, Particles
from mpm_nodes.physics.foam.kernels import tearing
from mpm_nodes.physics.foam.stages.recovery import recover_plasticity
from mpm_nodes.physics.foam.stages.remove_subgrid import remove_subgrid
from mpm_nodes.physics.foam.stages.tearing import detect_tears, limit_deformation, limit_stress
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column, full, packed
from mpm_nodes.verification.scenes import block, chain, changed, material

FOAM = (
    "choose_time_step",
    "rasterize",
    "detect_tears",
    "compute_stress",
    "limit_stress",
    "add_stress_forces",
    "update_grid_velocity",
    "collide_grid",
    "gather",
    "limit_deformation",
    "update_deformation",
    "update_total_deformation",
    "apply_plasticity",
    "recover_plasticity",
    "remove_subgrid",
    "collide_particles",
    "move_particles",
)
"""The stages of Y15 figure 2 without its last one, the resampling."""

TEARING = ("detect_tears", "limit_stress", "limit_deformation", "update_total_deformation", "recover_plasticity", "remove_subgrid")

H = 0.1


# ---------------------------------------------------------------- states
def rotations(random: np.random.Generator, count: int) -> np.ndarray:
    """Return random rotations, shape (count, 3, 3)."""
    q = np.linalg.qr(random.standard_normal((count, 3, 3)))[0]
    return q * np.sign(np.linalg.det(q))[:, None, None]


def isochoric(random: np.random.Generator, count: int, size: float) -> np.ndarray:
    """Return random matrices of determinant 1 whose logarithmic stretches are of order `size`, shape (count, 3, 3)."""
    stretch = random.normal(0.0, size, (count, 3))
    stretch -= stretch.mean(axis=1, keepdims=True)
    return rotations(random, count) * np.exp(stretch)[:, None, :] @ rotations(random, count)


def unimodular_strain(elastic: np.ndarray) -> np.ndarray:
    """Return det(F_E)^(-2/3) F_E F_E^T."""
    return elastic @ elastic.transpose(0, 2, 1) / np.cbrt(np.linalg.det(elastic))[:, None, None] ** 2


def cream(**facts: Any) -> Material:
    """Return a foam; `facts` are its tear threshold and its recovery time."""
    params = {"bulk_modulus": 109e3, "shear_modulus": 2.9e3, "yield_stress": 31.9, "consistency": 27.2, "flow_index": 0.22}
    return Material("herschel_bulkley", params, 77.7, "cream", **facts)


def deformed(matter: Material, elastic: np.ndarray, plastic: np.ndarray, **columns: Any) -> Particles:
    """Return particles of the foam `matter`, or of an elastic law, with given elastic and plastic deformation."""
    count = len(elastic)
    side = int(np.ceil(np.cbrt(count)))
    place = np.stack(np.unravel_index(np.arange(count), (side,) * 3), 1) * 0.5 * H
    given = {
        "position": place + 0.25 * H,
        "total_deformation": elastic @ plastic,
        "deformation": elastic,
        "volume_change": np.linalg.det(elastic) - 1.0,
        "weak": np.zeros(count, np.int32),
        "elastic_strain": packed(unimodular_strain(elastic) - np.eye(3)),
        "material": np.zeros(count, np.int32),
    }
    return Particles({**given, **columns}, (matter,), 0.5 * H)


def prepared(particles: Particles, dtype: Any = np.float64, names: tuple[str, ...] = FOAM, **knobs: Any) -> SubstepSolver:
    """Return a solver of the particles, sorted, ready for a single stage to be called."""
    solver = SubstepSolver(particles, chain(*names, **knobs), cell_size=H, dtype=dtype, fuse=False)
    solver.particles.sort()
    return solver


def by_id(solver: SubstepSolver, name: str) -> np.ndarray:
    """Return an attribute as float64, in the order in which the particles were given."""
    return column(solver, name)[np.argsort(solver.particles.unpack("id"))]


# ---------------------------------------------------------------- the problems
class TornWhereDistorted(VerificationProblem):
    """C_P is recovered from the total gradient and the elastic strain, and a particle is torn beyond its threshold.

    Scene: 4096 particles with random F_E (volume ratio 0.6 to 1.5) and given F_P of determinant 1; then a ladder of uniaxial
        plastic stretches a around the value that the threshold of shaving cream, 217.5, means; one call of the stage, float64.
    Exact: C_P = F_P^T F_P; |dev C_P| = sqrt(2/3) (a^2 - 1/a) at C_P = diag(a^2, 1/a, 1/a), so that 217.5 is a = 16.32.
    Tolerance: C_P 1e-12 of its largest entry; the last stretch that is not torn and the first that is lie within 1e-9.
    """

    name = "tear_threshold"
    source = "Y15 section 7.1, Algorithm 7"

    def findings(self) -> Iterator[Finding]:
        """Compare the strain, then climb the ladder."""
        random = np.random.default_rng(1)
        elastic, plastic = isochoric(random, 4096, 0.2) * random.uniform(0.6, 1.5, (4096, 1, 1)), isochoric(random, 4096, 0.7)
        columns = (tuple((elastic @ plastic).reshape(-1, 9).T), tuple(unimodular_strain(elastic).reshape(-1, 9).T))
        exact = plastic.transpose(0, 2, 1) @ plastic
        error = np.abs(np.stack(tearing.plastic_strain(*columns), -1).reshape(-1, 3, 3) - exact).max(axis=(1, 2))
        yield Finding(0.0, (error / np.abs(exact).max(axis=(1, 2))).max(), 1e-12, "C_P")
        limit = next(root.real for root in np.roots([1.0, 0.0, -217.5 / np.sqrt(2 / 3), -1.0]) if root.real > 1.0)
        yield Finding(16.32, limit, 0.01, "stretch of the threshold")
        a = limit * (1.0 + 2e-9 * (np.arange(64) - 31.5) / 63)
        plastic = np.zeros((64, 3, 3))
        plastic[:, 0, 0], plastic[:, 1, 1], plastic[:, 2, 2] = a, a**-0.5, a**-0.5
        solver = prepared(deformed(cream(tear_threshold=217.5), isochoric(random, 64, 0.2), rotations(random, 64) @ plastic))
        detect_tears(solver.particles)
        torn = by_id(solver, "weak") == 1
        yield Finding(1.0, float(torn[-1] and not torn[0]), 0.0, "torn above, whole below")
        yield Finding.relative(limit, 0.5 * (a[~torn].max() + a[torn].min()), 1e-9, "stretch found")


class WeakParticlesPushOnly(VerificationProblem):
    """Torn matter keeps its compression and loses its tension, and stores no strain while it comes apart.

    Scene: 4096 particles with random stress, strain and velocity gradient, half of them weak; one call of each stage, float64.
    Exact: eigenvalues of the stress become min(0, s), those without tension keep their bits; the largest eigenvalue of b does
        not grow; where J > 1 the step does not expand; what is not weak keeps its bits.
    Tolerance: 1e-13 of the largest stress and strain (float64, a few operations).
    """

    name = "weak_particles"
    source = "Y15 section 7.2, Algorithms 8 and 11"

    def findings(self) -> Iterator[Finding]:
        """Limit stress, then deformation."""
        random, count, dt = np.random.default_rng(2), 4096, 1e-3
        elastic = isochoric(random, count, 0.2) * random.uniform(0.8, 1.2, (count, 1, 1))
        stress = random.normal(size=(count, 6))
        stress[: count // 4] = -packed(elastic[: count // 4] @ elastic[: count // 4].transpose(0, 2, 1))
        gradient = random.normal(0.0, 100.0, (count, 3, 3))
        weak = np.arange(count, dtype=np.int32) % 2
        solver = prepared(deformed(cream(), elastic, np.eye(3)[None], stress=stress, velocity_gradient=gradient, weak=weak))
        limit_stress(solver.particles)
        after, torn = by_id(solver, "stress"), weak == 1
        values, was = np.linalg.eigvalsh(full(after)), np.linalg.eigvalsh(full(stress))
        yield Finding(0.0, max(values[torn].max(), 0.0), 1e-13 * np.abs(was).max(), "tension left")
        yield Finding(0.0, np.abs(values - np.minimum(was, 0.0))[torn].max(), 1e-13 * np.abs(was).max(), "compression kept")
        same = ~torn | (was.max(axis=1) <= 0.0)
        yield Finding(0.0, float((after != stress)[same].sum()), 0.0, "bits of the others")
        solver.step_context.dt = dt
        limit_deformation(solver.particles, solver.step_context)
        yield from self._deformation(elastic, gradient, by_id(solver, "velocity_gradient"), torn, dt)

    @staticmethod
    def _deformation(elastic: np.ndarray, before: np.ndarray, after: np.ndarray, torn: np.ndarray, dt: float) -> Iterator[Finding]:
        """Check the limits of the velocity gradient."""
        b, f = unimodular_strain(elastic), np.eye(3) + dt * after
        trial = f @ b @ f.transpose(0, 2, 1) / np.cbrt(np.linalg.det(f))[:, None, None] ** 2
        growth = np.linalg.eigvalsh(trial)[:, -1] - np.linalg.eigvalsh(b)[:, -1]
        yield Finding(0.0, max(growth[torn].max(), 0.0), 1e-13 * np.abs(b).max(), "growth of the largest strain")
        given, kept = np.linalg.det(np.eye(3) + dt * before), np.linalg.det(f)
        swells = (np.linalg.det(elastic) > 1.0) & (given > 1.0)
        yield Finding(0.0, np.abs(kept - 1.0)[torn & swells].max(), 1e-13, "expansion beyond rest")
        yield Finding(0.0, np.abs(kept / given - 1.0)[torn & ~swells].max(), 1e-13, "volume otherwise")
        yield Finding(0.0, float((after != before)[~torn].sum()), 0.0, "bits of whole particles")


class RecoveryForgets(VerificationProblem):
    """Plastic distortion decays to nothing in the recovery time, by the same amount however time is divided.

    Scene: 1024 particles with random F_E and F_P, recovery time 0.35 s, over 0.2 s in 1, 2 and 50 calls of the stage, float64.
    Exact: eigenvalues S^exp(-t / t_p); det F stays.
    Tolerance: 1e-10 relative.
    """

    name = "plastic_recovery"
    source = "Y15 section 7.3, Algorithm 14"

    def findings(self) -> Iterator[Finding]:
        """Recover in one, two and fifty steps."""
        random, time = np.random.default_rng(3), 0.2
        elastic, plastic = isochoric(random, 1024, 0.2) * random.uniform(0.8, 1.2, (1024, 1, 1)), isochoric(random, 1024, 0.7)
        exact = np.linalg.eigvalsh(plastic.transpose(0, 2, 1) @ plastic) ** np.exp(-time / 0.35)
        b, volume = unimodular_strain(elastic), np.linalg.det(elastic)
        ends = []
        for count in (1, 2, 50):
            solver = prepared(deformed(cream(recovery_time=0.35), elastic, plastic))
            solver.step_context.dt = time / count
            for _ in range(count):
                recover_plasticity(solver.particles, solver.step_context)
            f = by_id(solver, "total_deformation")
            strain = np.einsum("nji,njk,nkl->nil", f, np.linalg.inv(b), f) / np.cbrt(np.linalg.det(f))[:, None, None] ** 2
            error = np.abs(np.linalg.eigvalsh(strain) / exact - 1.0).max()
            yield Finding(0.0, error, 1e-10, f"eigenvalues after {count} steps")
            yield Finding(0.0, np.abs(np.linalg.det(f) / volume - 1.0).max(), 1e-10, f"volume after {count} steps")
            ends.append(f)
        yield Finding(0.0, np.abs(ends[2] - ends[0]).max(), 1e-10, "one step against fifty")


class TornLayer(VerificationProblem):
    """A torn layer in a stretched bar transmits no tension; in a compressed one it transmits what whole matter does.

    Scene: a bar of 24 x 4 x 4 cells, stretched or compressed by 2 % along all axes, the middle third of it weak, free in space;
        20 substeps of 0.2 ms with all limits when stretched, one when compressed, float64; once with nothing weak.
    Exact: the momentum that the right half is pulled back by, over that of the whole bar: 0 at every substep when stretched, 1
        when compressed. (Torn matter that its neighbours jostle may push.)
    Tolerance: stretched 1e-9 (what transfers carry over the four cells from where the bar is whole); compressed 1e-12.
    """

    name = "torn_layer"
    source = "Y15 section 7.2"

    def findings(self) -> Iterator[Finding]:
        """Compare impulses."""
        torn, whole = (self._impulses(1.02, weak, 20) for weak in (True, False))
        yield Finding(0.0, max(0.0, (torn / whole).max()), 1e-9, "stretched")
        torn, whole = (self._impulses(0.98, weak, 1) for weak in (True, False))
        yield Finding(1.0, torn[0] / whole[0], 1e-12, "compressed")

    @staticmethod
    def _impulses(stretch: float, weak: bool, substeps: int) -> np.ndarray:
        """Return the momentum along x that the right half has gained after each substep [kg m/s]."""
        bar = block(material("neo_hookean", youngs_modulus=1e4), (-1.2, -0.2, -0.2), (1.2, 0.2, 0.2), H)
        x = bar["position"][:, 0]
        bar = changed(
            bar, deformation=np.tile(stretch * np.eye(3), (len(bar), 1, 1)), weak=((np.abs(x) < 0.4) & weak).astype(np.int32)
        )
        names = [name for name in FOAM if name not in ("choose_time_step", "remove_subgrid")]
        solver = SubstepSolver(bar, chain(*names), cell_size=H, dtype=np.float64, gravity=(0.0, 0.0, 0.0))
        gained = []
        for _ in range(substeps):
            solver.step(2e-4)
            gained.append((by_id(solver, "mass") * by_id(solver, "velocity")[:, 0])[x > 0.0].sum())
        return np.array(gained)


class ThinMatterGoes(VerificationProblem):
    """Weak particles go where the grid cannot resolve how they lie, and the report says what was lost.

    Scene: particles of uneven mass and velocity, all weak: one alone, a straight thread of forty, a flat sheet of 20 x 20, a
        solid cube of 8^3 cells; and the same thread not weak; one call of the stage, single precision.
    Exact: alone, thread and sheet go, the cube and the whole thread stay; removed mass and momentum are the differences. Deep in
        a full neighbourhood V is 0.18 h^2 in every direction: such a particle stays at anisotropy 0.17 and goes at 0.19.
    Tolerance: counts exact; mass and momentum 1e-12 of the totals (sums in float64).
    """

    name = "subgrid_removal"
    source = "Y15 section 7.4, Algorithm 15; method section 8.6"

    def findings(self) -> Iterator[Finding]:
        """Call the stage once."""
        particles, kind = self._matter()
        solver = prepared(particles, np.float32)
        mass, momentum = self._totals(solver)
        remove_subgrid(solver.particles, solver.step_context)
        left = np.bincount(kind[np.sort(solver.particles.unpack("id"))], minlength=5)
        for index, what in enumerate(("alone", "thread", "sheet", "cube", "whole thread")):
            yield Finding((kind == index).sum() if index > 2 else 0, left[index], 0.0, f"{what} left")
        gone = solver.step_context.report["removed"]
        mass_left, momentum_left = self._totals(solver)
        yield Finding(len(particles) - solver.particles.count, gone["particles"], 0.0, "particles reported")
        yield Finding(mass - mass_left, gone["mass"], 1e-12 * mass, "mass reported")
        error = np.abs(momentum - momentum_left - gone["momentum"]).max()
        yield Finding(0.0, error, 1e-12 * mass, "momentum reported")
        for anisotropy, expected in ((0.17, 0), (0.19, 1)):
            yield Finding(expected, self._gone_from_within(anisotropy), 0.0, f"gone from within at {anisotropy}")

    @staticmethod
    def _matter() -> tuple[Particles, np.ndarray]:
        """Return the particles, and to which of the five parts each belongs."""
        random, d = np.random.default_rng(4), 0.5 * H
        line, flat = np.zeros((40, 3)), np.zeros((400, 3))
        line[:, 1] = d * np.arange(40)
        flat[:, [0, 2]] = d * np.stack(np.divmod(np.arange(400), 20), 1)
        cube = d * np.stack(np.unravel_index(np.arange(16**3), (16,) * 3), 1)
        parts = [
            np.zeros((1, 3)),
            line + [2.0, 0.0, 0.0],
            flat + [4.0, 0.03, 0.0],
            cube + [8.0, 0.01, 0.02],
            line + [12.0, 0.0, 0.0],
        ]
        kind = np.repeat(np.arange(5), [len(part) for part in parts])
        count = len(kind)
        eye = np.tile(np.eye(3), (count, 1, 1))
        return deformed(
            cream(),
            eye,
            eye,
            position=np.concatenate(parts),
            mass=random.uniform(0.5, 1.5, count),
            volume=np.full(count, d**3),
            velocity=random.normal(size=(count, 3)),
            weak=(kind < 4).astype(np.int32),
        ), kind

    @staticmethod
    def _totals(solver: SubstepSolver) -> tuple[float, np.ndarray]:
        mass = column(solver, "mass")
        return float(mass.sum()), mass @ column(solver, "velocity")

    @staticmethod
    def _gone_from_within(anisotropy: float) -> int:
        """Return how many particles go when the one in the middle of a cube of 6^3 cells is weak."""
        eye = np.tile(np.eye(3), (12**3, 1, 1))
        weak = np.zeros(12**3, np.int32)
        weak[6 * 144 + 6 * 12 + 6] = 1
        solver = prepared(deformed(cream(), eye, eye, weak=weak), np.float32)
        remove_subgrid(solver.particles, solver.step_context, anisotropy=anisotropy)
        return 12**3 - solver.particles.count
