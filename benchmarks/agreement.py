"""Whether two solvers computed the same thing: figures of the final states, compared within float32 rounding.

For the same discretisation ("same") tolerances are multiples of R = steps * 2^-24, the error of a float32 near 1 after so
many roundings that all point the same way. MLS-MPM ("mls") is another discretisation of the same equations: it must come
near, and what it may differ by is of the order of its truncation error on this scene.

| figure | "same" may differ by | because | "mls" |
|---|---|---|---|
| mean v^2 of each axis, relative | 2 R | the square doubles R; adding dt g rounds every particle alike | 1 % |
| mean norm(F - I)^2, relative | 4 R | F is rounded near 1, its strain is small; roundings cancel in the mean | 1 % |
| mean J - 1 | R / 4 | three diagonal entries near 1; roundings cancel in the mean | 1e-5 |
| centre of mass [m] | R / 16 | positions lie below 1 m; roundings cancel in the mean | 1e-6 |
| root mean square distance of a particle from its twin [m] | R / 4 | the same; roundings cancel in part | 1e-5 |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

RELATIVE = ("mean_square_velocity", "mean_square_strain")

State = Mapping[str, np.ndarray]
"""position [m] and velocity [m/s] of shape (n, 3), deformation of shape (n, 3, 3), in the order of the start."""


def tolerances(form: str, steps: int) -> dict[str, float]:
    """Return what each figure may differ by after `steps` steps, for a peer in the form "same" or "mls"."""
    rounding = steps * 2.0**-24
    return {
        "same": {
            "mean_square_velocity": 2.0 * rounding,
            "mean_square_strain": 4.0 * rounding,
            "mean_volume_change": rounding / 4.0,
            "centre_of_mass": rounding / 16.0,
            "distance_of_twins": rounding / 4.0,
        },
        "mls": {
            "mean_square_velocity": 0.01,
            "mean_square_strain": 0.01,
            "mean_volume_change": 1e-5,
            "centre_of_mass": 1e-6,
            "distance_of_twins": 1e-5,
        },
    }[form]


def compare(ours: State, peer: State, steps: int, form: str) -> dict[str, Any]:
    """Compare two states after `steps` steps from the same start.

    Returns:
        `steps`, `figures` (by name: ours, peer, difference, relative, allowed, agrees) and `agree`, whether all of them do.
    """
    mine, theirs = figures(ours, ours), figures(peer, ours)
    rows = {}
    for name, allowed in tolerances(form, steps).items():
        relative = name in RELATIVE
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = np.abs(theirs[name] - mine[name])
            difference = float(np.max(difference / np.abs(mine[name]) if relative else difference))
        rows[name] = {
            "ours": mine[name].tolist(),
            "peer": theirs[name].tolist(),
            "difference": difference,
            "relative": relative,
            "allowed": allowed,
            "agrees": bool(difference <= allowed),
        }  # NaN never agrees
    return {"steps": steps, "figures": rows, "agree": all(row["agrees"] for row in rows.values())}


def figures(state: State, twins: State) -> dict[str, np.ndarray]:
    """Return the figures of a state; `twins` is the state whose particles it is compared with."""
    position, velocity, deformation = (np.asarray(state[name], float) for name in ("position", "velocity", "deformation"))
    paired = position.shape == twins["position"].shape
    apart = position - twins["position"] if paired else np.full((1, 3), np.nan)
    with np.errstate(invalid="ignore"):
        volume_change = np.linalg.det(deformation) - 1.0
    return {
        "mean_square_velocity": (velocity**2).mean(axis=0),
        "mean_square_strain": ((deformation - np.eye(3)) ** 2).sum(axis=(1, 2)).mean(),
        "mean_volume_change": volume_change.mean(),
        "centre_of_mass": position.mean(axis=0),
        "distance_of_twins": np.sqrt((apart**2).sum(axis=1).mean()),
    }
