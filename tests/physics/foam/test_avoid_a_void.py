"""Avoid-a-void in a solve: what it keeps, what it restores, and that sheared and stretched matter has no holes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, LIQUID, SNOW

from mpm_nodes.data import Kernel, Material, Particles, Transfer, concatenate
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.physics.foam.numerics.resampling import ResamplingSettings, resample
from mpm_nodes.physics.foam.stages.avoid_a_void import COVERAGE
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver

FOAM = Material("herschel_bulkley", {}, 77.7, "foam")
H = 0.1
needs_two = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")


def document(**knobs: Any) -> dict[str, Any]:
    """Return the explicit preset with the stage at its end."""
    preset = json.loads(registries.default().presets["explicit_apic"].read_text())
    preset["nodes"]["avoid_a_void"] = {"type": "avoid_a_void", "knobs": knobs, "inputs": {"particles": "move_particles"}}
    return preset


def ball(material: Material, cells: float = 3.0, stretch: Any = (1.0, 1.0, 1.0), **columns: Any) -> Particles:
    """Return a stretched ball of lattice particles; extra columns are broadcast over them."""
    steps = (np.arange(-int(2 * cells) - 1, int(2 * cells) + 1) + 0.5) * 0.5 * H
    x = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3)
    x = x[(x**2).sum(axis=1) < (cells * H) ** 2] * stretch
    wide = {name: np.broadcast_to(value, (len(x), *np.shape(value))) for name, value in columns.items()}
    return Particles({"position": x, "material": np.zeros(len(x), np.int32), **wide}, (material,), 0.5 * H)


def settings(kernel: Kernel = Kernel.QUADRATIC, transfer: Transfer = Transfer.APIC, conserve: bool = True) -> ResamplingSettings:
    """Return the settings of one call, the rest as by default."""
    return ResamplingSettings(kernel, transfer, conserve, COVERAGE, 2.2, 0.03, 1.0 / 32.0, 1)


def shaken(material: Material, dtype: Any) -> SubstepSolver:
    """Return a stretched ball with twins, uneven masses, random motion and random state, ready to be resampled."""
    random, start = np.random.default_rng(1), ball(material, stretch=(1.25, 1.0, 0.95))
    x, n = start["position"].copy(), len(start)
    x[::60] = x[1::60][: len(x[::60])] + random.uniform(-1.0, 1.0, (len(x[::60]), 3)) * 2e-4
    columns = {
        "position": x,
        "mass": random.uniform(0.5, 1.5, n),
        "volume": random.uniform(1e-4, 2e-4, n),
        "velocity": random.normal(size=(n, 3)),
        "affine": 3.0 * random.normal(size=(n, 3, 3)),
        "warmth": x[:, 0],
    }
    start = Particles({**start.attributes, **columns}, start.materials, start.spacing)
    solver = SubstepSolver(start, document(), cell_size=H, dtype=dtype)
    particles = solver.particles
    state = {
        "deformation": np.eye(3) + 0.05 * random.normal(size=(n, 3, 3)),
        "volume_change": 0.1 * random.normal(size=n),
        "plastic_volume_ratio": random.uniform(0.9, 1.1, n),
        "elastic_strain": 0.1 * random.normal(size=(n, 6)),
    }
    for name, value in state.items():
        if name in particles.names:
            particles.pack(name, value)
    return solver


def totals(solver: SubstepSolver, inertia: float) -> dict[str, Any]:
    """Return mass, volume, momentum, angular momentum, first moment and kinetic energy in float64."""
    names = ("mass", "volume", "position", "velocity", "affine")
    m, w, x, v, c = (solver.particles.unpack(name).astype(float) for name in names)
    curl = np.stack([c[:, 2, 1] - c[:, 1, 2], c[:, 0, 2] - c[:, 2, 0], c[:, 1, 0] - c[:, 0, 1]], 1)
    return {
        "mass": m.sum(),
        "volume": w.sum(),
        "momentum": m @ v,
        "turning": m @ (np.cross(x, v) + inertia * H * H * curl),
        "moment": m @ x,
        "energy": 0.5 * m @ (v**2).sum(axis=1),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("material", [FOAM, JELLY, SNOW, LIQUID], ids=lambda material: material.law)
@pytest.mark.parametrize(("kernel", "inertia"), [(Kernel.QUADRATIC, 0.25), (Kernel.CUBIC, 1.0 / 3.0)])
def test_what_a_call_keeps(dtype, material, kernel, inertia):
    """Mass, volume, momentum and angular momentum stay; the centre of mass moves by what is reported; energy does not grow."""
    solver = shaken(material, dtype)
    before, count = totals(solver, inertia), solver.particles.count
    outcome = resample(solver.particles, settings(kernel))
    after = totals(solver, inertia)
    assert outcome.inserted > 50 and outcome.merged > 5 and outcome.discarded == 0
    assert solver.particles.count == count + outcome.inserted - outcome.merged
    # single precision rounds each of a thousand new values at 6e-8 of the value
    rounding, size = (1e-8, 1e-6) if dtype is np.float32 else (1e-14, 1e-12)
    for name in ("mass", "volume"):
        assert after[name] == pytest.approx(before[name], rel=rounding)
    for name in ("momentum", "turning"):
        assert np.abs(after[name] - before[name]).max() < size * before["mass"]
    moved = after["moment"] / after["mass"] - before["moment"] / before["mass"]
    assert np.abs(moved - outcome.centre_shift).max() < rounding * 10 and np.abs(moved).max() > 1e-6
    assert after["energy"] < before["energy"]


def test_giving_back_leaves_matter_as_strong_as_it_was():
    """Light pairs of a drawn-out ball merge: mass and momentum stay, the plastic distortion, which tears, to 1 %, det F is J."""
    start = ball(FOAM, stretch=(1.6, 0.75, 0.75))
    x, n = start["position"], len(start)
    small = {"mass": np.full(n, 0.06), "volume": np.full(n, 0.6 * (0.5 * H) ** 3), "velocity": x @ np.diag([3.0, -1.0, -2.0])}
    # drawn out along x, the more so the farther from the middle, and turned
    long = 1.6 + 0.3 * np.abs(x[:, 0]) / np.abs(x[:, 0]).max()
    turn = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    F = turn @ (np.stack([long, long**-0.5, long**-0.5], 1)[:, :, None] * np.eye(3))
    start = Particles({**start.attributes, **small, "total_deformation": F}, start.materials, start.spacing)
    solver = SubstepSolver(start, "continuum_foam", cell_size=H, dtype=np.float64)
    before, strength, count = totals(solver, 0.25), distortion(solver), solver.particles.count
    outcome = resample(solver.particles, dataclasses.replace(settings(Kernel.CUBIC, Transfer.FLIP), coverage=0.95, give_back=1.6))
    after = totals(solver, 0.25)
    assert outcome.merged > 0.2 * count > outcome.inserted
    for name in ("mass", "volume", "momentum"):
        np.testing.assert_allclose(after[name], before[name], rtol=1e-10, atol=1e-12)
    assert distortion(solver) == pytest.approx(strength, rel=0.01)
    np.testing.assert_allclose(np.linalg.det(solver.particles.unpack("total_deformation")), 1.0, rtol=1e-9)


def distortion(solver: SubstepSolver) -> float:
    """Return the mean of |dev C_P| over the mass, what tearing is told by, with C_P = F^T be^-1 F (Y15 7.1)."""
    read = solver.particles.unpack
    strain, J, F = read("elastic_strain"), 1.0 + read("volume_change").reshape(-1), read("total_deformation")
    be = np.cbrt(J)[:, None, None] ** 2 * (np.eye(3) + strain[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3))
    C = F.transpose(0, 2, 1) @ np.linalg.solve(be, F)
    deviator = C - np.trace(C, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)
    return float(np.average(np.sqrt((deviator**2).sum(axis=(1, 2))), weights=read("mass").reshape(-1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_a_call_restores(dtype):
    """New particles lie within their laws: det bbar = 1, det F > 0 and the average of J, no overlap with older identities."""
    rounding = 3e-6 if dtype is np.float32 else 1e-12
    solver = shaken(FOAM, dtype)
    solver.particles.pack("volume_change", np.full(solver.particles.count, 0.2))
    old = solver.particles.count
    resample(solver.particles, settings())
    ids = solver.particles.unpack("id")
    new = ids >= old
    assert len(np.unique(ids)) == len(ids) and solver.next_id == ids.max() + 1
    e = solver.particles.unpack("elastic_strain")[new].astype(float)
    bbar = np.eye(3) + e[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    np.testing.assert_allclose(np.linalg.det(bbar), 1.0, atol=rounding)
    np.testing.assert_allclose(solver.particles.unpack("volume_change")[new], 0.2, atol=rounding)
    jelly = shaken(JELLY, dtype)
    F = jelly.particles.unpack("deformation").astype(float)
    jelly.particles.pack("deformation", F * np.cbrt(1.3 / np.linalg.det(F))[:, None, None])
    resample(jelly.particles, settings())
    fresh = jelly.particles.unpack("deformation")[jelly.particles.unpack("id") >= old].astype(float)
    np.testing.assert_allclose(np.linalg.det(fresh), 1.3, rtol=rounding)


def test_the_printed_scheme_averages_velocities():
    """Without conservation new particles take the velocity of the grid around them: momentum may change, a common one stays."""
    solvers = [shaken(FOAM, np.float64) for _ in range(2)]
    before = totals(solvers[0], 0.25)
    for solver, conserve in zip(solvers, (True, False), strict=True):
        resample(solver.particles, settings(conserve=conserve))
    jump = [np.abs(totals(solver, 0.25)["momentum"] - before["momentum"]).max() for solver in solvers]
    assert jump[0] < 1e-12 * before["mass"] and jump[1] > 1e-6 * before["mass"]
    assert solvers[0].particles.count == solvers[1].particles.count
    flying = ball(FOAM, stretch=(1.3, 1.0, 1.0), velocity=[1.0, 2.0, 3.0])
    solver = SubstepSolver(flying, document(), cell_size=H, dtype=np.float64)
    assert resample(solver.particles, settings(conserve=False)).inserted > 50
    assert np.abs(solver.particles.unpack("velocity") - [1.0, 2.0, 3.0]).max() < 1e-12


def test_inverted_averages_are_replaced_by_the_nearest_state():
    """Where neighbours' deformations cancel, a new particle copies its nearest donor whole."""
    solver = SubstepSolver(ball(JELLY, stretch=(1.3, 1.0, 1.0)), document(), cell_size=H, dtype=np.float64)
    turns = np.array([np.eye(3), np.diag([-1.0, -1.0, 1.0]), np.diag([-1.0, 1.0, -1.0]), np.diag([1.0, -1.0, -1.0])])
    particles = solver.particles
    particles.pack("deformation", turns[np.random.default_rng(2).integers(0, 4, particles.count)])
    old = particles.count
    resample(particles, settings())
    F = particles.unpack("deformation")[particles.unpack("id") >= old]
    assert np.linalg.det(F).min() > 0.0
    copied = (F[:, None] == turns).all(axis=(2, 3)).any(axis=1)
    assert copied.sum() > 5


