"""Constitutive laws at the material point and through the compiled stages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.materials.parameters import lame
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.deformation import update_deformation
from mpm_nodes.solver.stages.stress import compute_stress
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import changed, cloud, material

YOUNG, POISSON = 1e5, 0.3


def _states(law_id: str, count: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return random states of a law, up to a third away from rest, that it can take."""
    state = law(law_id).rest_state(count)
    for values in state.values():
        values += random.uniform(-0.3, 0.3, values.shape) / (3.0 if values.ndim == 3 else 1.0)
    return state


class UniaxialStress(VerificationProblem):
    """The elastic laws, as the stress stage evaluates them, have their closed form under uniaxial strain.

    Scene: 16 particles with F = diag(a, 1, 1), a from 0.5 to 2, E = 1e5 Pa, nu = 0.3; one call of the stress stage in
        float64.
    Exact: neo-Hookean sigma_11 = (mu/a)(a^2 - 1) + lam (a - 1); fixed corotated P_11 = (2 mu + lam)(a - 1); Kirchhoff
        tau_11 = a sigma_11 = a P_11.
    Tolerance: 1e-12 of (2 mu + lam) in float64.
    """

    name = "uniaxial_stress"
    source = "R15 eq. 8-9; C21 section 3.2.1"

    def findings(self) -> Iterator[Finding]:
        """Compare the xx component."""
        mu, lam = lame(YOUNG, POISSON)
        a = np.linspace(0.5, 2.0, 16)
        exact = {"neo_hookean": mu * (a * a - 1) + lam * a * (a - 1), "fixed_corotated": a * (2 * mu + lam) * (a - 1)}
        for law_id, tau in exact.items():
            stretch = np.tile(np.eye(3), (16, 1, 1))
            stretch[:, 0, 0] = a
            matter = material(law_id, youngs_modulus=YOUNG, poisson_ratio=POISSON)
            solver = SubstepSolver(changed(cloud(matter, 16, 0.2, 0.1), deformation=stretch), cell_size=0.1, dtype=np.float64)
            solver.particles.sort()
            compute_stress(solver.particles, solver.step_context)
            order = np.argsort(solver.particles.unpack("id"))
            measured = solver.particles.unpack("stress")[order, 0]
            yield Finding(0.0, np.abs(measured - tau).max() / (2 * mu + lam), 1e-12, law_id)


class StressIsEnergyDerivative(VerificationProblem):
    """Stress and stiffness of every law are the derivatives of its energy.

    Scene: 200 random states and increments A of each law, moduli of the defaults, a viscosity of 1 Pa s for the
        liquid.
    Exact: T : dA = d psi / d eps and dT = d T / d eps along random directions, by central differences of step 1e-5.
    Tolerance: 1e-6 for the stress, 1e-5 for its differential, relative to the largest entry: the error of the
        differences is 1e-10 from truncation and 1e-11/1e-5 from rounding.
    """

    name = "stress_is_energy_derivative"
    source = "virtual work"

    def findings(self) -> Iterator[Finding]:
        """Sweep the registry of laws."""
        for law_id in law_ids():
            random = np.random.default_rng(11)
            state, d = _states(law_id, 200, random), 1e-5
            a, da = random.uniform(-0.1, 0.1, (2, 200, 3, 3))
            params = {"viscosity": 1.0} if law(law_id).viscosity is not None else {}
            options = {"params": params, "dt": 0.1}
            psi = [call_law(law_id, "energy", state, a + s * d * da, **options) for s in (-1, 1)]
            stress = [call_law(law_id, "stress", state, a + s * d * da, **options) for s in (-1, 0, 1)]
            slope = call_law(law_id, "stress_differential", state, a, da, **options)
            work = np.einsum("nab,nab->n", stress[1], da)
            yield Finding(0.0, np.abs((psi[1] - psi[0]) / (2 * d) - work).max() / np.abs(work).max(), 1e-6, f"stress {law_id}")
            error = np.abs((stress[2] - stress[0]) / (2 * d) - slope).max()
            yield Finding(0.0, error / np.abs(slope).max(), 1e-5, f"differential {law_id}")


class GuardedStep(VerificationProblem):
    """The guarded step never turns matter inside out, packs it to a tenth at most, and is the plain step where that is safe.

    Scene: 4000 random increments M with entries up to 2.5, through the update stage on particles with F = I in
        float64.
    Exact: with the smallest k for which det(I + M/2^k) > 0: F = (I + M/2^k)^(2^k); for k = 0 that is I + M; det F >
        0. Where that has det F < 0.1, F = I stays.
    Tolerance: 1e-11 of |F| for repeated squaring of up to 2^3 factors; none for the sign of the determinant.
    """

    name = "guarded_step"
    source = "S14 section 5.3 (R(M)); Stomakhin 2014"

    def findings(self) -> Iterator[Finding]:
        """Step random particles and compare with the definition in NumPy."""
        count, random = 4000, np.random.default_rng(5)
        m = random.uniform(-1.0, 1.0, (count, 3, 3)) * random.uniform(0.0, 2.5, (count, 1, 1))
        start = changed(cloud(material("neo_hookean"), count, 0.8, 0.1), velocity_gradient=m)
        solver = SubstepSolver(start, cell_size=0.1, dtype=np.float64)
        solver.particles.sort()
        solver.step_context.dt = 1.0
        update_deformation(solver.particles, solver.step_context)
        after = solver.snapshot(["deformation"])["deformation"]
        exact, halvings = self._definition(m)
        size = np.abs(exact).max((1, 2))
        error = np.abs(after - exact).max((1, 2)) / size
        yield Finding(0.0, error[halvings == 0].max(), 1e-15, "plain steps")
        yield Finding(0.0, error[(halvings > 0) & (halvings < 4)].max(), 1e-11, "guarded steps")
        yield Finding(0.0, float((np.linalg.det(after) <= 0).sum()), 0.0, "inverted particles")
        yield Finding(1.0, float((halvings > 0).mean() > 0.05), 0.0, "the guard was needed")
        kept = (exact == np.eye(3)).all((1, 2))
        yield Finding(1.0, float(0.05 < kept.mean() < 0.5), 0.0, "some matter was packed as far as it goes")

    @staticmethod
    def _definition(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result, halvings = np.eye(3) + m, np.zeros(len(m), int)
        for _ in range(mat3.HALVINGS):
            bad = np.linalg.det(np.eye(3) + m / 2.0 ** halvings[:, None, None]) <= 0
            halvings[bad] += 1
        base = np.eye(3) + m / 2.0 ** halvings[:, None, None]
        for k in np.unique(halvings):
            result[halvings == k] = np.linalg.matrix_power(base[halvings == k], 2 ** int(k))
        result[np.linalg.det(result) < mat3.LEAST_VOLUME] = np.eye(3)
        return result, halvings
