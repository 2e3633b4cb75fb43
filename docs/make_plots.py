"""Draw the plots of the pages: checks by `mpm-nodes verify --plots`, a cache by `mpm-nodes plot`.

python docs/make_plots.py      (five minutes; what it writes, docs/plots/NAME.png, is kept in the repository)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
PLOTS = DOCS / "plots"
CHECKS = ("oldroyd_start_up", "held_half_space", "rolling_ball", "cylinder_slump")
COLOURS = 128
"""Of the pictures that are kept: lines and letters look the same, and take a third."""


def kept(source: Path, name: str) -> None:
    """Keep a picture in few colours."""
    with Image.open(source) as drawn:
        drawn.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PLOTS / f"{name}.png", optimize=True)


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


if __name__ == "__main__":
    main()
