"""Draw the plots of the pages: checks by `mpm-nodes verify --plots`, a cache by `mpm-nodes plot`, and the kept errors of
`benchmarks/convergence.py`.

python docs/make_plots.py      (fifteen minutes; what it writes, docs/plots/NAME.png, is kept in the repository)
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from mpm_nodes.plots.pictures import COLOURS as LINES
from mpm_nodes.plots.pictures import page, write_picture

DOCS = Path(__file__).resolve().parent
PLOTS = DOCS / "plots"
CHECKS = ("oldroyd_start_up", "held_half_space", "rolling_ball", "cylinder_slump", "drop_impact", "spreading", "dripping")
COLOURS = 128
"""Of the pictures that are kept: lines and letters look the same, and take a third."""


STEPS = ("-", (0, (5, 2)), (0, (1.2, 1.6)))
"""Dashes of the three time steps."""


def kept(source: Path, name: str) -> None:
    """Keep a picture in few colours."""
    with Image.open(source) as drawn:
        drawn.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PLOTS / f"{name}.png", optimize=True)


def convergence(into: Path) -> None:
    """Draw the errors of every problem over the cells, a colour for each preset, a dash for each time step."""
    rows: list[dict[str, Any]] = json.loads((PLOTS / "convergence.json").read_text())
    problems, presets = (list(dict.fromkeys(row[key] for row in rows)) for key in ("problem", "substeps"))
    with page():
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D

        figure = Figure(figsize=(13.2, 6.6), layout="constrained")
        places = figure.subplots(2, math.ceil((len(problems) + 1) / 2)).ravel()
        for place, problem in zip(places, problems, strict=False):
            for row in (row for row in rows if row["problem"] == problem):
                for n, dash in enumerate(STEPS):
                    colour = LINES[presets.index(row["substeps"])]
                    errors = [100.0 * line[n] for line in row["errors"]]
                    place.plot(row["cells"], errors, color=colour, linestyle=dash, marker="o", markersize=3.5, linewidth=1.4)
            cells = rows[[row["problem"] for row in rows].index(problem)]["cells"]
            place.axhline(5.0, color="#606060", linewidth=0.8)
            place.set(title=problem, xscale="log", yscale="log", ylim=(0.05, 100.0), xlabel="cells")
            place.set_xticks(cells, [str(each) for each in cells])
            place.minorticks_off()
            place.set_yticks([0.1, 1.0, 5.0, 10.0, 100.0], ["0.1", "1", "5", "10", "100"])
        places[0].set_ylabel("error [%]")
        places[len(places) // 2].set_ylabel("error [%]")
        keys = [Line2D([], [], color=LINES[n], label=name) for n, name in enumerate(presets)]
        steps = zip(STEPS, ("longest step", "half of it", "a quarter"), strict=True)
        keys += [Line2D([], [], color="#202020", linestyle=dash, label=name) for dash, name in steps]
        for place in places[len(problems) :]:
            place.set_axis_off()
        places[-1].legend(handles=keys, loc="center left", bbox_to_anchor=(-0.2, 0.5))
        write_picture(figure, into)


def main() -> None:
    """Draw them all."""
    command = [sys.executable, "-P", "-m", "mpm_nodes.cli"]
    PLOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([*command, "verify", *CHECKS, "--plots", str(folder)], check=True)
        for name in CHECKS:
            kept(folder / f"{name}.png", name)
        with open(folder / "events.jsonl", "wb") as events:
            cook = [*command, "cook", str(DOCS / "snowball.json"), "--out", str(folder / "snowball"), "--events", "jsonl"]
            subprocess.run(cook, check=True, stdout=events)
        plot = [*command, "plot", str(folder / "snowball"), "--events", str(folder / "events.jsonl")]
        subprocess.run([*plot, "-o", str(folder / "plot.png")], check=True)
        kept(folder / "plot.png", "snowball")
        convergence(folder / "convergence.png")
        kept(folder / "convergence.png", "convergence")


if __name__ == "__main__":
    main()
