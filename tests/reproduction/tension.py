"""What the moving samples of surface tension show: momentum that stays, drops that land and slide, a stirred cavity."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.melting import balances, momentum
from tests.reproduction.phases import by_id


# ---------------------------------------------------------------- ellipse
def columns(particles: Particles, of: np.ndarray, cell_size: float) -> dict[str, np.ndarray | float]:
    """Return sums over some particles of a plane scene: momentum, angular momentum, centre [m], stretch, energy of motion."""
    m, x, v, c = (np.asarray(particles[name], float)[of] for name in ("mass", "position", "velocity", "affine"))
    own = 0.25 * cell_size**2
    spin = x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0] + own * (c[:, 1, 0] - c[:, 0, 1])
    centre = m @ x / m.sum()
    away = x - centre
    return {
        "momentum": (m @ v)[:2],
        "spin": float(m @ spin),
        "centre": centre[:2],
        "size": float(m @ np.linalg.norm(v, axis=1)),
        "stretch": float(m @ (away[:, 0] ** 2 - away[:, 1] ** 2)) / float(m @ (away[:, :2] ** 2).sum(axis=1)),
        "energy": float(0.5 * m @ ((v**2).sum(axis=1) + own * (c**2).sum(axis=(1, 2)))),
        "mass": float(m.sum()),
    }


def ellipse(shot: Shot) -> list[Figure]:
    """Return what momentum and centre the drop loses, beside that with massless samples, and its period."""
    seen: dict[str, list] = {"kept": [], "lost": []}
    for frame in shot.frames:
        particles = shot.at(frame)
        left = particles["position"][:, 0] < 0.0
        for name, of in (("kept", left), ("lost", ~left)):
            seen[name].append(columns(particles, of, shot.cell_size))
    most = {name: _most_lost(rows) for name, rows in seen.items()}
    radius = math.sqrt(0.24 * 0.16)
    period = 2.0 * math.pi * math.sqrt(1.0 * radius**3 / (6.0 * 0.1))
    stretch = np.array([row["stretch"] for row in seen["kept"]])
    rate = 1.0 / shot.frame_seconds
    down = np.flatnonzero((stretch[:-1] > 0.0) & (stretch[1:] <= 0.0))
    zeros = (down + stretch[down] / (stretch[down] - stretch[down + 1])) / rate
    measured = float(zeros[1] - zeros[0]) if len(zeros) > 1 else math.nan
    energy = [row["energy"] for row in seen["kept"]]
    half = len(energy) // 2
    says = "constant, to the single precision of the cache"
    return [
        *balances(shot),
        Figure("momentum that came up, over sum m v", most["kept"][0], Target(most=1e-6), says),
        Figure("angular momentum, over R sum m v", most["kept"][1], Target(most=1e-6), says),
        Figure("way of the centre of mass, over R", most["kept"][2], Target(most=1e-6), says),
        Figure("momentum with massless samples, over that", most["lost"][0] / most["kept"][0], Target(100.0),
               "drifts in the source"),
        Figure("its way of the centre, over R", most["lost"][2], Target(1e-4), "drifts in the source"),
        Figure("period, over 2 pi sqrt(rho R^3 / 6 k)", measured / period, Target(0.84, 1.16), "Rayleigh, errors of order h / R"),
        Figure("largest energy of motion of the second half, over the first's", max(energy[half:]) / max(energy[:half]),
               Target(most=1.0), "dissipative"),
    ]  # fmt: skip


def _most_lost(rows: list[dict]) -> tuple[float, float, float]:
    """Return momentum, angular momentum and way of the centre of mass that came up, at most, as shares."""
    scale, radius = max(row["size"] for row in rows), math.sqrt(0.24 * 0.16)
    middle = rows[0]["centre"]
    turning = [row["spin"] - (middle[0] * row["momentum"][1] - middle[1] * row["momentum"][0]) for row in rows]
    return (
        max(float(np.abs(row["momentum"]).max()) for row in rows) / scale,
        max(map(abs, turning)) / (scale * radius),
        max(float(np.abs(row["centre"] - middle).max()) for row in rows) / radius,
    )


# ---------------------------------------------------------------- drop impacts
IMPACTS = (20.0, 5.0, 1.0, 0.1, 0.05)
"""Tensions of drop_impacts from left to right."""
RADIUS, FALL = 0.226, 0.5


def drop_impacts(shot: Shot) -> list[Figure]:
    """Return how wide each drop becomes, and how long the bouncing ones touch the floor."""
    h, weber = shot.cell_size, 2.0 * 9.8 * FALL * 2.0 * RADIUS
    wide, low = np.zeros((len(shot.frames), 5)), np.zeros((len(shot.frames), 5))
    for n, frame in enumerate(shot.frames):
        particles = shot.at(frame)
        material = np.asarray(particles["material"])
        for k in range(5):
            x = np.asarray(particles["position"], float)[material == k]
            x = x - [2.0 * (k - 2), 0.0, 0.0]
            wide[n, k] = 2.0 * np.quantile(np.hypot(x[:, 0], x[:, 2]), 0.99)
            low[n, k] = x[:, 1].min()
    widest, found = wide.max(axis=0) / wide[0], balances(shot)
    for k, tension in enumerate(IMPACTS):
        most = math.sqrt(2.0 * (1.0 + weber / tension / 12.0))
        says = "its energy as surface of a disc"
        found.append(
            Figure(f"largest width with k = {tension:g}, over the first", float(widest[k]), Target(most=round(most, 3)), says)
        )
        if k:
            found.append(Figure(f"the same, over that with k = {IMPACTS[k - 1]:g}", float(widest[k] / widest[k - 1]), Target(1.0),
                                "spreads more with less tension"))  # fmt: skip
    for k in (0, 1, 2):
        touching = np.flatnonzero(low[:, k] < h)
        left = low[touching[0] :, k] >= h if len(touching) else np.zeros(0, bool)
        span = float(np.argmax(left)) * shot.frame_seconds if left.any() else math.inf
        exact = 2.6 * math.sqrt(RADIUS**3 / IMPACTS[k])
        says, target = "2.6 sqrt(rho R^3 / k), Richard 2002", Target(0.7, 1.3)
        found.append(Figure(f"time on the floor with k = {IMPACTS[k]:g}, over that of a bouncing drop", span / exact, target, says))
    return found


# ---------------------------------------------------------------- drops on ramps
RATIOS = (0.05, 0.3, 0.6, 1.0)
"""k_SL / k_LG of drops_on_ramps, from the back to the front."""
SLOPE = math.radians(5.5)


def drops_on_ramps(shot: Shot) -> list[Figure]:
    """Return how far each drop slides, and on how much of its ramp it lies."""
    first, last, h = shot.at(shot.first), shot.at(shot.last), shot.cell_size
    along, away = np.array([math.cos(SLOPE), -math.sin(SLOPE), 0.0]), np.array([math.sin(SLOPE), math.cos(SLOPE), 0.0])
    lanes = [np.floor(np.asarray(each["position"][:, 2], float) / 0.9 + 2.0).astype(int) for each in (first, last)]
    time = (shot.last - shot.first) * shot.frame_seconds
    most = 0.5 * 9.8 * math.sin(SLOPE) * time**2
    ways, feet, found = [], [], balances(shot)
    for k in range(4):
        start, end = (np.asarray(each["position"], float)[lane == k] for each, lane in zip((first, last), lanes, strict=True))
        ways.append(float((end.mean(axis=0) - start.mean(axis=0)) @ along))
        feet.append(float((end @ away < h).mean()))
        says, target = "less than without a ramp, g sin(5.5) t^2 / 2", Target(0.0, round(most, 3))
        found.append(Figure(f"way down with ratio {RATIOS[k]:g} [m]", ways[k], target, says))
        found.append(Figure(f"share of it in the cell above the ramp, ratio {RATIOS[k]:g}", feet[k]))
    for k in range(1, 4):
        pair = f"with ratio {RATIOS[k]:g}, over that with {RATIOS[k - 1]:g}"
        found.append(Figure(f"way down {pair}", ways[k] / ways[k - 1], Target(1.0), "drags more at a smaller ratio"))
        found.append(Figure(f"share on the ramp {pair}", feet[k] / feet[k - 1], Target(most=1.0), "wets more at a smaller ratio"))
    return found


# ---------------------------------------------------------------- heated cavity
def heated_cavity(shot: Shot) -> list[Figure]:
    """Return which way the liquid goes round, and how warm liquid is drawn out along the surface."""
    last, h = shot.at(shot.last), shot.cell_size
    x, v, m = (np.asarray(last[name], float) for name in ("position", "velocity", "mass"))
    v = v / shot.time_scale  # caches hold velocities in seconds of the shot
    start = by_id(shot, shot.first, "position").astype(float)
    warm = by_id(shot, shot.first, "temperature").astype(float)
    came, now = by_id(shot, shot.last, "position").astype(float), by_id(shot, shot.last, "temperature").astype(float)
    top, height = x[:, 1] > start[:, 1].max() - 2.0 * h, float(start[:, 1].max())
    floor = x[:, 1] < 0.25 * height
    middle = (x[:, 0] > 0.25) & (x[:, 0] < 0.75)
    centre = m @ x / m.sum()
    turning = m * ((x - centre)[:, 1] * v[:, 0] - (x - centre)[:, 0] * v[:, 1])
    size = float((m * np.linalg.norm((x - centre)[:, :2], axis=1) * np.linalg.norm(v[:, :2], axis=1)).sum())
    bent = [
        float(now[rows & (came[:, 0] > 0.25) & (came[:, 0] < 0.75)].mean()) - 293.15
        for rows in (came[:, 1] > height - 4.0 * h, came[:, 1] < 0.5 * height)
    ]
    sideways = float(momentum(shot, last)[0]) / float(m @ np.linalg.norm(v, axis=1))
    no_heat = [each for each in balances(shot) if "enthalpy" not in each.name and "heat" not in each.name]  # it has none
    return [
        *no_heat,
        Figure("mean speed of the surface towards the cold side [m/s]", float(v[top & middle, 0].mean()), Target(0.0),
               "hot, left, to cold, right"),
        Figure("mean speed along the floor, the same way [m/s]", float(v[floor & middle, 0].mean()), Target(most=0.0),
               "comes back"),
        Figure("angular momentum that way, over sum m r v", float(turning.sum()) / size, Target(0.5, 1.0), "one circulation"),
        Figure("warmer near the surface than in the lower half, both in the middle [K]", bent[0] - bent[1], Target(0.05),
               "contours bent to the cold side"),
        Figure("sideways momentum, over sum m v", abs(sideways), Target(most=0.1), "walls close the cavity"),
        Figure("liquid above its surface at rest by more than two cells [%]", 100.0 * float((x[:, 1] > height + 2.0 * h).mean()),
               Target(most=2.0), "a flat surface in the source"),
        Figure("change of a particle's temperature, at most [K]", float(np.abs(now - warm).max()), Target(most=1e-3),
               "carried along"),
    ]  # fmt: skip