def test_materials_stay_apart():
    """Each material keeps its mass to rounding, and new particles have the state of their own law."""
    low, high = (ball(material, 4.0, (1.0, 1.0, 1.3)) for material in (FOAM, JELLY))
    cut = [part["position"][:, 2] < 0 for part in (low, high)]
    halves = [
        Particles({name: column[side] for name, column in part.attributes.items()}, part.materials, part.spacing)
        for part, side in ((low, cut[0]), (high, ~cut[1]))
    ]
    solver = SubstepSolver(concatenate(halves), document(), cell_size=H, dtype=np.float64)
    particles = solver.particles
    count = particles.count

    def masses() -> list[float]:
        kind = particles.unpack("material")
        return [particles.unpack("mass")[kind == m].sum() for m in (0, 1)]

    before = masses()
    outcome = resample(particles, settings())
    np.testing.assert_allclose(masses(), before, rtol=1e-13)
    new = particles.unpack("id") >= count
    assert outcome.inserted > 100 and set(particles.unpack("material")[new]) == {0, 1}


# ---------------------------------------------------------------- the stage
def run(substeps: int = 12, **options: Any) -> SubstepSolver:
    """Return a stretched, pulled ball after some substeps with a call every five."""
    start = ball(FOAM, 3.0, (1.3, 1.0, 1.0))
    pull = start["position"] * [30.0, -15.0, -15.0]
    start = Particles({**start.attributes, "velocity": pull, "warmth": 300.0 + pull[:, 0]}, start.materials, start.spacing)
    solver = SubstepSolver(start, document(interval=5), cell_size=H, **options)
    for n in range(substeps):
        solver.step(dt=2e-4, keep=n == substeps - 1)
    return solver


