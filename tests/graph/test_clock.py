"""The clock: frames, seconds of the shot, simulated seconds and time codes agree at any rate, pace and first frame."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mpm_nodes.data import ATTRIBUTES, GraphSettings
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.time.clock import Clock, per_second_of_the_shot, seconds_in_unit
from mpm_nodes.physics import all_physics

RATES = (23.976, 24.0, 25.0, 30.0, 48.0, 60.0, 120.0)
STARTS = (0, -7, 1, 1001)
PACES = (0.1, 0.5, 1.0, 2.0)


def ramp(start: int) -> keys.KeyedNumber:
    """Return a pace that holds, eases, falls and steps."""
    rows = [(start + 2, 1.0, "smooth"), (start + 5.5, 0.1, "linear"), (start + 8, 2.0, "step"), (start + 9.25, 0.5, "step")]
    return keys.KeyedNumber(rows)


@pytest.mark.parametrize(("fps", "start", "pace"), list(itertools.product(RATES, STARTS, PACES)))
def test_constant_paces_are_straight_lines(fps, start, pace):
    """T = pace (f - start) / fps, there and back; the initial state is at 0; a pace is dT/dt."""
    clock = Clock.of(GraphSettings(fps=fps, start=start), pace=pace)
    for frame in (start, start + 1, start + 3.25, start + 40):
        assert clock.simulated(frame) == pytest.approx(pace * (frame - start) / fps, rel=1e-12)
        assert clock.frame_at(clock.simulated(frame)) == pytest.approx(frame, abs=1e-9)
        assert clock.frame(clock.seconds(frame)) == pytest.approx(frame, abs=1e-9)
        assert clock.pace_at(frame) == pace
    over = clock.over(start + 4)
    assert (over.begin, over.end) == (clock.simulated(start + 3), clock.simulated(start + 4)) and over.pace == pace
    assert (over.frame_at(over.begin), over.frame_at(over.end)) == (start + 3, start + 4)
    assert over.simulated(clock.seconds(np.array([start + 3.5]))) == pytest.approx(pace * 3.5 / fps)


@pytest.mark.parametrize(("fps", "start"), list(itertools.product(RATES, STARTS)))
def test_a_keyed_pace_is_integrated(fps, start):
    """T is the integral of the pace over the shot's seconds, exact over steps and eases; its inverse finds the frame."""
    pace = ramp(start)
    clock = Clock.of(GraphSettings(fps=fps, start=start), pace=pace)
    fine = np.linspace(start, start + 12, 48001)
    rates = np.array([pace.at(f) for f in fine])
    sums = np.concatenate([[0.0], np.cumsum(0.5 * (rates[1:] + rates[:-1]) * np.diff(fine))]) / fps
    for place in (1, 4000, 14000, 23456, 31999, 37000, 48000):
        assert clock.simulated(fine[place]) == pytest.approx(sums[place], rel=2e-4)
        assert clock.frame_at(clock.simulated(fine[place])) == pytest.approx(fine[place], abs=1e-8)
    assert clock.pace_at(start + 1) == 1.0 and clock.pace_at(start + 8.5) == 2.0 and clock.pace_at(start + 11) == 0.5
    over = clock.over(start + 5)
    assert over.pace == pytest.approx((clock.simulated(start + 5) - clock.simulated(start + 4)) * fps)
    middle = clock.seconds(np.array([start + 4.0, start + 4.5, start + 5.0]))
    assert over.simulated(middle) == pytest.approx([clock.simulated(start + f) for f in (4.0, 4.5, 5.0)])


def test_before_the_initial_state_simulated_time_stands_still():
    """start_frame 5 in a shot from 1: T and the pace are 0 up to it, and T runs from there; an earlier one is the first frame."""
    clock = Clock.of(GraphSettings(fps=25.0, start=1), begin=5, pace=0.5)
    assert [clock.simulated(frame) for frame in (1, 4, 5, 6)] == [0.0, 0.0, 0.0, 0.02]
    assert clock.pace_at(4.9) == 0.0 and clock.pace_at(5) == 0.5
    assert clock.seconds(5) == pytest.approx(0.16)
    assert Clock.of(GraphSettings(start=1001), begin=1).origin == 1001


@pytest.mark.parametrize(("fps", "codes"), list(itertools.product(RATES, (1.0, 24.0, 48.0, 6000.0))))
def test_time_codes_name_the_same_instant(fps, codes):
    """A frame's time code over the codes a second is its number over the frames a second."""
    clock = Clock.of(GraphSettings(fps=fps, start=1001))
    assert clock.code(1005, codes) / codes == pytest.approx(1005 / fps, rel=1e-12)


def test_the_clock_of_no_shot_is_the_identity():
    """Without a shot, frames, seconds and simulated seconds are one."""
    clock = Clock()
    assert clock.simulated(0.37) == clock.seconds(0.37) == clock.frame_at(0.37) == 0.37 and clock.pace_at(3.0) == 1.0


def test_rates_are_found_by_their_units():
    """Whatever is per second is scaled once, accelerations twice, the rest not at all; at pace 1 nothing is copied."""
    assert [seconds_in_unit(u) for u in ("m/s", "1/s", "K/s", "m/s^2", "m", "Pa", "Pa s", "kg/m^3", "", "W/(m K)")] == [
        1, 1, 1, 2, 0, 0, 0, 0, 0, 0,
    ]  # fmt: skip
    added = {field.name for physics in all_physics() for field in physics.fields.get("particles", ())}
    rates = {name for name, attribute in ATTRIBUTES.items() if seconds_in_unit(attribute.unit)}
    assert rates - added == {"velocity", "affine", "velocity_gradient"}
    columns = {name: np.ones((4, *attribute.shape), np.float32) for name, attribute in ATTRIBUTES.items()}
    units = {name: attribute.unit for name, attribute in ATTRIBUTES.items()}
    scaled = per_second_of_the_shot(columns, units, 0.25)
    assert {name for name in columns if (scaled[name] == 0.25).all()} == rates
    assert all(scaled[name] is columns[name] for name in columns.keys() - rates)
    assert all(column.dtype == np.float32 for column in scaled.values())
    assert per_second_of_the_shot(columns, units, 1.0) is columns


@pytest.mark.parametrize("pace", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("rates", [(24.0, 48.0, 96.0), (25.0, 50.0, 100.0), (30.0, 60.0, 120.0), (23.976, 47.952)], ids=str)
def test_frame_rates_that_double_share_their_ticks(rates, pace):
    """Ticks of one length, 96 to 192 in a second of the shot; frames end on them, and what is left of one counts down."""
    ticks = set()
    for fps in rates:
        over = Clock.of(GraphSettings(fps=fps, start=1), pace=pace).over(3)
        tick, left = over.tick_at(over.begin)
        assert left == tick and (over.end - over.begin) / tick == pytest.approx(round((over.end - over.begin) / tick), rel=1e-12)
        assert over.tick_at(over.begin + 0.25 * tick) == (tick, pytest.approx(0.75 * tick, rel=1e-9))
        ticks.add(round(pace / tick, 6))
    assert len(ticks) == 1 and 95.0 <= ticks.pop() <= 192.0
