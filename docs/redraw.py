"""Redraw the pictures of the pages, and keep in docs/pictures.json what each was made from.

python docs/redraw.py                       those whose graph or renderer has changed
python docs/redraw.py caramel toothpaste    all pictures of these shots, nodes or materials
python docs/redraw.py front/caramel.jpg     this picture
python docs/redraw.py --cooked DIR ...      caches of samples that lie in DIR/NAME are not cooked again
python docs/redraw.py --accept NAME ...     note pictures that were drawn by hand as made from what is there now
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
MANIFEST = DOCS / "pictures.json"
CARD = DOCS / "pictures"
"""Where `renderer.ENGINE.png` lies: a scene of all looks, which shows whether a renderer still draws as it did."""
CARD_SIZE = (360, 150)
TOLERANCE = {"splat": 0.5, "cycles": 2.0}
"""Mean difference of two cards, of 255, from which on a renderer draws in another way; the noise of Cycles differs by machine."""
FRONT_SIZE = (640, 480)
ON_THE_CARD = 29
"""Looks on the card: it tells how a renderer draws, and stays as it is when looks come."""
SAMPLES = 10
"""Of Cycles, a pixel: with its denoiser ten look as 24 do, in half the time."""
HERO_SIZE = (960, 540)
QUALITY = 86

TOPICS = {
    "foam": "shaving_foam uniform_smore toasted_smore pie spheres pachinko tendril threads",
    "viscoelastic": "twisted_sponge sponge_bullet foam_stream toothpaste viennetta scored_pie",
    "heat": "candied_apple hot_air hot_stream marshmallow_on_plate butter_on_pan lava caramel ice_in_water",
    "projection": "letters pool_at_rest",
    "directing": "footprints broken_chocolate ball_on_jelly floating_bodies stirred_batter",
    "surface_tension": "ellipse drop_impacts drops_on_ramps heated_cavity drops_on_plates candles candle_letters metal_drop honey "
    "soap_on_water tears_of_wine beads_on_string",
}
"""Folders of the sheets."""
STUDIES = {"dough_on_step": "directing"}
"""Samples whose study draws the sheet, and its folder."""
DIRECTING: dict[str, Any] = {
    "flakes_in_wind": ((0.9, 1.5, 6.3), (0.3, 0.85, 0.0), 1.5, (480, 300)),
    "letters_goal": ((0.15, 0.5, 1.75), (0.0, 0.3, 0.0), 1.4, (480, 300)),
    "piped_cream": None,
    "honey_jar": ((0.15, 0.3, 0.37), (-0.012, 0.078, 0.0), 2.05, (480, 480)),
    "pinned_jelly": ((0.55, 0.95, 1.6), (-0.05, 0.3, 0.0), 1.25, (480, 390)),
    "filled_bar": ((0.1, 0.19, 0.36), (0.0, 0.07, 0.0), 1.25, (480, 360)),
    "sand_heap": ((0.0, 0.42, 0.95), (0.0, 0.06, 0.0), 1.35, (480, 300)),
    "stone_in_mud": ((0.35, 0.55, 0.95), (0.0, 0.1, 0.0), 1.35, (480, 300)),
    "sink": ((0.45, 0.72, 0.62), (0.0, 0.07, 0.0), 1.45, (480, 360)),
}
"""Samples that `cook` cooks, in the folder directing: where their cameras stand and look [m], focal length in widths,
pixels; None: where `render` puts it."""
FRAMES = {
    "footprints": (1, 15, 33, 43),
    "flakes_in_wind": (7, 19, 31, 54),
    "sand_heap": (1, 13, 24, 54),
    "stone_in_mud": (1, 8, 13, 42),
    "letters_goal": (1, 32, 38, 56),
    "honey_jar": (30, 42, 54, 86),
}
"""Frames of sheets that are not those where most happens."""
FRONT = {
    "foam_stream": 36,
    "caramel": 64,
    "demo": 26,
    "hot_air": 11,
    "sponge_bullet": 5,
    "marshmallow_on_plate": 15,
    "twisted_sponge": 14,
    "toothpaste": 39,
    "viennetta": 54,
}
"""Frames of the README's thumbnails."""
HERO = ("settings.cell_size=0.003", "settings.end=60", "melt.time_scale=0.5")
"""What the README's movie changes in `hot_air`: finer, and at half its speed."""
IN_A_SET: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "toothpaste": ("kitchen", 38, ()),
    "piped_cream": ("dark", 65, ()),
    "caramel": ("kitchen", 64, ("settings.cell_size=0.002",)),
    "honey": ("kitchen", 40, ("settings.end=40",)),
    "hot_air": ("kitchen", 11, ("settings.cell_size=0.003", "settings.end=11", "melt.time_scale=0.5")),
    "twisted_sponge": ("kitchen", 12, ("settings.cell_size=0.00366", "settings.end=12", "floor_look.look=wood")),
    "foam_stream": ("kitchen", 36, ()),
    "uniform_smore": ("kitchen", 59, ("settings.end=59",)),
    "sponge_bullet": ("kitchen", 5, ("settings.cell_size=0.00402", "settings.end=5")),
    "butter_on_pan": ("kitchen", 40, ("settings.cell_size=0.002", "settings.end=40")),
    "viennetta": ("kitchen", 33, ("settings.cell_size=0.00026", "settings.end=33")),
}
"""Samples that docs/render.md shows in a set: its name, the frame, and what is changed in the graph."""
SET_SIZE, SET_SAMPLES = (1600, 900), 6
TALL = {"twisted_sponge": (1600, 1600), **dict.fromkeys(("foam_stream", "honey", "uniform_smore", "sponge_bullet"), (1600, 1200))}
"""Size of those that would be small in a wide picture."""
CLOSE = {
    "honey": ((0.109, 0.0843, 0.188), (0.0025, 0.022, 0.0), 2.36),
    "sponge_bullet": ((0.42, 0.22, -0.92), (0.02, 0.0, 0.0), 1.85),
    "butter_on_pan": ((0.05, 0.2, 0.30), (0.012, 0.0, -0.01), 1.75),
    "viennetta": ((0.055, 0.0335, 0.082), (0.019, 0.0093, 0.0), 1.5),
}
"""Where the camera stands and looks [m], and its focal length in widths, where the rule would leave more room for what is beside
the matter: handles, a pan, a belt, or the board that catches the bullet."""
FIRST_MOVIES = {"snow": (16, 32, 47), "pie": (17, 34, 51), "paste": (10, 20, 30)}
"""Frames of the strips of docs/first_movies.md."""
BY_HAND = {
    "blender_dialog.jpg": ("mpm_nodes/hosts/blender_addon/quick_operators.py", r"class MPM_OT_quick_dialog.*?\n\n\n"),
    "blender_nodes.jpg": ("mpm_nodes/hosts/blender_addon/operators.py", r"def start_graph.*?\n\n\n"),
}
"""Pictures of a window: what they show, and where it stands there."""
OF_THE_EDITOR = {
    "editor.jpg": "samples/demo.json",
    "editor/preview.jpg": "samples/hot_stream.json",
    **dict.fromkeys(("editor/cooking.jpg", "editor_view.jpg", "editor_heat.jpg", "editor_keys.jpg"), "docs/snowball.json"),
}
"""Pictures of its page, and the graphs that it shows."""


