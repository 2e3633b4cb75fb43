"""Cook the packaged previews, which `mpm-nodes edit` shows before anything is cooked: python docs/make_previews.py [NAME ...]

Each is a coarser cook of a sample's own graph, of which every second or third frame is kept; samples/previews/NAME.npz holds it.
All take ten minutes; with names those alone are cooked. --cooked DIR takes the cooks from a folder, and keeps them there.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.editor.frames import Opened
from mpm_nodes.editor.previews import files_of, graph_key
from mpm_nodes.graph.document.document import load_graph

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
PLACE_STEP, VALUE_STEP = 16, 256
"""What positions and values are rounded to, of 65,536: none of it is seen, and half of the size is saved."""
KINDS = ("clouds", "meshes", "fogs")


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


@dataclass(frozen=True)
class _Arrays:
    """Arrays by name; such as are alike are held once."""

    held: dict[str, np.ndarray] = field(default_factory=dict)
    forms: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, array: np.ndarray) -> str:
        """Return the name of an array."""
        name = hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()[:16]
        if name not in self.held:
            self.held[name], self.forms[name] = _differences(array), [array.dtype.str, *array.shape]
        return name


def write_preview(folder: Path, path: Path, graph: Path, numbers: Sequence[int], attribute: str, facts: Mapping[str, Any]) -> int:
    """Write a preview from a cook, and return its size in bytes.

    Args:
        folder: A revision.
        path: The file.
        graph: The graph file whose cook it is, at another resolution.
        numbers: The frames, with one step between them.
        attribute: What it can be coloured by.
        facts: What the page tells of it, beside `points` and `frames`.
    """
    opened, arrays, heads = Opened(), _Arrays(), []
    cache = opened.cache(str(folder))
    kind = "surface" if any(layer.kind == "surface" for layer in cache.layers) else "points"
    layers = [layer for layer in cache.layers if layer.kind in (kind, "bodies")]
    points = [layer for layer in cache.layers if layer.kind == "points"]
    most = 0
    for number in numbers:
        head, drawn = opened.drawn(str(folder), number, [layer.name for layer in layers], attribute, 8_000)
        most = max(most, sum(record["count"] for record, _ in cache.drawn(points, number, "", 1).clouds))
        names = {}
        for each in KINDS:
            for record, shape in getattr(drawn, each):
                record["arrays"] = [arrays.add(_rounded(array)) for array in shape]
                names |= {name: arrays.forms[name] for name in record["arrays"]}
        shown = [each for each in head["layers"] if each["name"] in head["shown"]]
        span = {"first": numbers[0], "last": numbers[-1], "step": numbers[1] - numbers[0]}
        heads.append({**head, **drawn.records, **span, "layers": shown, "attributes": [attribute], "arrays": names})
    for head in heads:
        head["preview"] = {**facts, "points": most, "frames": len(heads)}
    document = json.loads(graph.read_text(encoding="utf-8"))
    told = {"graph": graph_key(document), "files": files_of(graph), "attribute": attribute, "frames": heads}
    held = io.BytesIO()
    np.savez_compressed(held, facts=np.frombuffer(json.dumps(told).encode(), np.uint8), **arrays.held)
    path.write_bytes(held.getvalue())
    return len(held.getvalue())


def _rounded(array: np.ndarray) -> np.ndarray:
    if array.dtype != np.uint16:
        return array
    steps = np.array([PLACE_STEP] * 3 + [VALUE_STEP])
    return np.minimum((array + steps // 2) // steps * steps, 65_535).astype(np.uint16)


def _differences(array: np.ndarray) -> np.ndarray:
    """Return differences of rows, all first bytes before all second ones, as uint8."""
    rows = array.reshape(len(array), -1)
    steps = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]), rows.dtype))  # wraps, and so do their sums
    return np.ascontiguousarray(np.moveaxis(steps.view(np.uint8).reshape(*steps.shape, -1), 0, -1))


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
