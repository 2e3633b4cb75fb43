"""Bounds of fields: no value of any tree lies beyond them, they are reached where operands are independent, and limits use them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from mpm_nodes.data import FieldGrid, FrameContext, GraphSettings, LevelSet, MpmNodesError, SpatialField
from mpm_nodes.graph.time.keys import KeyedNumber, KeyedVector
from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys
from mpm_nodes.nodes.fields import (
    FieldOperation,
    FieldShape,
    NoiseKind,
    RampForm,
    ShapeOutput,
    constant,
    field_constant,
    field_math,
    field_noise,
    field_ramp,
    field_shape,
    field_vector,
    place,
    scaled,
)
from mpm_nodes.nodes.fields_of_files import GridEdge, field_vdb
from mpm_nodes.nodes.through_space import at_least, through_space
from mpm_nodes.solver.field_bounds import bounds
from mpm_nodes.solver.field_programs import field_values

SETTINGS = GraphSettings(cell_size=0.1, start=1, end=9)
NOW = FrameContext(1, SETTINGS)
FRAMES = (-3.0, 1.0, 1.5, 2.0, 2.3, 4.0, 99.0)


def leaves(chance: random.Random, parts: int, empty: float = 0.3) -> FieldGrid:
    """Return a grid of two leaves around the origin, of voxels of 0.25 m, of which some hold nothing."""
    corners, numbers = np.array([[-8, 0, 0], [0, 0, 0]]), np.random.default_rng(chance.randrange(10**6))
    voxels = numbers.uniform(-4.0, 4.0, (1024, parts)).astype(np.float32)
    voxels[numbers.uniform(size=1024) < empty] = np.nan
    to_index = np.concatenate([4.0 * np.eye(3), np.full((3, 1), 3.0)], axis=1)
    return FieldGrid(np.sort(leaf_keys(corners)), voxels.ravel(), to_index, parts)


def cubes(chance: random.Random) -> SpatialField:
    """Return values on some cubes of 0.5 m around the origin, NaN away from them."""
    numbers = np.random.default_rng(chance.randrange(10**6))
    index = np.unique(numbers.integers(-3, 3, (30, 3)), axis=0)
    keys = np.sort(leaf_keys(8 * index))
    to_index = np.concatenate([2.0 * np.eye(3), np.zeros((3, 1))], axis=1)
    grid = FieldGrid(keys, numbers.uniform(-4.0, 4.0, len(keys)).astype(np.float32), to_index, 1)
    return SpatialField("CUBES", (place(),), grid=grid)


def number(chance: random.Random) -> float:
    """Return a number, sometimes with keys, sometimes 0."""
    if chance.random() < 0.3:
        modes = [chance.choice(("step", "linear", "smooth")) for _ in range(3)]
        return KeyedNumber([(frame, chance.uniform(-3.0, 3.0), mode) for frame, mode in zip((1, 2, 4), modes, strict=True)])
    return chance.choice((0.0, 1.0, chance.uniform(-3.0, 3.0)))


def vector(chance: random.Random) -> tuple[float, float, float]:
    """Return a vector, sometimes with keys."""
    rows = [tuple(chance.uniform(-3.0, 3.0) for _ in range(3)) for _ in range(2)]
    return KeyedVector([(1, rows[0], "linear"), (2.5, rows[1], "smooth")]) if chance.random() < 0.3 else rows[0]


def source(chance: random.Random) -> SpatialField:
    """Return a field that takes no other one."""
    kind = chance.randrange(8)
    if kind == 0:
        return field_constant(value=number(chance))
    if kind == 1:
        return field_vector(vector=vector(chance))
    if kind == 2:
        octaves = {"octaves": chance.randrange(1, 4), "evolution": 3.0, "seed": chance.randrange(99)}
        return field_noise(SETTINGS, kind=chance.choice([*NoiseKind]), size=0.3, amplitude=number(chance), **octaves)
    if kind == 3:
        given = {"falloff": chance.choice((0.0, 0.7)), "output": chance.choice([*ShapeOutput])}
        return field_shape(shape=chance.choice([*FieldShape]), centre=vector(chance), radius=0.8, **given)
    if kind == 4:
        return ramp(chance, None)
    if kind == 5:
        left_out, parts = float(chance.random() < 0.5), chance.choice((1, 3))
        return SpatialField("GRID", (place(),), (number(chance), left_out), vector=parts == 3, grid=leaves(chance, parts))
    if kind == 6:
        return SpatialField("FILLED", (cubes(chance), constant(number(chance))))
    course = SpatialField("COURSE", tuple(cubes(chance) for _ in range(3)), (1.0, 2.0, 4.0))
    return SpatialField("FILLED", (course, constant(number(chance))))


def ramp(chance: random.Random, field: SpatialField | None) -> SpatialField:
    """Return a ramp over a field, or along an axis."""
    ends = {name: number(chance) for name in ("low", "high", "from_value", "to_value")}
    return field_ramp(field, direction=(1.0, -2.0, 0.5), interpolation=chance.choice([*RampForm]), **ends)


def tree(chance: random.Random) -> list[SpatialField]:
    """Return fields of which each takes some of those before."""
    made = [source(chance) for _ in range(4)]
    for _ in range(8):
        numbers = [field for field in made if not field.vector]
        a, b, c = (chance.choice(made) for _ in range(3))
        roll = chance.random()
        try:
            if roll < 0.2 and numbers:
                made.append(ramp(chance, chance.choice(numbers)))
            elif roll < 0.3 and numbers:
                made.append(SpatialField("COSINE", (chance.choice(numbers),)))
            else:
                made.append(
                    field_math(a, chance.choice((b, None)), c, operation=chance.choice([*FieldOperation]), b_value=number(chance))
                )
        except MpmNodesError:  # of vectors alone
            continue
    return made


@pytest.mark.parametrize("seed", range(60))
def test_no_value_lies_beyond_the_bounds(seed):
    """Of random trees, near and far, within and beyond all keys; a bound is a number."""
    chance = random.Random(seed)
    places = np.random.default_rng(seed).normal(size=(300, 3)) * np.random.default_rng(seed + 1).choice([0.3, 2.0, 50.0], (300, 1))
    places[:3] = [[0.0, 0.0, 0.0], [1e9, 0.0, 0.0], [0.0, -1e12, 3.0]]
    for field in tree(chance):
        low, high = bounds(field)
        assert low <= high
        for frame in FRAMES:
            found = field_values(field, places, frame)
            assert (low, high) == (-math.inf, math.inf) or not np.isnan(found).any(), (seed, field.operation, frame)
            slack = 1e-9 * max(1.0, *(abs(each) for each in (low, high) if math.isfinite(each)), 0.0)
            assert np.nanmin(found) >= low - slack, (seed, field.operation, frame)
            assert np.nanmax(found) <= high + slack, (seed, field.operation, frame)


def along(axis: int, low: float, high: float) -> SpatialField:
    """Return a number that goes from low to high along an axis, over a metre, on its own."""
    direction = tuple(float(each == axis) for each in range(3))
    return field_ramp(direction=direction, from_value=low, to_value=high)


def reached(field: SpatialField, frames: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0)) -> tuple[float, float]:
    """Return the least and the largest value on a lattice of a metre around."""
    axis = np.linspace(-0.25, 1.25, 13)
    places = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    found = np.concatenate([field_values(field, places, frame).ravel() for frame in frames])
    return float(found.min()), float(found.max())


MATH = [each for each in FieldOperation if each.value in ("add", "subtract", "multiply", "divide", "minimum", "maximum", "mix")]


@pytest.mark.parametrize("operation", MATH)
@pytest.mark.parametrize(
    "ends", [((-2.0, 3.0), (1.0, 4.0)), ((2.0, 3.0), (-5.0, -4.0)), ((-3.0, -1.0), (0.5, 0.5)), ((-1.0, 2.0), (0.0, 0.0))]
)
def test_arithmetic_of_independent_fields_is_tight(operation, ends):
    """The bounds are values of the field."""
    (a, b), (c, d) = ends
    field = field_math(along(0, a, b), along(1, c, d), along(2, 0.0, 1.0), operation=operation)
    assert bounds(field) == pytest.approx(reached(field), abs=1e-12)


@pytest.mark.parametrize("ends", [(-2.0, 3.0), (1.0, 2.0), (-4.0, -1.0)])
def test_absolute_values_are_tight(ends):
    """Around 0, above it and below it; of a length at most the root of three times as large."""
    field = field_math(along(0, *ends), operation=FieldOperation.ABSOLUTE)
    low, high = bounds(field)
    assert (
        high == reached(field)[1] and low <= reached(field)[0] and low == (0.0 if ends[0] < 0.0 < ends[1] else min(map(abs, ends)))
    )
    diagonal = field_math(field_vector(vector=(2.0, 2.0, 2.0)), operation=FieldOperation.LENGTH)
    assert bounds(diagonal)[1] == pytest.approx(reached(diagonal)[1])


def test_masks_and_ramps_are_tight():
    """A shape lies from 0 to 1, a ramp over anything between its ends, an endless one anywhere; keys count with all values."""
    assert bounds(field_shape(radius=0.3, falloff=0.2)) == reached(field_shape(radius=0.3, falloff=0.2)) == (0.0, 1.0)
    assert bounds(field_shape(output=ShapeOutput.DISTANCE)) == (-math.inf, math.inf)
    noise = field_noise(SETTINGS)
    for form in (RampForm.LINEAR, RampForm.SMOOTH):
        field = field_ramp(noise, low=-0.1, high=0.1, from_value=5.0, to_value=-2.0, interpolation=form)
        assert bounds(field) == reached(field) == (-2.0, 5.0)
    assert bounds(field_ramp(interpolation=RampForm.ENDLESS)) == (-math.inf, math.inf)
    keyed = KeyedNumber([(1, 2.0, "linear"), (2, -1.0, "step"), (3, 7.0, "linear")])
    assert bounds(field_constant(value=keyed)) == reached(field_constant(value=keyed)) == (-1.0, 7.0)
    assert bounds(scaled(along(0, 0.0, 1.0), constant(keyed))) == (-1.0, 7.0)
    assert bounds(field_math(noise, operation=FieldOperation.POWER)) == (-math.inf, math.inf)


@pytest.mark.parametrize("kind", [NoiseKind.VALUE, NoiseKind.TURBULENCE])
def test_noise_stays_within_its_bounds(kind):
    """Gradients are at most sqrt(3) long and 1 away; turbulence is above 0. They are within four times what is reached."""
    field = field_noise(SETTINGS, kind=kind, size=0.05, evolution=5.0, octaves=2)
    low, high = bounds(field)
    places = np.random.default_rng(1).uniform(-50.0, 50.0, (200_000, 3))
    found = field_values(field, places, 3.3)
    assert low <= found.min() and found.max() <= high < 4.0 * found.max()
    assert (low == 0.0) if kind is NoiseKind.TURBULENCE else (low == -high)


@pytest.mark.parametrize("edge", GridEdge)
def test_grids_are_tight(edge, tmp_path):
    """From the least to the largest of their voxels and the value outside, times the strength."""
    volumes = pytest.importorskip("usd_io.volumes")
    try:
        from usd_io.openvdb_module import find_openvdb

        find_openvdb()
    except Exception:
        pytest.skip("OpenVDB is not installed")
    values = np.full((1, 8, 8, 8), 2.0, np.float32)
    values[0, :4] = -1.0
    level_set = LevelSet(np.zeros((1, 3), np.int32), values, 0.125, background=0.0, kind="fog", name="g")
    volumes.write_volumes(tmp_path / "a.vdb", [level_set])
    for outside, exact in ((0.0, (-1.0, 2.0)), (5.0, (-1.0, 5.0))):
        field = field_vdb(NOW, SETTINGS, path=tmp_path / "a.vdb", grid="g", edge=edge, outside=outside)
        assert bounds(field) == exact and reached(field) == pytest.approx(exact, abs=1e-6)
        assert bounds(scaled(field, constant(-2.0))) == (-2.0 * exact[1], -2.0 * exact[0])


def test_a_sequence_is_bounded_by_all_its_files():
    """Between the two files of a frame values are those between."""
    chance = random.Random(3)
    first, second = (SpatialField("FILLED", (cubes(chance), constant(0.0))) for _ in range(2))
    low, high = (choice(a, b) for choice, a, b in zip((min, max), bounds(first), bounds(second), strict=True))
    share = constant(KeyedNumber([(1, 0.0, "linear"), (2, 1.0, "linear")]))
    assert bounds(SpatialField("MIX", (first, second, share))) == (low, high)
    assert bounds(SpatialField("COURSE", (first, second), (1.0, 2.0))) == (low, high)
    empty = SpatialField("CUBES", (place(),), grid=FieldGrid(np.zeros(0, np.int64), np.zeros(0, np.float32), np.eye(4)[:3], 1))
    assert bounds(SpatialField("FILLED", (empty, constant(3.0))))[1] == 3.0


def test_fields_that_share_inputs_are_looked_at_once():
    """A tree that doubles itself forty times has forty fields, not 2^40."""
    field = along(0, -1.0, 2.0)
    for _ in range(40):
        field = field_math(field, field, operation=FieldOperation.ADD)
    assert bounds(field) == (-(2.0**40), 2.0**41)


# ---------------------------------------------------------------- who uses them
def test_a_field_above_the_least_is_left_alone():
    """The very field, and nothing is told."""
    told: list[str] = []
    field = along(0, 0.0, 5.0)
    assert at_least(FrameContext(1, SETTINGS, lambda *_, **__: told.append("")), "it.field", field, 0.0) is field and not told


@pytest.mark.parametrize(("field", "least"), [(along(0, -5.0, 5.0), "-5"), (field_ramp(interpolation=RampForm.ENDLESS), "-inf")])
def test_what_lies_below_the_least_is_raised_and_told_once(field, least):
    """At the shot's first frame, with how far down it may go; the values are raised at every frame."""
    told: list[tuple[str, str, str]] = []
    for frame in (1, 2, 3):
        ctx = FrameContext(frame, SETTINGS, lambda kind, **facts: told.append((kind, facts["where"], facts["message"])))
        raised = through_space(ctx, "it.port", at_least(ctx, "it.port", field, -1.0))
        low, high = raised.at(np.array([[-50.0, -50.0, 0.0], [0.75, 0.75, 0.0]]))
        assert low == -1.0 and high == field_values(field, np.array([[0.75, 0.75, 0.0]]), 1.0)
    assert told == [("warning", "port", f"it: values below -1 are raised to it; they may go down to {least}")]


@pytest.mark.parametrize(
    "use", [lambda field: at_least(NOW, "it.port", field, 0.0), lambda field: through_space(NOW, "it.port", field)]
)
def test_vectors_are_refused_where_numbers_are_needed(use):
    """With node and port."""
    with pytest.raises(MpmNodesError, match=r"it\.port: is a field of vectors, and a number is needed"):
        use(field_vector())


def test_a_field_through_space_follows_its_frame():
    """It is what its field is at the frame that it was made for, or is asked for."""
    field = constant(KeyedNumber([(1, 0.0, "linear"), (3, 4.0, "linear")]))
    made = through_space(FrameContext(2, SETTINGS), "it.port", field)
    assert (made.at(np.zeros((1, 3))), made.at_frame(2.5).at(np.zeros((1, 3))), made.edge) == (2.0, 3.0, 0.1)