WITHOUT_A_GRAPH = (
    "ranks/bar_on_three_ranks.png",
    "directing/poured_sand.jpg",
    *(f"plots/{each.name}" for each in sorted((DOCS / "plots").glob("*.png"))),
)
"""Pictures of studies whose graph is not kept, and plots, which make_plots.py draws."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One picture of the pages.

    Attributes:
        path: Below docs.
        name: Shot, node or material.
        graph: Where its graph lies.
        text: What it is made from.
        engine: "cycles", "splat" or "window".
        command: What draws it.
    """

    path: str
    name: str
    graph: str
    text: str
    engine: str
    command: str


def pictures() -> dict[str, Drawn]:
    """Return all pictures that are redrawn, by their path below docs."""
    found = [*_of_samples(), *_of_first_movies(), *_of_the_reference(), *_of_blender()]
    return {drawn.path: drawn for drawn in found}


def _of_samples() -> Iterator[Drawn]:
    for topic, names in TOPICS.items():
        for name in names.split():
            yield _sample(f"{topic}/{name}.jpg", name, f"mpm-nodes sample {name} --engine cycles")
    for name, topic in STUDIES.items():
        yield _sample(f"{topic}/{name}.jpg", name, f"mpm-nodes sample {name} --study --engine cycles")
    for name in DIRECTING:
        yield _sample(f"directing/{name}.jpg", name, f"python docs/redraw.py {name}")
    yield _sample("demo.jpg", "demo", "mpm-nodes demo --engine cycles")
    for name, frame in FRONT.items():
        told = "demo" if name == "demo" else f"sample {name}"
        yield _sample(f"front/{name}.jpg", name, f"mpm-nodes {told} --engine cycles (frame {frame})")
    for name, (chosen, frame, changes) in IN_A_SET.items():
        wide, tall = TALL.get(name, SET_SIZE)
        way = f"--frames {frame}-{frame} --set {chosen} --size {wide}x{tall} --samples {SET_SAMPLES}"
        file = f"{name}.json" if name in FIRST_MOVIES else f"samples/{name}.json"
        words = " ".join([f"mpm-nodes cook {file} --out out/{name}", *(f"--set {text}" for text in changes)])
        command = f"python docs/redraw.py sets/{name}.jpg" if name in CLOSE else f"{words} && mpm-nodes render out/{name} {way}"
        if name in FIRST_MOVIES:
            yield Drawn(f"sets/{name}.jpg", name, "docs/first_movies.md", _block(f"{name}.json"), "cycles", command)
        else:
            yield _sample(f"sets/{name}.jpg", name, command)
    changed = " ".join(f"--set {text}" for text in HERO)
    yield _sample("movies/hare.webp", "hare", f"mpm-nodes sample hot_air --engine cycles {changed} (all frames)", "hot_air")