def test_the_interval_counts_substeps():
    """The first call is in the fifth substep, the next in the tenth; the facts of a frame add up."""
    counts = [run(n).particles.count for n in (4, 5, 9, 10)]
    assert counts[0] < counts[1] and counts[1] == counts[2]
    report = run(10).step_context.report["resampling"]
    assert report["calls"] == 2 and report["inserted"] - report["merged"] == counts[3] - counts[0]


@pytest.mark.parametrize(("first", "each"), [(1001, 7), (-20, 7), (1, 3)])
def test_new_particles_lie_where_they_would_with_other_frames(first, each):
    """Darts are thrown by the number of the substep: from frame 1, 1001 or -20, and with other frames a second, they hit alike."""
    solver, whole = run(0), run(12).snapshot()
    for n in range(12):
        frame, solver.step_context.substep = divmod(n, each)
        solver.step_context.frame = first + frame
        solver.step(dt=2e-4, keep=n == 11)
    found = solver.snapshot()
    assert len(whole) > 912 and [name for name in whole.attributes if whole[name].tobytes() != found[name].tobytes()] == []


@needs_two
def test_the_bits_do_not_depend_on_the_number_of_threads():
    """One and two threads give the same particles bit for bit, through two calls."""
    ends = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        ends.append(run().snapshot())
    assert all(ends[0][name].tobytes() == ends[1][name].tobytes() for name in ends[0].attributes)


