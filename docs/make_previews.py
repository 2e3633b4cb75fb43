"""Cook the packaged previews, which `mpm-nodes edit` shows before anything is cooked: python docs/make_previews.py [NAME ...]

Each is a coarser cook of a sample's own graph, of which every second or third frame is kept; samples/previews/NAME.npz holds it.
All take ten minutes; with names those alone are cooked. --cooked DIR takes the cooks from a folder, and keeps them there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from mpm_nodes.data import MpmNodesError
from mpm_nodes.editor.previews import write_preview
from mpm_nodes.graph.document.document import load_graph

SAMPLES = Path(__file__).resolve().parents[1] / "samples"


class Recipe(NamedTuple):
    """How a preview is cooked: `--resolution`, knobs that do not follow it, and of the frames each `step`th."""

    resolution: float
    knobs: tuple[str, ...]
    step: int
    attribute: str


RECIPES = {
    "demo": Recipe(0.6, ("surface.voxel_size=0.022",), 2, "velocity"),
    "ball_on_jelly": Recipe(0.6, ("surface.voxel_size=0.014",), 2, "velocity"),
    "broken_chocolate": Recipe(0.9, (), 2, "velocity"),
    "hot_stream": Recipe(0.8, ("surface.voxel_size=0.004",), 3, "temperature"),
    "caramel": Recipe(0.7, ("surface.voxel_size=0.003",), 3, "temperature"),
}


def cook(name: str, recipe: Recipe, out: Path) -> Path:
    """Cook a sample, where it is not cooked yet, and return the revision."""
    if not list(out.glob("r*")):
        knobs = [word for knob in recipe.knobs for word in ("--set", knob)]
        command = [sys.executable, "-P", "-m", "mpm_nodes.cli", "cook", str(SAMPLES / f"{name}.json"), "--out", str(out)]
        subprocess.run([*command, "--resolution", str(recipe.resolution), *knobs], check=True)
    return max(out.glob("r*"))


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description="Cook the packaged previews.")
    parser.add_argument("names", nargs="*", help="samples (default: all)")
    parser.add_argument("--cooked", type=Path, help="folder of their cooks")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.names or RECIPES:
            recipe, graph = RECIPES[name], SAMPLES / f"{name}.json"
            folder = cook(name, recipe, (args.cooked or Path(scratch)) / name)
            settings = load_graph(graph).settings
            numbers = range(settings.start, settings.end + 1, recipe.step)
            facts = {"resolution": recipe.resolution, "of": settings.end - settings.start + 1}
            (SAMPLES / "previews").mkdir(exist_ok=True)
            size = write_preview(folder, SAMPLES / "previews" / f"{name}.npz", graph, numbers, recipe.attribute, facts)
            print(f"{name}: {len(numbers)} frames, {size / 1e3:.0f} kB")


if __name__ == "__main__":
    try:
        main()
    except MpmNodesError as error:
        raise SystemExit(f"make_previews: {error}") from error
