"""Pictures of curves by matplotlib: small multiples, PNG or SVG, in colours that the colour-blind can tell apart.

Colours are those of Okabe and Ito, "Color Universal Design" (2008), without the yellow that no white page shows; lines differ in
their dashes as well.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.files.folder import refuse_foreign, replace_named
from mpm_nodes.plots.cache_curves import Panel

__all__ = ["COLOURS", "DASHES", "check_picture", "draw_panels", "page", "write_picture"]

KINDS = (".png", ".svg")
MADE_BY = "mpm-nodes plot"
"""What each picture says of itself, so that it may be written again."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)))
MARKS = "os^Dv*P"
COLUMNS = 3
DOTS = 120
"""Pixels an inch."""
STYLE = {
    "font.family": "DejaVu Sans", "font.size": 11.0, "axes.titlesize": 12.0, "axes.titleweight": "bold", "axes.labelsize": 11.0,
    "axes.titlelocation": "left", "axes.grid": True, "grid.color": "#d8d8d8", "grid.linewidth": 0.8, "axes.edgecolor": "#606060",
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False, "axes.formatter.useoffset": False,
    "lines.linewidth": 1.8, "legend.fontsize": 10.0, "legend.frameon": True, "legend.framealpha": 0.85, "legend.edgecolor": "none",
    "legend.labelspacing": 0.25, "svg.hashsalt": "mpm-nodes", "figure.dpi": DOTS, "savefig.dpi": DOTS,
}  # fmt: skip


def check_picture(path: Path) -> None:
    """Refuse, before anything is read, a picture that cannot be written.

    Raises:
        MpmNodesError: An unknown ending, or matplotlib is not installed.
        OutputError: Something that we did not write has that name.
    """
    if path.suffix.lower() not in KINDS:
        raise MpmNodesError(f"plot {path}: the ending {path.suffix!r} is unknown; choose one of {', '.join(KINDS)}")
    with page():
        refuse_foreign(path, _is_ours)