def test_a_checkpoint_resumes_with_the_same_bits():
    """A solve that is stored and revived between two calls goes on with the same bits; the interval goes on counting."""
    whole, halves = run(7), run(7)
    facts, arrays = SolverState(halves).to_arrays()
    state = SolverState.from_arrays(json.loads(json.dumps(facts)), {name: array.copy() for name, array in arrays.items()})
    revived = run(0)
    state.revive(revived)
    for solver in (whole, revived):
        solver.particles.sorted, solver.particles.limits = False, None
        for n in range(6):
            solver.step(dt=2e-4, keep=n == 5)
    ends = [solver.snapshot() for solver in (whole, revived)]
    assert [name for name in ends[0].attributes if ends[0][name].tobytes() != ends[1][name].tobytes()] == []
    assert len(ends[0]) > facts["domains"]["particles"]["count"]


@pytest.mark.parametrize("fuse", [True, False])
def test_the_declaration_is_true_and_checking_changes_no_bit(fuse):
    """Checked mode finds nothing undeclared through two calls, and leaves the bits of a plain solve."""
    plain, checked = (run(11, fuse=fuse, checked=checked).snapshot() for checked in (False, True))
    assert all(plain[name].tobytes() == checked[name].tobytes() for name in plain.attributes) and len(plain) > 912