def _sample(path: str, name: str, command: str, graph: str = "") -> Drawn:
    file = f"samples/{graph or name}.json"
    return Drawn(path, name, file, (ROOT / file).read_text(), "cycles", command)


def _of_first_movies() -> Iterator[Drawn]:
    for name in FIRST_MOVIES:
        text = _block(f"{name}.json")
        command = f"mpm-nodes cook {name}.json --out {name} && mpm-nodes render {name} --engine cycles"
        yield Drawn(f"movies/{name}.jpg", name, "docs/first_movies.md", text, "cycles", command)


def _block(file: str) -> str:
    """Return the text of a file that docs/first_movies.md has its reader save."""
    page = (DOCS / "first_movies.md").read_text()
    return re.search(rf"<!-- file: {re.escape(file)} -->\n```\w*\n(.*?)```", page, re.S)[1]


def _of_the_reference() -> Iterator[Drawn]:
    import make_pictures

    for name, path in make_pictures.examples().items():
        command = f"python docs/make_pictures.py {name}"
        yield Drawn(f"pictures/nodes/{name}.jpg", name, f"docs/examples/{path.name}", path.read_text(), "splat", command)
    from mpm_nodes.materials.library import LIBRARY

    for name in LIBRARY:
        text = json.dumps(make_pictures.swatch(name).to_json())
        command = f"python docs/make_pictures.py {name}"
        yield Drawn(f"pictures/materials/{name}.jpg", name, "docs/make_pictures.py", text, "cycles", command)


