"""What beads_on_string shows: how its wave grows, how thick and how tense its string is, beside the slender thread."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.materials.volumes import volume_ratios
from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.melting import balances
from tests.reproduction.slender import ThreadCourse, linear_growth, slender_thread

LENGTH = 14.0
"""Of a wave [m]: a bead in the middle, and half a string on either side."""
THICK = 0.45
"""Radius from which on a string counts as one [m]."""


def course(shot: Shot) -> ThreadCourse:
    """Return the thread over the shot's frames, as a slender thread tells its own."""
    mu = float(shot.graph.nodes["polymer"].knobs["shear_modulus"])
    rows = []
    for frame in shot.frames:
        particles = shot.at(frame)
        x, m = (np.asarray(particles[name], float) for name in ("position", "mass"))
        near = np.abs(x[:, 2] - 0.5 * LENGTH) > 0.5 * (LENGTH - 1.0)
        wave = -float(m @ np.cos(2.0 * math.pi * x[:, 2] / LENGTH)) / float(m.sum())
        a, stress = string(particles, near, mu)
        time = (frame - shot.first) * shot.frame_seconds
        rows.append((time, wave, a, float(radii(particles, shot.cell_size).max()), stress))
    return ThreadCourse(*np.array(rows).T)


def string(particles: Particles, near: np.ndarray, mu: float) -> tuple[float, float]:
    """Return radius [m] and C of a metre of a quarter of a thread that a mask marks."""
    volume = np.asarray(particles["volume"], float) * volume_ratios(particles)
    a = math.sqrt(4.0 * volume[near].sum() / math.pi)
    if not near.any():
        return a, 0.0
    state = {name: np.asarray(particles[name][near], float) for name in ("volume_change", "elastic_strain")}
    J, b = call_law("oldroyd_b", "left_strain", state)
    pulled = mu * (b[:, 2, 2] - 0.5 * (b[:, 0, 0] + b[:, 1, 1])) * np.cbrt(J) ** 2  # Kirchhoff, of the undeformed volume
    return a, float(particles["volume"][near] @ pulled) / float(volume[near].sum()) * a


def radii(particles: Particles, cell_size: float) -> np.ndarray:
    """Return the radius of each slice of a cell along a quarter of a thread [m]."""
    volume = np.asarray(particles["volume"], float) * volume_ratios(particles)
    count = round(LENGTH / cell_size)
    slice_ = np.clip((np.asarray(particles["position"][:, 2], float) / cell_size).astype(int), 0, count - 1)
    return np.sqrt(4.0 * np.bincount(slice_, volume, count) / (math.pi * cell_size))


def reached(time: np.ndarray, values: np.ndarray, level: float) -> float:
    """Return when a course first passes a level, straight between its rows; not a number where it does not."""
    passed = (values - level) * np.sign(values[0] - level) <= 0.0
    n = int(np.argmax(passed))
    if not passed[n] or n == 0:
        return math.nan
    share = (level - values[n - 1]) / (values[n] - values[n - 1])
    return float(time[n - 1] + share * (time[n] - time[n - 1]))


def thinning(of: ThreadCourse, thin: float) -> float:
    """Return the rate at which the string's radius falls from THICK to `thin` [1/s]."""
    return math.log(THICK / thin) / (reached(of.time, of.string, thin) - reached(of.time, of.string, THICK))


def beads_on_string(shot: Shot) -> list[Figure]:
    """Return the balances, and wave, string and beads, each over that of the slender thread."""
    knobs, h = shot.graph.nodes["polymer"].knobs, shot.cell_size
    mu, t_r = float(knobs["shear_modulus"]), float(knobs["relaxation_time"])
    measured, thin = course(shot), 2.0 * h
    exact = slender_thread(mu, t_r, 0.5 * LENGTH, float(measured.wave[0]), (float(measured.time[-1]) + 5.0, 0.9 * thin))
    low = measured.wave[0]
    grown, half, rate, end = (
        [get(each) for each in (measured, exact)]
        for get in (
            lambda of: reached(of.time, of.wave, 1.5 * low),
            lambda of: reached(of.time, of.string, 0.5),
            lambda of: thinning(of, thin),
            lambda of: reached(of.time, of.string, thin),
        )
    )
    stress, bead = (
        [float(np.interp(when, of.time, getattr(of, name))) for of, when in zip((measured, exact), end, strict=True)]
        for name in ("stress", "bead")
    )
    whole = [frame for frame, time in zip(shot.frames, measured.time, strict=True) if not time > end[0]]
    slices = {frame: radii(shot.at(frame), h) for frame in whole}
    between = np.roll(slices[whole[-1]], round(3.5 / h))[: round(7.0 / h)]
    volume = shot.matter_volume(shot.last) / shot.matter_volume(shot.first)
    law = 2.0 / (5.0 * t_r)
    waves = np.linspace(0.05, 0.95, 181)
    fastest = max(linear_growth(mu, t_r, each) for each in waves)
    says = "slender thread"
    return [
        *(each for each in balances(shot) if "enthalpy" not in each.name and "heat" not in each.name),
        Figure("volume at the end, over that at the start", volume, Target(0.95, 1.05), "kept"),
        Figure("small waves of this length grow at, over the fastest", linear_growth(mu, t_r, 2.0 * math.pi / LENGTH) / fastest),
        Figure("time until the wave is half as large again, over theory", grown[0] / grown[1], Target(0.9, 1.1), says),
        Figure("time until the string has half the radius, over theory", half[0] / half[1], Target(0.9, 1.1), says),
        Figure("rate at which it thins to two cells, over theory", rate[0] / rate[1], Target(0.8, 1.2), says),
        Figure("the same, over 2 / (5 t_r)", rate[0] / law, None, f"1 in the end; slender thread {rate[1] / law:.3g}"),
        Figure("its elastic stress, two cells thin, over theory", stress[0] / stress[1], Target(0.8, 1.2), says),
        Figure("that stress, over tension / radius", stress[0], None, f"1 to 2 in the end; slender thread {stress[1]:.3g}"),
        Figure("thinnest slice between the beads then, over their median", float(between.min() / np.median(between)),
               Target(0.75), "smooth"),
        Figure("slices without matter until then", float(max((row == 0.0).sum() for row in slices.values())), Target(0.0, 0.0),
               "one piece"),
        Figure("radius of the bead then, over theory", bead[0] / bead[1], Target(0.95, 1.05), says),
    ]  # fmt: skip