@contextlib.contextmanager
def page() -> Iterator[Any]:
    """Give matplotlib in our style, whatever a file of settings says; no window is opened.

    Raises:
        MpmNodesError: It is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise MpmNodesError("plot: needs matplotlib; install it with: pip install 'mpm-nodes[plots]'") from error
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        yield matplotlib


def write_picture(figure: Any, path: Path) -> Path:
    """Write a figure as PNG or SVG, the same bytes for the same curves.

    Raises:
        OutputError: It is not ours, or cannot be written.
    """
    kind = path.suffix.lower().removeprefix(".")
    data = io.BytesIO()
    about = {"Software": MADE_BY} if kind == "png" else {"Creator": MADE_BY, "Date": None}
    figure.savefig(data, format=kind, metadata=about)
    return replace_named(path, data.getvalue(), _is_ours, make=True)


def _is_ours(old: bytes) -> bool:
    return MADE_BY.encode() in old[:4000]


def draw_panels(caches: Sequence[tuple[str, Sequence[Panel]]], path: Path) -> Path:
    """Draw the panels of one cache, or of several over one another, as small multiples.

    Args:
        caches: Name and panels of each.
        path: PNG or SVG.

    Raises:
        MpmNodesError: No cache has a panel, or the picture cannot be written.
    """
    names = list(dict.fromkeys(panel.name for _, panels in caches for panel in panels))
    if not names:
        raise MpmNodesError(f"plot: {caches[0][0]} holds nothing to plot; cook a frame first")
    with page():
        from matplotlib.figure import Figure

        columns = min(COLUMNS, len(names))
        rows = math.ceil(len(names) / columns)
        figure = Figure(figsize=(4.4 * columns, 2.9 * rows + 0.55), layout="constrained")
        figure.suptitle(caches[0][0] if len(caches) == 1 else "", x=0.01, ha="left", fontsize=13.0)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for place in axes[len(names) :]:
            place.set_axis_off()
        for place, name in zip(axes, names, strict=False):
            _draw_panel(place, name, caches)
        if len(caches) > 1:
            from matplotlib.lines import Line2D

            handles = [Line2D([], [], color=COLOURS[n % len(COLOURS)], label=label) for n, (label, _) in enumerate(caches)]
            figure.legend(handles=handles, loc="outside upper left", ncols=len(caches), fontsize=12.0)
        return write_picture(figure, path)


def _draw_panel(axes: Any, name: str, caches: Sequence[tuple[str, Sequence[Panel]]]) -> None:
    """Draw one quantity: where several caches are compared, colours are caches and dashes are lines."""
    several = len(caches) > 1
    labels: dict[str, tuple[str, Any]] = {}
    panels = [(n, panel) for n, (_, panels) in enumerate(caches) for panel in panels if panel.name == name]
    for n, panel in panels:
        for k, line in enumerate(panel.lines):
            look = (COLOURS[(n if several else k) % len(COLOURS)], DASHES[k % len(DASHES)])
            labels.setdefault(line.name, ("#404040" if several else look[0], look[1]))
            few = "o" if len(line.values) < 3 else ""
            axes.plot(line.frames, line.values, color=look[0], linestyle=look[1], marker=few, markersize=4.0)
    panel = panels[0][1]
    axes.set_title(f"{name} [{panel.unit}]" if panel.unit else name)
    axes.set_xlabel("frame")
    axes.xaxis.get_major_locator().set_params(integer=True)
    flat = [value for _, each in panels for line in each.lines for value in line.values]
    if panel.log and min(flat) > 0.0:
        axes.set_yscale("log")
        _mark_limits(axes, panels, several)
    else:
        _open_up(axes, min(flat), max(flat))
        if panel.unit:
            axes.ticklabel_format(axis="y", scilimits=(-2, 4), useMathText=True)
        else:
            axes.yaxis.set_major_formatter("{x:,.6g}")
    if len(labels) > 1:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], color=colour, linestyle=dash, label=label) for label, (colour, dash) in labels.items()]
        look = {"loc": "best"}
        if len(labels) > 4:
            axes.set_ylim(top=axes.get_ylim()[0] + 1.9 * (axes.get_ylim()[1] - axes.get_ylim()[0]))  # room for the words
            look = {"loc": "upper left", "fontsize": 8.5}
        axes.legend(handles=handles, handlelength=2.2, **look).set_in_layout(False)


def _open_up(axes: Any, low: float, high: float) -> None:
    """Give what is constant to six digits an axis on which it looks constant."""
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        span = 0.05 * max(abs(low), abs(high)) or 1.0
        axes.set_ylim(low - span, high + span)


def _mark_limits(axes: Any, panels: Sequence[tuple[int, Panel]], several: bool) -> None:
    """Mark what limits the time step, by the shape of the marks."""
    from matplotlib.lines import Line2D

    words = list(dict.fromkeys(word for _, panel in panels for word in panel.notes.values()))[: len(MARKS)]
    for n, panel in panels:
        for line in panel.lines:
            for k, word in enumerate(words):
                marked = [m for m, frame in enumerate(line.frames) if panel.notes.get(frame) == word]
                colour = COLOURS[(n if several else k) % len(COLOURS)]
                look = {"linestyle": "", "marker": MARKS[k], "color": colour, "markersize": 4.0}
                axes.plot([line.frames[m] for m in marked], [line.values[m] for m in marked], **look)
    if words:
        colours = ["#404040" if several else COLOURS[k % len(COLOURS)] for k in range(len(words))]
        handles = [
            Line2D([], [], linestyle="", marker=mark, color=colour, label=word, markersize=5.0)
            for mark, colour, word in zip(MARKS, colours, words, strict=False)
        ]
        axes.legend(handles=handles, title="limited by", loc="best", title_fontsize=10.0, handletextpad=0.2)