def _of_blender() -> Iterator[Drawn]:
    presets = ROOT / "mpm_nodes/hosts/blender_addon/quick"
    text = "".join(path.read_text() for path in sorted(presets.glob("*.json")))
    command = "python docs/make_blender_pictures.py"
    yield Drawn("blender_quick.jpg", "blender_quick", "mpm_nodes/hosts/blender_addon/quick", text, "window", command)
    script = re.search(r"<!-- blender: tested -->(.*?)\n```\n", (DOCS / "blender.md").read_text(), re.S)[1]
    yield Drawn("blender_shot.jpg", "blender_shot", "docs/blender.md", script, "window", f"{command} shot")
    for path, (graph, part) in BY_HAND.items():
        yield Drawn(path, Path(path).stem, graph, re.search(part, (ROOT / graph).read_text(), re.S)[0], "window", "by hand")
    for path, graph in OF_THE_EDITOR.items():
        command = "python docs/make_editor_pictures.py"
        yield Drawn(path, Path(path).stem, graph, (ROOT / graph).read_text(), "window", command)


# ---------------------------------------------------------------- what is stale
def digest(text: str | bytes) -> str:
    """Return a short digest; of a graph without places and comments of its nodes."""
    if isinstance(text, str) and text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
            for each in document["nodes"].values():
                for unseen in ("position", "comment"):
                    each.pop(unseen, None)
            text = json.dumps(document, sort_keys=True)
        except (KeyError, ValueError):
            pass  # several documents, or none
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()[:16]


def facts(drawn: Drawn) -> dict[str, str]:
    """Return what the manifest keeps of a picture that is drawn now."""
    import mpm_nodes

    card = CARD / f"renderer.{drawn.engine}.png"
    return {
        "graph": drawn.graph,
        "graph_digest": digest(drawn.text),
        "engine": drawn.engine,
        "renderer_digest": digest(card.read_bytes()) if card.is_file() else "",
        "version": mpm_nodes.__version__,
        "command": drawn.command,
    }


def manifest() -> dict[str, dict[str, str]]:
    """Return what the pictures that lie there were made from, by their path below docs."""
    return json.loads(MANIFEST.read_text()) if MANIFEST.is_file() else {}


def stale() -> dict[str, str]:
    """Return why each picture that must be redrawn must be, by its path below docs."""
    held, found = manifest(), {}
    for path, drawn in pictures().items():
        known, now = held.get(path), facts(drawn)
        if known is None or not (DOCS / path).is_file():
            found[path] = "is not there"
        elif known["graph_digest"] != now["graph_digest"]:
            found[path] = f"{drawn.graph} has changed"
        elif known["renderer_digest"] != now["renderer_digest"]:
            found[path] = f"the renderer {drawn.engine} draws in another way"
    return found


def note(drawn: Drawn) -> None:
    """Keep what a picture was made from."""
    held = manifest() | {drawn.path: facts(drawn)}
    MANIFEST.write_text(json.dumps({path: held[path] for path in sorted(held)}, indent=1) + "\n")