# ---------------------------------------------------------------- no void
FLOWS = {"shear": np.outer([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), "stretch": np.diag([1.0, -0.5, -0.5])}
"""Velocity gradients [1/s]."""


def carried(flow: str, amount: float) -> np.ndarray:
    """Return the deformation gradient of a flow after some time."""
    return np.eye(3) + amount * FLOWS[flow] if flow == "shear" else np.diag(np.exp(amount * np.diag(FLOWS[flow])))


def void_cells(solver: SubstepSolver, F: np.ndarray, radius: float) -> int:
    """Count empty grid cells that the ball deformed by F contains, with six tenths of a cell to spare on every side."""
    reach = int(np.ceil(np.abs(F).sum(axis=1).max() * radius / H)) + 1
    axis = np.arange(-reach, reach)
    cells = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    corners = (cells[:, None] + np.stack(np.meshgrid(*[[-0.6, 1.6]] * 3, indexing="ij"), -1).reshape(8, 3)) * H
    inside = (((corners @ np.linalg.inv(F).T) ** 2).sum(axis=2) < radius**2).all(axis=1)
    filled = {tuple(cell) for cell in np.floor(solver.particles.unpack("position") / H).astype(int)}
    return sum(tuple(cell) not in filled for cell in cells[inside])


@pytest.mark.parametrize("flow", FLOWS)
def test_moving_matter_gets_no_void(flow):
    """A ball carried by a shear or a stretch to more than three times its length: no cell inside is ever empty just before a call.

    Carried without calls, the same ball has many. The count is the same cell test, which knows the flow and not the insertion. The
    lattice starts along the principal stretches: askew, its layers would slide past each other without a gap.
    """
    radius, steps, end = 8.0 * H, 14, {"shear": 3.0, "stretch": 1.2}[flow]
    empty = {}
    for calls in (True, False):
        start, F = ball(FOAM, 8.0), carried(flow, end)
        position = start["position"] @ np.linalg.eigh(F.T @ F)[1].T
        solver = SubstepSolver(Particles({**start.attributes, "position": position}, start.materials, start.spacing), document())
        particles, empty[calls] = solver.particles, []
        mass = particles.unpack("mass").sum(dtype=float)
        for step in range(steps):
            particles.pack("position", particles.unpack("position") @ carried(flow, end / steps).T)
            empty[calls].append(void_cells(solver, carried(flow, end * (step + 1) / steps), radius))
            if calls:
                resample(particles, settings())
        assert particles.unpack("mass").sum(dtype=float) == pytest.approx(mass, rel=1e-6)
    assert max(empty[True]) == 0 and max(empty[False]) > 20


def test_voids_are_filled_up_to_the_insertion_depth():
    """A stretched ball is filled by the stage as it is wired, from 2.2 r below its surface on (Y15): seen by its own shape.

    The depth below the ellipsoid is at least (1 - rho) R, where rho is 1 on it; half an r is left for the skin of the spheres.
    """
    r, radius, stretch = 0.5 * H, 6.0 * H, np.array([1.8, 1.0, 1.0])
    solver = SubstepSolver(ball(FOAM, 6.0, stretch), document(interval=1), gravity=(0.0, 0.0, 0.0))
    before = solver.particles.unpack("position")
    solver.step(1e-7)
    after = solver.particles.unpack("position")
    probes = np.random.default_rng(4).uniform(-1.0, 1.0, (40_000, 3)) * radius * stretch
    depth = (1.0 - np.linalg.norm(probes / (radius * stretch), axis=1)) * radius / r
    probes = probes[(depth > 2.7) & (depth < 3.4)]
    holes = [int((nearest(probes, points) > (COVERAGE + 0.06) * r).sum()) for points in (before, after)]
    assert holes[0] > 100 and holes[1] == 0


def nearest(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the distance of each point to the nearest of the others."""
    chunks = np.array_split(points, 1 + len(points) // 300)
    return np.concatenate([np.sqrt(((chunk[:, None] - others[None]) ** 2).sum(axis=2).min(axis=1)) for chunk in chunks])
