"""The contract of every stage: its declaration is true, and stages of the user can be wired in anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from stage_scenes import CELL, LAW_SETS, MATERIALS, NO_PRESET, attributes, bodies, plan, presets, solver, wires, with_stage

from mpm_nodes.data import (
    A,
    Attribute,
    Colliders,
    Energy,
    Grid,
    MpmNodesError,
    Particles,
    Reads,
    Stage,
    StaggeredGrid,
    StepContext,
    SurfaceSamples,
    WallRule,
    Writes,
)
from mpm_nodes.graph.declare import needs_whole_nodes, stage
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.solver.checked import LyingDeclaration
from mpm_nodes.solver.periodic import period_of
from mpm_nodes.solver.sides import bears_sides
from mpm_nodes.verification.scenes import walled

PRESETS = presets()
VARIANTS = [(kernel, transfer) for kernel in ("quadratic", "cubic") for transfer in ("apic", "flip")]
LONG = (
    "continuum_foam",
    "explicit_heat",
    "incompressible",
    "melting",
    "surface_tension",
    "surface_tension_heat",
    "surface_tension_solute",
    "implicit_surface_tension",
)
"""Presets of which only the slow tests try every wire with fused loops."""
JOINED = ("melting", "incompressible", "implicit_surface_tension", "surface_tension_heat", "surface_tension_solute")
"""Presets of stages that others have too, or that take a minute to compile: only the slow tests try their wires at all."""
each_preset = pytest.mark.parametrize("preset", PRESETS)
on_any_wire = pytest.mark.parametrize(
    "preset, fuse",
    [
        # on each wire of these the stage parts other fragments: a minute of compiling, for what the other presets show
        pytest.param(preset, fuse, id=f"{how}-{preset}", marks=pytest.mark.slow if preset in (LONG if fuse else JOINED) else ())
        for preset in PRESETS
        for fuse, how in ((True, "fused"), (False, "single"))
    ],
)
fused_and_single = pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])


# ---------------------------------------------------------------- declarations are true
def cases(laws, variants, first):
    """Return laws with kernels and transfers: all laws with the first variant, all variants with the laws named `first`.

    Laws and transfers are fragments that know nothing of each other; what is left is compiled and swept under the slow mark.
    """
    return [
        pytest.param(
            some, *variant, id="-".join((name, *variant)), marks=() if first == name or variant == variants[0] else pytest.mark.slow
        )
        for name, some in laws.items()
        for variant in variants
    ]


@fused_and_single
@pytest.mark.parametrize(("laws", "kernel", "transfer"), cases(LAW_SETS, VARIANTS, "neo_hookean"))
def test_no_built_in_stage_lies(laws, kernel, transfer, fuse):
    """Three substeps in checked mode, among colliders and walls: nothing undeclared is read or written, fused or one by one."""
    run = solver(laws, {"preset": "explicit_apic", "set": {"kernel": kernel, "transfer": transfer}}, checked=True, fuse=fuse)
    assert any("+" in planned.id for planned in run.plan.stages) is fuse
    before = run.particles.unpack("velocity").copy()
    for _ in range(3):
        run.step()
    assert np.isfinite(run.particles.unpack("velocity")).all() and not np.array_equal(before, run.particles.unpack("velocity"))


FOAMS = {"herschel_bulkley": ("herschel_bulkley",), "snow and liquid": ("snow", "liquid")}


@fused_and_single
@pytest.mark.parametrize(("laws", "kernel", "transfer"), cases(FOAMS, [("quadratic", "apic"), ("cubic", "flip")], None))
def test_no_stage_of_foam_lies(laws, kernel, transfer, fuse):
    """The same where matter tears at the least distortion, is resampled in every substep, and spheres leave gaps to fill."""
    settings = {
        "kernel": kernel,
        "transfer": transfer,
        "resampling_interval": 1,
        "detect_tears.threshold_scale": 1e-4,
        "avoid_a_void.finest": "1/32",
        "avoid_a_void.coverage": 0.8,
        "avoid_a_void.depth": 1.8,
    }
    for among in (bodies(), bodies()[:2]):  # nothing is filled where the thin plate parts the nodes: a second run without it
        run = solver(laws, {"preset": "continuum_foam", "set": settings}, checked=True, fuse=fuse, colliders=among)
        weak, counts = 0, {run.particles.count}
        for _ in range(6):
            run.step()
            weak, counts = max(weak, int(run.particles.unpack("weak").sum())), counts | {run.particles.count}
        assert np.isfinite(run.particles.unpack("velocity")).all() and weak > 0
        if len(counts) > 1:
            break
    assert len(counts) > 1


def test_the_scene_of_the_sweep_gives_every_stage_something_to_do():
    """Bodies and walls act on it, particles yield, particles meet bodies on their path, and matter moves from cell to cell."""
    laws = ("snow", "liquid")
    document = {**PRESETS["explicit_apic"], "nodes": {**PRESETS["explicit_apic"]["nodes"]}}
    runs = {
        name: solver(laws, "explicit_apic", **options)
        for name, options in {
            "whole": {},
            "no bodies": {"colliders": ()},
            "no walls": {"walls": None, "origin": (-0.01, -1.0, -1.0)},
        }.items()
    }
    document["nodes"]["collide_particles"] = {**document["nodes"]["collide_particles"], "bypass": True}
    runs["no paths"] = solver(laws, plan(document, laws))
    start = attributes(runs["whole"])
    for run in runs.values():
        for _ in range(3):
            run.step()
    ends = {name: attributes(run) for name, run in runs.items()}
    assert all(np.abs(ends[name]["velocity"] - ends["whole"]["velocity"]).max() > 0.01 for name in ends if name != "whole")
    assert (ends["whole"]["plastic_volume_ratio"] != 1.0).any() and (ends["whole"]["volume_change"] != 0.0).any()
    assert np.abs(ends["whole"]["position"] - start["position"]).max() > 0.01 * runs["whole"].cell_size


def test_every_built_in_stage_stands_in_a_preset():
    """The sweeps of this file miss no stage of the registry."""
    used = {entry["type"] for document in PRESETS.values() for entry in document["nodes"].values()}
    assert {d.id for d in registries.default().stages().values()} - used == NO_PRESET.keys()


@pytest.mark.parametrize("wired", dict.fromkeys(NO_PRESET.values()))
def test_stages_that_stand_in_no_preset_do_not_lie(wired):
    """Wired in the place of others, checked, they give the bits of a plain run."""
    document, laws, ends = wired(), ("snow", "liquid"), []
    assert {entry["type"] for entry in document["nodes"].values()} >= {name for name, each in NO_PRESET.items() if each is wired}
    for checked in (False, True):
        run = solver(laws, plan(document, laws), checked=checked)
        before = run.particles.unpack("velocity").copy()
        for _ in range(3):
            run.step()
        ends.append(attributes(run))
    assert np.isfinite(ends[0]["velocity"]).all() and not np.array_equal(before, ends[0]["velocity"])
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


@each_preset
@fused_and_single
def test_checked_mode_changes_no_bit(preset, fuse):
    """A checked solve gives the bits of a plain one: what the second run leaves behind is the state of one run."""
    runs = [solver(("snow", "liquid"), preset, checked=checked, fuse=fuse) for checked in (False, True)]
    for _ in range(3):
        for run in runs:
            run.step()
    plain, checked = map(attributes, runs)
    assert all(np.array_equal(plain[name], checked[name]) for name in plain)


# ---------------------------------------------------------------- checked mode catches liars
@stage(label="Hidden Reader")
def hidden_reader(particles: A[Particles, Reads("velocity"), Writes("velocity")]) -> Stage["particles"]:
    """Read the mass without saying so."""
    particles.pack("velocity", particles.unpack("velocity") * particles.unpack("mass")[:, None])


@stage(label="Hidden Old Value")
def hidden_old_value(particles: A[Particles, Writes("velocity")]) -> Stage["particles"]:
    """Declare to write only, and read the old value."""
    particles.pack("velocity", 0.5 * particles.unpack("velocity"))


@stage(label="Hidden Writer")
def hidden_writer(particles: A[Particles, Reads("velocity"), Writes("velocity")]) -> Stage["particles"]:
    """Write the affine velocity without saying so."""
    particles.pack("affine", particles.unpack("affine") + 1.0)


@stage(label="Hidden Mover")
def hidden_mover(particles: A[Particles, Reads("velocity"), Writes("velocity")]) -> Stage["particles"]:
    """Move particles without saying so."""
    particles.pack("position", particles.unpack("position") + [0.01, 0.0, 0.0])


@stage(label="Hidden Shuffler")
def hidden_shuffler(particles: A[Particles, Reads("position"), Writes("position")]) -> Stage["particles"]:
    """Move particles far, so that memory is laid out again, and write the stress without saying so."""
    particles.pack("position", particles.unpack("position") + [1.0, 0.0, 0.0])
    particles.pack("stress", 2.0 * particles.unpack("stress"))


@stage(label="Hidden Judge")
def hidden_judge(particles: A[Particles, Reads("velocity"), Writes("velocity")]) -> Stage["particles"]:
    """Delete by a state that it does not declare."""
    particles.delete(particles.unpack("affine")[:, 0, 0] > 1.0)


@stage(label="Hidden Grid Reader")
def hidden_grid_reader(grid: A[Grid, Reads("velocity"), Writes("velocity")]) -> Stage["grid"]:
    """Read the mass of nodes without saying so."""
    grid.pack("velocity", grid.unpack("velocity") * (1.0 + grid.unpack("mass")[:, None]))


@stage(label="Hidden Grid Writer")
def hidden_grid_writer(grid: A[Grid, Reads("velocity"), Writes("velocity")]) -> Stage["grid"]:
    """Write the forces of nodes without saying so."""
    grid.pack("force", grid.unpack("velocity"))


@pytest.mark.parametrize(
    ("liar", "wire", "says"),
    [
        (hidden_reader, ("move_particles", "particles", 0), "particles.velocity depends on .*particles.mass.*Reads"),
        (hidden_old_value, ("move_particles", "particles", 0), "particles.velocity depends on .*particles.velocity.*Reads"),
        (hidden_writer, ("move_particles", "particles", 0), r"writes particles.affine.*add Writes\('affine'\)"),
        (hidden_mover, ("move_particles", "particles", 0), r"writes particles.position.*add Writes\('position'\)"),
        (hidden_shuffler, ("rasterize", "particles", 0), r"writes particles.stress.*add Writes\('stress'\)"),
        (hidden_judge, ("move_particles", "particles", 0), "choice of particles to delete or make depends on .*particles.affine"),
        (hidden_grid_reader, ("collide_grid", "grid", 0), "grid.velocity depends on .*grid.mass.*Reads"),
        (hidden_grid_writer, ("collide_grid", "grid", 0), r"writes grid.force.*add Writes\('force'\)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_checked_mode_catches(liar, wire, says):
    """A stage that reads or writes an array it does not declare runs unnoticed, and is named in checked mode with the cure."""
    document = with_stage(PRESETS["explicit_apic"], wire, liar, "liar")
    planned = plan(document, ("snow",), liar)
    solver(("snow",), planned).step()
    with pytest.raises(LyingDeclaration, match=f"^stage liar: .*{says}"):
        solver(("snow",), planned, checked=True).step()


# ---------------------------------------------------------------- a stage that does nothing changes nothing
@stage(label="Nothing")
def nothing_on_particles(particles: A[Particles, Reads()]) -> Stage["particles"]:
    """Do nothing."""


@stage(label="Nothing")
def nothing_on_grid(grid: A[Grid, Reads()]) -> Stage["grid"]:
    """Do nothing."""


@stage(label="Nothing")
def nothing_on_colliders(colliders: A[Colliders, Reads()]) -> Stage["colliders"]:
    """Do nothing."""


@stage(label="Nothing")
def nothing_on_energy(energy: A[Energy, Reads()]) -> Stage["energy"]:
    """Do nothing."""


@stage(label="Nothing on Staggered")
def nothing_on_staggered(staggered: A[StaggeredGrid, Reads()]) -> Stage["staggered"]:
    """Do nothing."""


@stage(label="Nothing on Samples")
def nothing_on_samples(samples: A[SurfaceSamples, Reads()]) -> Stage["samples"]:
    """Do nothing."""


NOTHING = {
    "particles": nothing_on_particles,
    "grid": nothing_on_grid,
    "colliders": nothing_on_colliders,
    "energy": nothing_on_energy,
    "staggered": nothing_on_staggered,
    "samples": nothing_on_samples,
}
CARRIED = (
    "position",
    "velocity",
    "affine",
    "velocity_gradient",
    "deformation",
    "plastic_volume_ratio",
    "volume_change",
    "stress",
    "mass",
    "volume",
    "stiffness_scale",
)


@stage(label="Round Trip")
def round_trip(particles: A[Particles, Reads(*CARRIED), Writes(*CARRIED)]) -> Stage["particles"]:
    """Take every array out and put it back."""
    for name in CARRIED:
        particles.pack(name, particles.unpack(name))


@stage(label="Round Trip on the Grid")
def grid_round_trip(
    grid: A[Grid, Reads("mass", "momentum", "force", "velocity", "position"), Writes("mass", "momentum", "force", "velocity")],
) -> Stage["grid"]:
    """Take every array of the grid out and put it back."""
    for name in ("mass", "momentum", "force", "velocity"):
        grid.pack(name, grid.unpack(name))


ROUNDING = 1e-4
"""Single precision rounds at 6e-8, ten substeps with contact and yield amplify it by two orders, and the stress of a strain of a
few percent loses more than one: of the largest value, after ten substeps that choose their own dt."""


def drift(changed: Particles, plain: Particles) -> dict[str, float]:
    """Return by attribute the largest difference over the largest value."""
    a, b = changed.attributes, plain.attributes
    assert a.keys() >= b.keys() and np.array_equal(a["id"], b["id"])
    return {name: float(np.abs(a[name] - b[name]).max() / max(np.abs(b[name]).max(), 1e-30)) for name in b}


def single_stages(run) -> list[str]:
    """Return the stages of a plan one by one, fused or not."""
    return [name for planned in run.plan.stages for name in planned.id.split("+")]


@on_any_wire
def test_a_stage_that_does_nothing_on_any_wire_changes_nothing(preset, fuse):
    """On every wire of every preset the order of the others stays and the results keep every bit after 1 and 10 substeps.

    Where it keeps apart what is fused without it, it changes rounding.
    """
    laws, document = ("snow", "liquid"), PRESETS[preset]
    plain = solver(laws, plan(document, laws), fuse=fuse)
    order, fused, ends, apart = single_stages(plain), [planned.id for planned in plain.plan.stages], {}, 0
    for count in range(1, 11):
        plain.step()
        ends[count] = plain.snapshot()
    for wire in wires(document):
        noop = NOTHING[wire[1]]
        run = solver(laws, plan(with_stage(document, wire, noop), laws, noop), fuse=fuse)
        assert [name for name in single_stages(run) if name != "inserted"] == order, wire
        same = [planned.id for planned in run.plan.stages if planned.id != "inserted"] == fused
        apart += not same
        for count in range(1, 11):
            run.step()
            if count in (1, 10):
                found, limit = drift(run.snapshot(), ends[count]), 0.0 if same else ROUNDING
                assert {name: value for name, value in found.items() if not value <= limit} == {}, (wire, count)
    assert apart > 0 if fuse else apart == 0


def round_trips(document: dict, laws: Sequence[str]) -> tuple[dict[tuple, SubstepPlan], list[tuple]]:
    """Return the plans with a stage on a wire that takes everything out and back, and the wires where that is refused."""
    planned, refused = {}, []
    for wire in wires(document):
        trip = {"particles": round_trip, "grid": grid_round_trip}.get(wire[1])
        if trip is None:
            continue
        try:
            planned[wire] = plan(with_stage(document, wire, trip), laws, trip)
        except GraphError as error:  # e.g. the grid has no velocity yet on the wire into rasterize
            assert "nothing wrote before" in str(error) or "not ordered" in str(error)
            refused.append(wire)
    return planned, refused


@pytest.mark.parametrize("preset", PRESETS)
def test_particles_can_be_taken_out_on_every_wire(preset):
    """A stage that reads and writes all of them fits on each; grids without forces or velocities yet are refused alone."""
    document = PRESETS[preset]
    planned, refused = round_trips(document, ("snow", "liquid"))
    assert {wire[1] for wire in refused} <= {"grid"}
    # of a grid it is as far as the stage that writes its velocities: at most a wire a stage that fills it before
    assert len(refused) <= sum("grid" in node["inputs"] for node in document["nodes"].values())
    assert len(planned) > len(document["nodes"]) / 2


@on_any_wire
def test_a_stage_that_takes_everything_out_and_back_on_any_wire_changes_rounding_only(preset, fuse):
    """Packing what was unpacked, positions included, on every wire changes rounding only after 1 and 10 substeps."""
    laws, document = ("snow", "liquid"), PRESETS[preset]
    for wire, planned in round_trips(document, laws)[0].items():
        plain, run = solver(laws, plan(document, laws), fuse=False), solver(laws, planned, fuse=fuse)
        for count in range(1, 11):
            plain.step()
            run.step()
            if count in (1, 10):
                found, limit = drift(run.snapshot(), plain.snapshot()), ROUNDING if fuse else 0.1 * ROUNDING
                assert {name: value for name, value in found.items() if not value < limit} == {}, (wire, count)


# ---------------------------------------------------------------- stages of the user
FORCE_FIELD = '''
import numpy as np
from mpm_nodes.data import A, Attribute, Grid, MetresPerSecondSquared, Particles, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import needs_whole_nodes, stage


@stage(label="Wind")
def wind(
    grid: A[Grid, Reads("mass", "force", "position"), Writes("force")],
    *,
    strength: A[float, MetresPerSecondSquared] = 3.0,
) -> Stage["grid"]:
    """Push matter along x.

    Args:
        strength: Acceleration.
    """
    force = grid.unpack("force")
    force[:, 0] += strength * grid.unpack("mass")
    assert grid.unpack("position").shape == force.shape
    grid.pack("force", force)


COLD = Attribute("heat", "q", (), "J", "primvars:heat", "heat", "Heat taken up.")


@stage(label="Warm Up")
def warm_up(
    particles: A[Particles, Reads("mass", "heat"), Writes("heat"), COLD], step: StepContext
) -> Stage["particles"]:
    """Heat every particle at 2 W/kg."""
    particles.pack("heat", particles.unpack("heat") + 2.0 * step.dt * particles.unpack("mass"))
'''


@pytest.fixture
def users(tmp_path):
    """Return a registry with the stages of a folder on MPM_NODES_PATH."""
    (tmp_path / "my_stages.py").write_text(FORCE_FIELD)
    return registries.load(path=str(tmp_path))


def test_a_force_field_and_a_particle_stage_of_the_user(users):
    """A NumPy force field on the grid and a stage with an attribute of its own, from a folder: exact over ten free steps."""
    wind, warm_up = users.get("wind").function, users.get("warm_up").function
    document = with_stage(PRESETS["explicit_apic"], ("update_grid_velocity", "grid", 0), wind, "wind")
    document = with_stage(document, ("move_particles", "particles", 0), warm_up, "warm_up")
    run = solver(("snow",), plan(document, ("snow",), wind, warm_up), colliders=(), walls=None, dtype=np.float64, checked=True)
    start = attributes(run)
    for _ in range(10):
        run.step(dt=1e-4)
    end, mass = attributes(run), start["mass"][:, None]
    gained = (mass * (end["velocity"] - start["velocity"])).sum(axis=0) / mass.sum()
    np.testing.assert_allclose(gained, [3e-3, -9.81e-3, 0.0], atol=1e-12)  # momentum, exactly
    np.testing.assert_allclose(end["heat"], 2e-3 * start["mass"], rtol=1e-12)
    assert np.array_equal(end["temperature"], start["temperature"])


@stage(label="Far Mover")
def far_mover(particles: A[Particles, Reads("position"), Writes("position")]) -> Stage["particles"]:
    """Lift everything by ten metres."""
    particles.pack("position", particles.unpack("position") + [0.0, 10.0, 0.0])


def test_a_stage_may_move_particles_far_before_or_after_the_grid():
    """Before rasterize and as the last stage a stage moves matter anywhere: it flies on as if it had started there."""
    laws, document = ("snow", "liquid"), PRESETS["explicit_apic"]
    plain = solver(laws, "explicit_apic", colliders=(), walls=None)
    begin = attributes(plain)["position"]
    plain.step(dt=1e-3)
    last = {**document, "nodes": {**document["nodes"], "last": {"type": "far_mover", "inputs": {"particles": "move_particles"}}}}
    for changed in (with_stage(document, ("rasterize", "particles", 0), far_mover), last):
        run = solver(laws, plan(changed, laws, far_mover), colliders=(), walls=None, checked=True)
        run.step(dt=1e-3)
        found, expected = attributes(run), attributes(plain)
        # the float32 weights of another place differ by rounding
        np.testing.assert_allclose(found["position"] - [0.0, 10.0, 0.0] - begin, expected["position"] - begin, atol=1e-8)
        for name in ("velocity", "deformation", "temperature"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-4 if name == "velocity" else 1e-6)
        run.step(dt=1e-3)


def test_a_stage_that_moves_particles_away_from_a_filled_grid_is_refused():
    """Between rasterize and gather the grid lies under the particles: leaving it is an error that says where to wire it."""
    changed = with_stage(PRESETS["explicit_apic"], ("gather", "particles", 0), far_mover)
    with pytest.raises(MpmNodesError, match=r"more than half a cell .* wire that stage before rasterize, or make it the last"):
        solver(("snow",), plan(changed, ("snow",), far_mover)).step()


@stage(label="Sweeper")
def sweeper(particles: A[Particles, Reads("position", "velocity"), Writes("position")]) -> Stage["particles"]:
    """Delete what lies high up."""
    particles.delete(particles.unpack("position")[:, 1] > 0.2)


def test_a_stage_may_delete_particles_in_the_middle_of_a_substep():
    """Those left keep their material, law state and identity: as if the others had been deleted after the substep."""
    laws, document = ("snow", "liquid"), PRESETS["explicit_apic"]
    wire = ("update_deformation", "particles", 0)
    run = solver(laws, plan(with_stage(document, wire, sweeper), laws, sweeper), checked=True)
    plain = solver(laws, "explicit_apic")
    high = attributes(plain)["position"][:, 1] > 0.2
    assert 0 < high.sum() < len(high)
    for each in (run, plain):
        each.step(dt=1e-4)
    found, expected = attributes(run), attributes(plain)
    assert np.array_equal(found["id"], expected["id"][~high])
    for name in found:
        assert np.array_equal(found[name], expected[name][~high]), name
    run.step()


@stage(label="Twice")
def described_twice(
    particles: A[Particles, Writes("heat"), Attribute("heat", "q", (3,), "", "primvars:heat", "heat", "Another.")],
    step: StepContext,
) -> Stage["particles"]:
    """Describe an attribute in another way than the other stage."""


def test_two_stages_that_describe_one_attribute_differently_are_refused(users):
    """The shape of a user's attribute is said once."""
    warm_up = users.get("warm_up").function
    document = with_stage(PRESETS["explicit_apic"], ("move_particles", "particles", 0), warm_up, "warm_up")
    document = with_stage(document, ("warm_up", "particles", 0), described_twice, "again")
    with pytest.raises(GraphError, match="heat otherwise than"):
        plan(document, ("snow",), warm_up, described_twice)