# ---------------------------------------------------------------- the renderers
def card(engine: str, scratch: Path) -> Any:
    """Return the picture of a scene of all looks by a renderer, as a PIL image."""
    from PIL import Image

    from mpm_nodes import Graph
    from mpm_nodes.graph.cook.executor import execute
    from mpm_nodes.materials.looks import LOOKS
    from mpm_nodes.preview.pictures import Picture, render_cache
    from mpm_nodes.preview.scene import look

    graph, bodies = Graph(cell_size=0.1, start=1, end=1), []
    floor = graph.add("collide_plane", "floor")
    bodies.append(graph.add("collider_look", "tiles", collider=floor, look="checker"))
    for n, name in enumerate(list(LOOKS)[:ON_THE_CARD]):
        body = graph.add("collide_sphere" if n % 2 else "collide_box", f"body_{n}", centre=(0.3 * (n % 10), 0.1, -0.3 * (n // 10)),
                         **({"radius": 0.1} if n % 2 else {"size": (0.18, 0.18, 0.18)}))  # fmt: skip
        bodies.append(graph.add("collider_look", f"look_{n}", collider=body, look=name))
    matter = graph.add("material_library", "matter", name="honey")
    ball = graph.add("emit_sphere", "ball", material=matter, radius=0.2, centre=(1.35, 0.2, 0.5))
    surface = graph.add("surface_particles", "surface", particles=ball)
    graph.add("write_cache", "cache", particles=ball, mesh=surface["mesh"], colliders=bodies)
    folder = execute(graph, out=scratch).revision_folder
    import numpy as np

    view = look(np.array([1.35, 1.5, 4.0]), np.array([1.35, 0.0, -0.1]), 1.25)
    made = render_cache(folder, [1], scratch / "card", engine, Picture(CARD_SIZE, 64, camera=view))
    with Image.open(made.images[0]) as image:
        return image.convert("RGB")


def difference(engine: str, scratch: Path) -> float:
    """Return the mean difference between what a renderer draws and the card that is kept, of 255."""
    import numpy as np
    from PIL import Image

    with Image.open(CARD / f"renderer.{engine}.png") as kept:
        before = np.asarray(kept.convert("RGB"), float)
    return float(np.abs(np.asarray(card(engine, scratch), float) - before).mean())


# ---------------------------------------------------------------- drawing
def draw(names: list[str], cooked: Path | None) -> None:
    """Draw all pictures of some shots, nodes or materials."""
    every = pictures()
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as place:
        for name in names:
            wanted = [drawn for drawn in every.values() if name in (drawn.name, drawn.path)]
            scratch = Path(place) / name
            scratch.mkdir(parents=True)
            for maker in dict.fromkeys(map(_maker, wanted)):  # a shot and a material may have one name
                for drawn, image in maker([each for each in wanted if _maker(each) is maker], scratch, cooked):
                    if image is not None:
                        (DOCS / drawn.path).parent.mkdir(parents=True, exist_ok=True)
                        image.save(DOCS / drawn.path, quality=QUALITY, optimize=True)
                    note(drawn)
                    print(f"docs/{drawn.path}  {(DOCS / drawn.path).stat().st_size / 1000:.0f} kB", flush=True)


def _maker(drawn: Drawn) -> Callable[..., Iterator[tuple[Drawn, Any]]]:
    if drawn.path.startswith("pictures/"):
        return _draw_reference
    if drawn.path.startswith("sets/"):
        return _draw_in_a_set
    if drawn.name in FIRST_MOVIES and drawn.path.startswith("movies/"):
        return _draw_strip
    if drawn.engine == "window":
        return _draw_blender
    return _draw_hero if drawn.name == "hare" else _draw_study if drawn.name in STUDIES else _draw_sample


def _draw_study(wanted: list[Drawn], scratch: Path, cooked: Path | None) -> Iterator[tuple[Drawn, Any]]:
    """Draw the sheet of a study."""
    from PIL import Image

    (drawn,) = wanted
    _command(*drawn.command.split()[1:], "--out", str(scratch / "out"), "--events", "none")
    (path,) = scratch.glob("out/*/contact_sheet.*.png")
    with Image.open(path) as sheet:
        yield drawn, sheet.convert("RGB")


def _draw_reference(wanted: list[Drawn], scratch: Path, cooked: Path | None) -> Iterator[tuple[Drawn, Any]]:
    import make_pictures

    for drawn in wanted:
        (make_pictures.draw_example if "/nodes/" in drawn.path else make_pictures.draw_swatch)(drawn.name)
        yield drawn, None


def _draw_blender(wanted: list[Drawn], scratch: Path, cooked: Path | None) -> Iterator[tuple[Drawn, Any]]:
    for drawn in wanted:
        if drawn.command == "by hand":
            raise SystemExit(f"docs/{drawn.path}: is drawn by hand; put the new one there, then: redraw.py --accept {drawn.name}")
        subprocess.run([sys.executable, str(ROOT / drawn.command.split()[1]), *drawn.command.split()[2:]], check=True)
        yield drawn, None


def _draw_strip(wanted: list[Drawn], scratch: Path, cooked: Path | None) -> Iterator[tuple[Drawn, Any]]:
    """Draw a first movie: the files of its page, cooked, three frames side by side."""
    from make_pictures import close_view
    from PIL import Image

    (drawn,) = wanted
    _cook_sample(f"{drawn.name}.json", (), scratch, None)
    frames = FIRST_MOVIES[drawn.name]
    made = _rendered(scratch / "out", frames, FRONT_SIZE, view=close_view(scratch / "out", frames, "surface"))
    tiles = [image.resize((480, 360), Image.Resampling.LANCZOS) for image in made]
    strip = Image.new("RGB", (3 * 484 - 4, 360), (255, 255, 255))
    for n, tile in enumerate(tiles):
        strip.paste(tile, (n * 484, 0))
    yield drawn, strip


def _draw_sample(wanted: list[Drawn], scratch: Path, cooked: Path | None) -> Iterator[tuple[Drawn, Any]]:
    """Draw the sheet and the thumbnail of a sample from one cook."""
    from PIL import Image

    from mpm_nodes.commands.demo import contact_sheet

    name = wanted[0].name
    folder, sample = _cook_sample(name, (), scratch, cooked), _sample_of(name)
    for drawn in wanted:
        if drawn.path.startswith("front/"):
            yield drawn, _rendered(folder, [FRONT[name]], FRONT_SIZE, sample)[0]
            continue
        path = contact_sheet(
            folder, argparse.Namespace(engine="cycles", events="none"), FRAMES.get(name), _picture(sample)._replace(samples=SAMPLES)
        )
        with Image.open(path) as sheet:
            yield drawn, sheet.convert("RGB")


def _draw_in_a_set(wanted: list[Drawn], scratch: Path, cooked: Path | None) -> Iterator[tuple[Drawn, Any]]:
    """Draw a picture in a set, whose camera is placed by rule, or stands close."""
    from PIL import Image

    from mpm_nodes.preview.pictures import Picture, render_cache
    from mpm_nodes.preview.scene import look

    (drawn,) = wanted
    chosen, frame, changes = IN_A_SET[drawn.name]
    name = f"{drawn.name}.json" if drawn.graph == "docs/first_movies.md" else drawn.name
    folder = _cook_sample(name, changes, scratch, cooked / "sets" if cooked else None)
    picture = Picture(TALL.get(drawn.name, SET_SIZE), SET_SAMPLES, set_name=chosen)
    if drawn.name in CLOSE:
        picture = picture._replace(camera=look(*CLOSE[drawn.name]))
    made = render_cache(folder, [frame], scratch / "images", picture=picture)
    with Image.open(made.images[0]) as image:
        yield drawn, image.convert("RGB")


def _draw_hero(wanted: list[Drawn], scratch: Path, cooked: Path | None) -> Iterator[tuple[Drawn, Any]]:
    """Draw the README's movie."""
    from mpm_nodes.preview.movie import write_movie
    from mpm_nodes.preview.pictures import frames_of

    (drawn,) = wanted
    folder = _cook_sample("hot_air", HERO, scratch, cooked / "hero" if cooked else None)
    images = scratch / "images"
    _rendered(folder, frames_of(folder), HERO_SIZE, _sample_of("hot_air"), images)
    (DOCS / drawn.path).unlink(missing_ok=True)  # may be of a version that left no mark of its own
    write_movie(sorted(images.glob("frame.*.png")), DOCS / drawn.path, 24.0)
    yield drawn, None


def _cook_sample(name: str, changes: tuple[str, ...], scratch: Path, cooked: Path | None) -> Path:
    """Return the revision folder of a sample, or of a file of docs/first_movies.md, cooked where it is not there already."""
    from mpm_nodes.graph.revisions.revision import latest_revision

    for there in () if cooked is None else (cooked / name, cooked):
        if list(there.glob("r0*")):
            return latest_revision(there)
    told = ["demo"] if name == "demo" else ["sample", name]
    if name.endswith(".json"):
        for file in re.findall(r"<!-- file: (\S+) -->", (DOCS / "first_movies.md").read_text()):
            (scratch / file).write_text(_block(file))
        told = ["cook", str(scratch / name)]
    elif name in DIRECTING:
        told = ["cook", f"{ROOT}/samples/{name}.json"]
    sets = [word for text in changes for word in ("--set", text)]
    _command(*told, "--out", str(scratch / "out"), "--events", "none", *sets)
    return latest_revision(scratch / "out")


def _command(*words: str) -> None:
    """Run the command line; figures that miss do not matter here."""
    from mpm_nodes.cli import main

    if main(list(words)) > 1:
        raise SystemExit(f"mpm-nodes {' '.join(words)}: failed")


def _sample_of(name: str) -> Any:
    """Return a sample as the command knows it, with its camera; None for the demo."""
    if name in DIRECTING:
        return argparse.Namespace(colour_by="", show=None, white=0.0, camera=_camera(name))
    from mpm_nodes.packaged_samples import samples_folder

    samples_folder()
    from mpm_nodes_samples.shots import index

    return index.SAMPLES.get(name)


def _camera(name: str) -> Any:
    """Return the camera of a directing sample; None for that of `render`."""
    if DIRECTING[name] is None:
        return None
    from mpm_nodes.packaged_samples import samples_folder

    samples_folder()
    from mpm_nodes_samples.shots.entries import Camera

    return Camera(*DIRECTING[name])


def _picture(sample: Any) -> Any:
    """Return how a sample is looked at."""
    from mpm_nodes.preview.pictures import Picture
    from mpm_nodes_samples.shots.run import picture_of

    return Picture() if sample is None else picture_of(sample)


def _rendered(
    folder: Path, frames: Any, size: tuple[int, int], sample: Any = None, out: Path | None = None, view: Any = None
) -> list[Any]:
    """Return pictures of matter as matter: with a sample's camera, farther away where the picture is less high."""
    from PIL import Image

    from mpm_nodes.preview.pictures import render_cache
    from mpm_nodes.preview.scene import View

    picture = _picture(sample)._replace(colour_by="", samples=SAMPLES)
    if view is not None:
        picture = picture._replace(camera=view)
    elif isinstance(picture.camera, View):
        share = min(1.0, size[1] / size[0] * picture.size[0] / picture.size[1])
        picture = picture._replace(camera=dataclasses.replace(picture.camera, focal=picture.camera.focal * share))
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
        made = render_cache(folder, list(frames), out or Path(scratch), "cycles", picture._replace(size=size), print_progress, True)
        found = []
        for path in made.images:
            with Image.open(path) as image:
                found.append(image.convert("RGB"))
        return found


def print_progress(done: int, total: int) -> None:
    """Say how far the pictures are."""
    if total > 4:
        print(f"  {done} of {total}", file=sys.stderr, flush=True)


def main() -> None:
    """Draw what was asked for, or what is stale; redraw the cards of the renderers first where they have changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="shots, nodes, materials or pictures; none: what is stale")
    parser.add_argument("--cooked", type=Path, metavar="DIR", help="where cooked samples lie, each below its name")
    parser.add_argument("--accept", action="store_true", help="draw nothing, and note the pictures as they are")
    parser.add_argument("--list", action="store_true", help="tell what is stale, and why")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"docs/{path}: {why}" for path, why in stale().items()))
        return
    every = pictures()
    strangers = set(args.names) - {drawn.name for drawn in every.values()} - set(every)
    if strangers:
        raise SystemExit(f"no picture of: {', '.join(sorted(strangers))}")
    if args.accept:
        for drawn in every.values():
            if {drawn.name, drawn.path} & set(args.names):
                note(drawn)
        return
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as place:
        for engine in ("splat", "cycles"):
            path = CARD / f"renderer.{engine}.png"
            if not path.is_file() or difference(engine, Path(place) / engine) > TOLERANCE[engine]:
                card(engine, Path(place) / f"{engine}_new").save(path, optimize=True)
    draw(args.names or list(dict.fromkeys(every[path].name for path in stale())), args.cooked)


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS))
    main()
