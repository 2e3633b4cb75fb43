"""Cook the examples of all nodes and the swatches of all materials, and draw them: the pictures of the reference.

python docs/make_pictures.py [NAME ...]      (all without names; some ten minutes; what it writes is kept in the repository)
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS / "examples"
PICTURES = DOCS / "pictures"
TILE = (320, 240)
QUALITY = 85
"""Of the JPEGs: a strip of three tiles takes some 25 kB."""


@dataclass(frozen=True)
class Look:
    """How an example is drawn.

    Attributes:
        colour_by: Particle attribute that colours the points; their own colours when empty.
        volume: Grid that is drawn instead of points, summed along z.
        show: "points" or "surface", where there are both.
        engine: Who draws: the built-in renderer, which every machine has, or Cycles.
    """

    colour_by: str = ""
    volume: str = ""
    show: str = "points"
    engine: str = "splat"


LOOKS = {
    "attribute_volume": Look(volume="temperature"),
    "density_volume": Look(volume="density"),
    "velocity_volume": Look(volume="vel"),
    "surface_particles": Look(show="surface"),
    "sampled_surface": Look(colour_by="surface_tension", show="surface"),
    "write_cache": Look(show="surface"),
    "set_looks": Look(show="surface"),
    "collider_look": Look(show="surface"),
    "rest_positions": Look(show="surface"),
    "retime_points": Look(colour_by="velocity"),
    "air": Look(colour_by="temperature"),
    "heat_field": Look(colour_by="temperature"),
    "set_temperature": Look(colour_by="temperature"),
    "collider_temperature": Look(colour_by="temperature"),
    "collider_heat_flux": Look(colour_by="temperature"),
    "material_over_attribute": Look(colour_by="runny"),
    "material_over_temperature": Look(colour_by="temperature"),
    "material_thermal": Look(colour_by="temperature"),
    "material_surfactant": Look(colour_by="concentration"),
    "tension_field": Look(colour_by="velocity"),
    "field_moving": Look(colour_by="passed"),
    "field_ramp": Look(colour_by="stiffness_scale"),
    "field_shape": Look(colour_by="stiffness_scale"),
    "set_attribute": Look(colour_by="stiffness_scale"),
    "update_attribute": Look(colour_by="stiffness_scale"),
    "vary_tear_strength": Look(colour_by="tear_scale"),
    "measure_density": Look(colour_by="density"),
}
"""Examples that are not drawn as points in their own colours."""


# ---------------------------------------------------------------- nodes
def examples() -> dict[str, Path]:
    """Return the graph file of every node's example by the node's name."""
    return {path.stem: path for path in sorted(EXAMPLES.glob("*.json"))}


def draw_example(name: str) -> Path:
    """Cook a node's example and draw its first, middle and last frame; return the picture."""
    from mpm_nodes.graph.document.document import load_graph

    settings = load_graph(examples()[name]).settings
    frames = [settings.start, (settings.start + settings.end) // 2, settings.end]
    look = LOOKS.get(name, Look())
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
        folder = cooked(examples()[name], Path(scratch))
        tiles = volume_tiles(folder, frames, look.volume) if look.volume else tiles_of(folder, frames, look)
        return save(strip(tiles, [f"frame {frame}" for frame in frames]), PICTURES / "nodes" / f"{name}.jpg")


def cooked(graph: Path, out: Path) -> Path:
    """Cook a graph file with the command line's own function; return the revision folder."""
    from mpm_nodes.cli import main

    status = main(["cook", str(graph), "--out", str(out), "--events", "none"])
    if status:
        raise RuntimeError(f"{graph}: the cook ended with exit code {status}")
    return out / "r001"


def tiles_of(folder: Path, frames: Sequence[int], look: Look, view: Any = None) -> list[Any]:
    """Return pictures of frames."""
    from PIL import Image

    from mpm_nodes.preview.pictures import Picture, render_cache

    view = view or close_view(folder, frames, look.show)
    picture = Picture((2 * TILE[0], 2 * TILE[1]), colour_by=look.colour_by, camera=view, show=look.show)
    result = render_cache(folder, frames=frames, out=folder / "tiles", engine=look.engine, picture=picture)
    tiles = []
    for path in result.images:
        with Image.open(path) as image:
            tiles.append(image.convert("RGB").resize(TILE, Image.Resampling.LANCZOS))
    return tiles


def close_view(folder: Path, frames: Sequence[int], show: str) -> Any:
    """Return the camera that has the box of all that is seen just inside its picture."""
    from mpm_nodes.preview.pictures import find_root
    from mpm_nodes.preview.scene import look, open_scene

    scene = open_scene(find_root(folder))
    boxes = [box for frame in frames if (box := scene.shapes(frame, show).without_floor().bounds()) is not None]
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    corners = np.array([[(low, high)[n >> axis & 1][axis] for axis in range(3)] for n in range(8)])
    middle, direction, focal = 0.5 * (low + high), np.array([0.35, 0.4, 1.0]), 1.5
    for distance in np.geomspace(0.3, 30.0, 200) * np.linalg.norm(high - low):
        view = look(middle + distance * direction / np.linalg.norm(direction), middle, focal)
        seen = (corners - view.eye) @ np.stack([view.right, view.up, view.forward]).T
        if seen[:, 2].min() > 0.0 and (np.abs(seen[:, :2] / seen[:, 2:] * focal) < (0.46, 0.33)).all():
            return view
    return view


def volume_tiles(folder: Path, frames: Sequence[int], grid: str) -> list[Any]:
    """Return pictures of a VDB grid, looked at along z: the mean of what is not 0, vectors by their length and as arrows."""
    boards = [(low, columns(volume)) for low, volume in (grid_of(folder, frame, grid) for frame in frames)]
    first = np.min([low for low, _ in boards], axis=0)
    last = np.max([low + board.shape[:2] for low, board in boards], axis=0)
    seen = [np.linalg.norm(board, axis=-1) for _, board in boards]
    least = min(each[each > 0.0].min() for each in seen) if boards[0][1].shape[-1] == 1 else 0.0
    most = max(each.max() for each in seen)
    tiles = []
    for low, board in boards:
        whole = np.zeros((*(last - first), board.shape[-1]))
        x, y = low - first
        whole[x : x + board.shape[0], y : y + board.shape[1]] = board
        tiles.append(board_tile(whole, least, most))
    return tiles


def grid_of(folder: Path, frame: int, grid: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest voxel (x, y) of a frame's grid, and its values (X, Y, Z, components)."""
    from usd_io.openvdb_module import find_openvdb

    (path,) = folder.rglob(f"*{frame:04d}.vdb")
    volume = find_openvdb().read(str(path), grid)
    low, high = (np.array(corner) for corner in volume.evalActiveVoxelBoundingBox())
    components = (3,) if volume.valueTypeName.startswith("vec") else ()
    values = np.zeros((*(high - low + 1), *components))
    volume.copyToArray(values, ijk=tuple(int(k) for k in low))
    return low[:2], values if components else values[..., None]


def columns(values: np.ndarray) -> np.ndarray:
    """Return the mean along z of what is not 0, (X, Y, components)."""
    weight = np.maximum(values.any(axis=3).sum(axis=2), 1)
    return values.sum(axis=2) / weight[..., None]


def board_tile(board: np.ndarray, least: float, most: float) -> Any:
    """Return a tile of values (X, Y, components) between two bounds, y upwards; three components are arrows, too."""
    from PIL import Image, ImageDraw

    length = np.linalg.norm(board, axis=-1)
    share = np.where(length > 0.0, 0.25 + 0.75 * (length - least) / max(most - least, 1e-9), 0.0).T[::-1]
    heat = np.stack([np.clip(share * 2.2, 0, 1), np.clip(share * 1.6 - 0.5, 0, 1), np.clip(share * 3.0 - 2.0, 0, 1)], axis=-1)
    dark = np.array([28, 29, 31]) / 255.0
    pixels = np.where(share[..., None] > 0.0, heat, dark)
    factor = max(1, int(min(TILE[0] / board.shape[0], TILE[1] / board.shape[1])))
    size = (board.shape[0] * factor, board.shape[1] * factor)
    image = Image.fromarray((255.0 * pixels).astype(np.uint8)).resize(size, Image.Resampling.BICUBIC)
    tile = Image.new("RGB", TILE, (28, 29, 31))
    corner = np.array([(TILE[0] - size[0]) // 2, TILE[1] - size[1]])
    tile.paste(image, tuple(int(k) for k in corner))
    if board.shape[-1] == 3:
        pen, gap = ImageDraw.Draw(tile), max(1, round(20 / factor))
        for i, j in np.argwhere(length > 0.02 * most):
            if i % gap == gap // 2 and j % gap == gap // 2:
                start = corner + factor * np.array([i + 0.5, board.shape[1] - j - 0.5])
                arrow(pen, start, board[i, j, :2] * (1.0, -1.0) * 1.5 * gap * factor / most)
    return tile


def arrow(pen: Any, start: np.ndarray, step: np.ndarray) -> None:
    """Draw an arrow of pixels, dark so that it is seen on warm colours."""
    end, length = start + step, float(np.linalg.norm(step))
    if length < 2.0:
        return
    along = step / length
    across = np.array([-along[1], along[0]])
    ink = (20, 60, 140)
    pen.line([tuple(start), tuple(end)], fill=ink, width=2)
    head = min(6.0, 0.6 * length)
    pen.polygon(
        [tuple(end + 2.0 * along), *(tuple(end - head * along + side * head * 0.6 * across) for side in (-1.0, 1.0))], fill=ink
    )


# ---------------------------------------------------------------- materials
@dataclass(frozen=True)
class Stand:
    """How large the bodies of a swatch are, and how heavy: matter of the kitchen is not looked at by the metre.

    Attributes:
        size: Edge of the falling ball's box [m].
        gravity: Acceleration downwards [m/s^2].
    """

    size: float = 0.3
    gravity: float = 9.81

    @property
    def seconds(self) -> float:
        """How long the swatch lasts [s]: bodies of every size fall as many times their own height."""
        return (self.size / 0.3 * 9.81 / self.gravity) ** 0.5


STANDS = {"herschel_bulkley": Stand(0.1), "oldroyd_b": Stand(0.1, 0.981)}
"""By law, where it is not the usual one: foams and pastes of Y15 and R15, the latter under the gravity of their source."""


def stand_of(name: str) -> Stand:
    """Return how a material of the library is looked at."""
    from mpm_nodes.materials.library import LIBRARY

    return STANDS.get(LIBRARY[name].law, Stand())


def swatch(name: str) -> Any:
    """Return the graph of a material's swatch: a ball that falls, a bar that is stretched by half, a column that slumps."""
    from mpm_nodes import Graph

    stand = stand_of(name)
    a = stand.size
    graph = Graph(cell_size=a / 6.0, start=1, end=25)
    matter = graph.add("material_library", "matter", name=name)
    graph.add("emit_sphere", "ball", material=matter, radius=a / 2, centre=(-2.4 * a, 1.1 * a, 0.0))
    graph.add("emit_box", "bar", material=matter, size=(1.4 * a, 0.5 * a, 0.5 * a), centre=(0.0, 1.2 * a, 0.0))
    graph.add("emit_box", "column", material=matter, size=(0.7 * a, 1.6 * a, 0.7 * a), centre=(2.4 * a, 0.8 * a, 0.0))
    graph.add("collide_plane", "ground", rule="sticky", shown_size=12.0 * a)
    for side, sign in (("left", -1.0), ("right", 1.0)):
        graph.add("collide_box", side, name=side, rule="sticky", clamp=True, size=(0.3 * a, 0.6 * a, 0.6 * a))
        for frame, x in ((1, 0.6), (25, 0.85)):
            graph.key(f"{side}.centre", frame, (sign * x * a, 1.2 * a, 0.0))
    graph.add(
        "solve",
        "solve",
        sources=["ball", "bar", "column"],
        colliders=["ground", "left", "right"],
        gravity=(0.0, -stand.gravity, 0.0),
        time_scale=stand.seconds,
    )
    graph.add("surface_particles", "surface", particles=graph["solve"]["particles"])
    for name, look in (("ground", "checker"), ("left", "steel"), ("right", "steel")):
        graph.add("collider_look", f"{name}_look", collider=name, look=look)
    bodies = ["ground_look", "left_look", "right_look"]
    graph.add("write_cache", "cache", particles=graph["solve"]["particles"], mesh=graph["surface"]["mesh"], colliders=bodies)
    return graph


def draw_swatch(name: str) -> Path:
    """Cook a material's swatch and draw it at three frames; return the picture."""
    from mpm_nodes.preview.scene import look

    a = stand_of(name).size
    frames = (7, 13, 25)
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
        path = Path(scratch) / "swatch.json"
        swatch(name).save(path)
        view = look(np.array([0.0, 2.6, 8.6]) * a, np.array([0.0, 0.72, 0.0]) * a, 1.35)
        tiles = tiles_of(cooked(path, Path(scratch) / "out"), frames, Look(show="surface", engine="cycles"), view)
        tiles = [tile.crop((0, 50, TILE[0], TILE[1] - 40)) for tile in tiles]
        return save(strip(tiles, ["", "", ""]), PICTURES / "materials" / f"{name}.jpg")


# ---------------------------------------------------------------- pictures
def strip(tiles: Sequence[Any], labels: Sequence[str]) -> Any:
    """Return tiles beside each other, with their labels."""
    from PIL import Image, ImageDraw, ImageFont

    gap = 4
    width, height = tiles[0].size
    sheet = Image.new("RGB", (len(tiles) * (width + gap) - gap, height), (255, 255, 255))
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=14)
    for n, (tile, label) in enumerate(zip(tiles, labels, strict=True)):
        sheet.paste(tile, (n * (width + gap), 0))
        if label:
            pen.text((n * (width + gap) + 6, 4), label, fill=(20, 20, 22), font=font, stroke_width=2, stroke_fill=(255, 255, 255))
    return sheet


def save(image: Any, path: Path) -> Path:
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, quality=QUALITY, optimize=True)
    return path


def wanted(names: Sequence[str]) -> list[tuple[str, Callable[[str], Path]]]:
    """Return what is to be drawn, each with its function; all without names."""
    from mpm_nodes.materials.library import LIBRARY

    every = [*((name, draw_example) for name in examples()), *((name, draw_swatch) for name in LIBRARY)]
    strangers = set(names) - {name for name, _ in every}
    if strangers:
        raise SystemExit(f"no example or material: {', '.join(sorted(strangers))}")
    return [(name, draw) for name, draw in every if not names or name in names]


if __name__ == "__main__":
    failed = []
    for name, draw in wanted(sys.argv[1:]):
        begin, work = time.perf_counter(), time.process_time()
        try:
            made = draw(name)
        except RuntimeError as error:
            failed.append(str(error))
            continue
        took = f"{time.perf_counter() - begin:.1f} s, {time.process_time() - work:.1f} s of processor"
        print(f"{made.relative_to(DOCS)}  {made.stat().st_size / 1000:.0f} kB  {took}", flush=True)
    if failed:
        raise SystemExit("\n".join(failed))