def test_the_laws_swept_are_all_built_in_ones():
    """The sweep misses no law of the package."""
    from mpm_nodes.materials.parameters import BUILT_IN

    assert set(MATERIALS) == set(BUILT_IN)


@needs_whole_nodes
@stage(label="Counts Nodes")
def counts_nodes(grid: A[Grid, Reads("mass")]) -> Stage["grid"]:
    """Count what has mass."""


def goes_around(planned) -> bool:
    """Whether periodic sides take a plan."""
    try:
        return any(period_of(walled((0.0, 0.0, 0.0), (8 * CELL,) * 3, WallRule.PERIODIC), CELL, [planned]))
    except MpmNodesError as error:
        assert "does not look beyond periodic sides" in str(error)
        return False


def test_a_stage_says_whether_it_needs_nodes_whole():
    """Thin plates stay two-sided and sides periodic with users' stages, unless they say that they need nodes whole."""
    wire, laws = ("collide_grid", "grid", 0), ("neo_hookean",)
    for each, bears in ((nothing_on_grid, True), (counts_nodes, False)):
        planned = plan(with_stage(PRESETS["explicit_apic"], wire, each), laws, each)
        assert (bears_sides(planned), goes_around(planned)) == (bears, bears)
    plans = {name: plan(document, laws) for name, document in PRESETS.items()}
    assert [name for name, planned in plans.items() if bears_sides(planned)] == ["continuum_foam", "explicit_apic", "implicit_apic"]
    assert [name for name, planned in plans.items() if goes_around(planned)] == ["explicit_apic", "implicit_apic"]
