"""Pictures of problems with exact answers: measured curves over closed forms, and each number within its tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpm_nodes.data import OutputError
from mpm_nodes.plots.pictures import COLOURS, KINDS, check_picture, page, write_picture
from mpm_nodes.verification import Curve, Record, VerificationProblem

__all__ = ["check_folder", "draw_check"]

COLUMNS, MOST_CURVES, MOST_ROWS, MOST_MARKS = 3, 9, 60, 40
MISSED, HELD = COLOURS[1], COLOURS[0]
SHOWN = 1.6
"""Differences over their tolerances that are shown; those beyond end there with a mark."""


def check_folder(folder: Path) -> None:
    """Make the folder of pictures, before any check has run.

    Raises:
        MpmNodesError: matplotlib is not installed.
        OutputError: It cannot be made.
    """
    check_picture(folder / "any.png")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror or error}); choose another folder with --plots") from error


def draw_check(folder: Path, problem: VerificationProblem, records: Sequence[Record]) -> list[Path]:
    """Draw a problem that has run into `NAME.png` and `NAME.svg`; return the files."""
    curves, rows = problem.curves[:MOST_CURVES], list(records[:MOST_ROWS])
    with page():
        from matplotlib.figure import Figure

        lines = math.ceil(len(curves) / COLUMNS)
        heights = [*([3.1 * lines] if lines else []), 0.9 + 0.3 * max(1, len(rows))]
        figure = Figure(figsize=(13.2, 0.5 + sum(heights)), layout="constrained")
        figure.suptitle(f"{problem.name}: {problem.summary()}", x=0.01, ha="left", fontsize=12.0)
        parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).ravel()
        if curves:
            places = parts[0].subplots(lines, min(COLUMNS, len(curves)), squeeze=False).ravel()
            for n, curve in enumerate(curves):
                _draw_curve(places[n], curve, n == 0)
            for place in places[len(curves) :]:
                place.set_axis_off()
        _draw_rows(parts[-1].subplots(), problem, rows, len(records))
        return [write_picture(figure, folder / f"{problem.name}{kind}") for kind in KINDS]


def _draw_curve(axes: Any, curve: Curve, first: bool) -> None:
    x, exact = curve.exact
    if curve.tolerance:
        band = {"color": "#b8b8b8", "alpha": 0.6, "linewidth": 0, "label": "tolerance"}
        axes.fill_between(x, exact - curve.tolerance, exact + curve.tolerance, **band)
    axes.plot(x, exact, color="#202020", linewidth=1.6, label="exact")
    every = max(1, len(curve.measured[0]) // MOST_MARKS)
    mark = {"linestyle": "", "marker": "o", "markersize": 5.0, "markerfacecolor": "none", "markeredgewidth": 1.4}
    axes.plot(*(each[::every] for each in curve.measured), color=HELD, label="measured", **mark)
    axes.set_title(curve.what, fontsize=11.0, fontweight="normal")
    axes.set_xlabel(curve.axes[0])
    axes.set_ylabel(curve.axes[1])
    if first:
        axes.legend(loc="best")


def _draw_rows(axes: Any, problem: VerificationProblem, rows: Sequence[Record], count: int) -> None:
    """Draw what is off, over what may be, and write the numbers beside it."""
    axes.axvspan(-1.0, 1.0, color="#b8b8b8", alpha=0.35, linewidth=0)
    axes.axvline(0.0, color="#202020", linewidth=1.2)
    for place, record in enumerate(rows):
        off, less = record.used, not isinstance(record.measured, str) and record.measured < record.expected
        sign = -1.0 if less else 1.0
        shown = sign * min(off, SHOWN)
        colour = HELD if record.passed else MISSED
        axes.barh(place, shown, height=0.4, color=colour, zorder=2.0)
        mark = "D" if off <= SHOWN else ">" if sign > 0.0 else "<"
        axes.plot(shown, place, marker=mark, color=colour, markersize=6.0 if mark == "D" else 9.0, clip_on=False, zorder=2.1)
        axes.text(1.02, place, _words(record), transform=axes.get_yaxis_transform(), va="center", fontsize=9.5)
    axes.set_yticks(range(len(rows)), [_label(problem, record) for record in rows], fontsize=9.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-SHOWN, SHOWN)
    axes.grid(axis="y", visible=False)
    more = f"; {count - len(rows)} more are not drawn" if count > len(rows) else ""
    axes.set_xlabel(f"(measured - exact) / tolerance{more}")


def _label(problem: VerificationProblem, record: Record) -> str:
    return record.name.removeprefix(problem.name).strip() or problem.name


def _words(record: Record) -> str:
    if isinstance(record.measured, str):
        return record.measured[:60]
    within = f" ± {record.tolerance:.3g}" if record.tolerance else ""
    verdict = "" if record.passed else f"  {record.verdict}"
    return f"{record.measured:.4g}, exact {record.expected:.4g}{within}{verdict}"
