"""How bodies are wetted: painted contact angles and what they pull, hysteresis, and what users are told."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from test_surface_tension import WATER, H, drop, run_until, solver

from mpm_nodes.data import (
    Collider,
    CollisionRule,
    FrameContext,
    GraphSettings,
    Kernel,
    MpmNodesError,
    SurfaceField,
    SurfaceTension,
)
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.kernels.level_sets.level_set import BOX, PosedLevelSets
from mpm_nodes.nodes.fields import constant, field_ramp, field_shape, field_vector
from mpm_nodes.physics.surface_tension.nodes.contact_angles import Wetting, collider_contact_angle
from mpm_nodes.physics.surface_tension.numerics import wetting
from mpm_nodes.physics.surface_tension.numerics.wetting import pin_lines, pulls
from mpm_nodes.solver.surroundings import collider_at

FRAME = FrameContext(2, GraphSettings(cell_size=H))
MATTER = dataclasses.replace(WATER, surface_tension=SurfaceTension(2.0))


def plate(velocity: float = 0.0) -> Collider:
    """Return a plate whose upper side is y = 0 and that moves along x."""
    places = np.array([[0.1, -0.05, 0.1], [0.1 + velocity, -0.05, 0.1]])
    shape = PosedLevelSets(BOX, (1.0, 0.05, 1.0), np.array([0.0, 1.0]), np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)), places)
    return Collider("plate", CollisionRule.SLIP, 0.0, shape)


def sloped(slope: float) -> Collider:
    """Return the plate with k_SL / k = slope x."""
    axis = (np.arange(-8, 12) + 0.5) * H
    places = np.stack(np.meshgrid(axis, [-0.5 * H, 0.5 * H], axis, indexing="ij"), axis=-1).reshape(-1, 3)
    field = SurfaceField.of_samples(places, slope * places[:, 0], H, 0.0)
    return dataclasses.replace(plate(), contact_angle=90.0, wetting=field)


def test_painted_wetting_is_that_of_the_place():
    """k_SL = k r(x) where the body is touched, k from 0.8 cells on; the pull sums to - k grad r times the wetted area."""
    run = solver(drop(MATTER), colliders=[sloped(0.8)], fuse=False)
    run_until(run, "rasterize_samples")
    samples = run.stores["samples"]
    x, n, area, tension = (samples.unpack(name) for name in ("position", "normal", "area", "tension"))
    share = np.where((area > 0.0) & (n[:, 1] < 0.0), np.clip(1.0 - (x[:, 1] / H - 0.3) / 0.5, 0.0, 1.0), 0.0)
    assert (share == 1.0).sum() > 20
    mine = area > 0.0
    np.testing.assert_allclose(tension[mine], (2.0 + share * (2.0 * 0.8 * x[:, 0] - 2.0))[mine], atol=1e-12)
    force = pulls(samples, run.grid, Kernel.QUADRATIC)
    along = -2.0 * 0.8 * (area * share * (1.0 - n[:, 0] ** 2)).sum()
    assert force.reshape(-1, 4)[:, 0].sum() == pytest.approx(along, rel=1e-9)
    assert not force.reshape(-1, 4)[:, 3].any()


@pytest.mark.parametrize("preset", ["surface_tension", "implicit_surface_tension"])
def test_matter_moves_to_where_it_is_wetted(preset):
    """Without gravity, from rest: along - x, where k_SL is lower; not at all where it is even."""
    still = {"velocity": np.zeros((60, 3)), "affine": np.zeros((60, 3, 3))}
    moved = {}
    for slope in (0.8, 0.0):
        run = solver(drop(MATTER, **still), preset, colliders=[sloped(slope)])
        for _ in range(3):
            run.step(1e-3)
        end = run.snapshot()
        moved[slope] = float(end["mass"] @ end["velocity"][:, 0])
    assert moved[0.8] < 0.0 and abs(moved[0.0]) < 1e-3 * abs(moved[0.8])


def test_a_grip_holds_lines_to_their_body():
    """Nodes at the edge take the velocity of the plate when the grip is strong, none of it when there is none."""
    change = {}
    for hysteresis in (0.0, 40.0):
        body = collider_contact_angle(plate(0.5), FRAME, angle=90.0, hysteresis=hysteresis)
        run = solver(drop(MATTER), {"preset": "surface_tension"}, colliders=[body], fuse=False)
        run_until(run, "collide_grid")
        samples, velocity = run.stores["samples"], run.grid.array("velocity")
        before = velocity.copy()
        assert samples.unpack("pinning").max() == pytest.approx(2.0 * math.sin(math.radians(0.5 * hysteresis)), abs=1e-12)
        pin_lines(samples, run.grid, Kernel.QUADRATIC, 1e-3)
        change[hysteresis] = float(np.abs(velocity - before).max())
        if hysteresis:
            wet = samples.unpack("pinning") > 0.0
            np.testing.assert_allclose(samples.unpack("footing")[wet], [[0.5, 0.0, 0.0]] * int(wet.sum()), atol=1e-9)
            loss = (run.grid.array("momentum")[3::4] * ((velocity - before)[0::4])).sum()
            edge = 2.0 * 4.0 * 2.2 * H  # at most, and twice for what is ragged
            assert abs(loss) <= 1e-3 * 2.0 * math.sin(math.radians(20.0)) * edge
    assert change[0.0] == 0.0 < change[40.0]


def test_a_strong_grip_leaves_no_speed_across_the_line(monkeypatch):
    """Each node for itself: in a step in which the grip holds everything nodes keep what lies along the line alone."""
    monkeypatch.setattr(wetting, "_pooled", lambda place, across, columns: columns)
    body = collider_contact_angle(plate(0.5), FRAME, angle=90.0, hysteresis=40.0)
    run = solver(drop(MATTER), {"preset": "surface_tension"}, colliders=[body], fuse=False)
    run_until(run, "collide_grid")
    velocity = run.grid.array("velocity")
    before = velocity.copy().reshape(-1, 4)[:, :3]
    pin_lines(run.stores["samples"], run.grid, Kernel.QUADRATIC, 1e9)
    after = velocity.reshape(-1, 4)[:, :3]
    change = after - before
    held = np.linalg.norm(change, axis=1) > 1e-9
    left = ((after - [0.5, 0.0, 0.0]) * change).sum(axis=1)[held] / (change**2).sum(axis=1)[held]
    assert held.sum() > 20 and np.abs(left).max() < 1e-6


def test_a_field_paints_angles():
    """k_SL / k is - cos of the angle at each place; an angle beyond 0 to 180 degrees is taken as the nearest of them."""
    ramp = field_ramp(direction=(1.0, 0.0, 0.0), low=0.0, high=1.0, from_value=-45.0, to_value=225.0)
    body = collider_contact_angle(plate(), FRAME, ramp, angle=80.0, hysteresis=20.0)
    places = np.linspace([-0.2, 0.0, 0.0], [1.2, 0.0, 0.0], 29)
    angles = np.clip(-45.0 + 270.0 * np.clip(places[:, 0], 0.0, 1.0), 0.0, 180.0)
    np.testing.assert_allclose(body.wetting.at(places), -np.cos(np.radians(angles)), atol=1e-12)
    assert (body.contact_angle, body.contact_hysteresis) == (80.0, 20.0)


def test_a_field_paints_ratios():
    """k_SL / k itself, from -1 to 1, at every moment; a mask goes by a ramp from one ratio to another (Cassie 1944)."""
    painted = KeyedNumber([(1, -2.0, "linear"), (2, 0.0, "linear")])
    mask = field_ramp(field_shape(radius=1.0, falloff=1.0), from_value=0.25, to_value=painted)
    body = collider_contact_angle(plate(), FRAME, mask, values=Wetting.RATIO)
    places = np.array([[0.2, 0.0, 0.0], [1.5, 0.0, 0.0], [9.0, 0.0, 0.0]])
    for moment, ratio in ((1.0, -2.0), (1.25, -1.5), (1.75, -0.5), (2.0, 0.0)):
        exact = np.clip([ratio, 0.5 * (0.25 + ratio), 0.25], -1.0, 1.0)
        np.testing.assert_allclose(collider_at(body, moment).wetting.at(places), exact, atol=1e-12)


def test_an_even_field_wets_as_an_even_angle():
    """The same motion: only where the angle comes from differs."""
    found = []
    for field, angle in ((None, 50.0), (constant(50.0), 90.0)):
        run = solver(drop(MATTER), colliders=[collider_contact_angle(plate(), FRAME, field, angle=angle)])
        for _ in range(3):
            run.step(1e-3)
        found.append(run.particles.unpack("velocity"))
    np.testing.assert_allclose(*found, rtol=0.0, atol=1e-9 * np.abs(found[0]).max())
    even = solver(drop(MATTER), colliders=[collider_contact_angle(plate(), FRAME, angle=90.0)])
    for _ in range(3):
        even.step(1e-3)
    assert np.abs(even.particles.unpack("velocity") - found[0]).max() > 1e-3 * np.abs(found[0]).max()


def test_a_field_of_vectors_is_refused():
    """With node and port."""
    with pytest.raises(MpmNodesError, match=r"collider_contact_angle\.field: is a field of vectors"):
        collider_contact_angle(plate(), FRAME, field_vector())


def test_hysteresis_beyond_the_angles_is_told():
    """Both angles lie from 0 to 180 degrees, of nodes and of walls."""
    with pytest.raises(MpmNodesError, match=r"hysteresis: 60 degrees around 20 recede at -10 and advance at 50"):
        collider_contact_angle(plate(), FRAME, angle=20.0, hysteresis=60.0)
    substeps = {"preset": "surface_tension", "set": {"contact_angle": 170.0, "hysteresis": 40.0}}
    with pytest.raises(MpmNodesError, match=r"set_tension: a contact angle of 170 degrees with a hysteresis of 40 recedes at 150"):
        solver(drop(MATTER), substeps, colliders=[plate()]).step(1e-3)
