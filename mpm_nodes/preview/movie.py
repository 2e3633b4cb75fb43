"""Pictures that play: animated PNG, WebP and GIF, MP4, and a page that any browser opens without a network."""

from __future__ import annotations

import base64
import html
import io
import itertools
import json
import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from mpm_nodes.data import MpmNodesError, OutputError
from mpm_nodes.graph.files.folder import refuse_foreign, replace_named

__all__ = ["MOVIES", "check_flipbook", "check_movie", "write_flipbook", "write_movie"]

MOVIES = (".mp4", ".png", ".webp", ".gif")
PAGES = (".html", ".htm")
MADE_BY = "mpm-nodes render"
"""What each movie says of itself, so that it may be written again."""
QUALITY = 88
"""Of pictures in a page or a WebP: 100 is the best."""
UNITS = {"webp": 1, "gif": 10}
"""What a picture's duration is a whole number of [ms]."""

Progress = Callable[[int, int], None]


def check_movie(path: Path) -> None:
    """Refuse, before anything is rendered, a movie that cannot be written.

    Raises:
        MpmNodesError: An unknown ending, or MP4 without PyAV.
        OutputError: Something that we did not write has that name.
    """
    if path.suffix.lower() not in MOVIES:
        raise MpmNodesError(f"movie {path}: the ending {path.suffix!r} is unknown; choose one of {', '.join(MOVIES)}")
    if path.suffix.lower() == ".mp4":
        _av()
    refuse_foreign(path, _is_movie)


def check_flipbook(path: Path) -> None:
    """Refuse, before anything is rendered, a page that cannot be written.

    Raises:
        MpmNodesError: Its ending is not that of a page.
        OutputError: Something that we did not write has that name.
    """
    if path.suffix.lower() not in PAGES:
        raise MpmNodesError(f"flipbook {path}: is a page of HTML; let its name end in {' or '.join(PAGES)}")
    refuse_foreign(path, _is_flipbook)


def _is_movie(old: bytes) -> bool:
    return MADE_BY.encode() in old


def _is_flipbook(old: bytes) -> bool:
    return _GENERATOR in old


def write_movie(images: Sequence[Path], path: Path, fps: float, progress: Progress | None = None) -> Path:
    """Write pictures of one size as a movie.

    Args:
        images: PNGs, in order.
        path: MP4 (H.264), or an animated PNG, WebP or GIF that plays over and over.
        fps: Pictures a second.
        progress: Called with (pictures done, pictures in all).

    Raises:
        MpmNodesError: An unknown ending, or MP4 without PyAV.
        OutputError: It cannot be written.
    """
    check_movie(path)
    with_progress = _counted(images, progress)
    try:
        data = _mp4(with_progress, fps) if path.suffix.lower() == ".mp4" else _animated(with_progress, path.suffix[1:], fps)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error}); free some space or choose another folder") from error
    return replace_named(path, data, _is_movie, make=True)


def _counted(images: Sequence[Path], progress: Progress | None) -> Any:
    """Yield the pictures as PIL images."""
    from PIL import Image

    for n, image in enumerate(images):
        with Image.open(image) as opened:
            yield opened.convert("RGB")
        if progress is not None:
            progress(n + 1, len(images))


def _animated(pictures: Any, kind: str, fps: float) -> bytes:
    from PIL.PngImagePlugin import PngInfo

    data, (first, *others) = io.BytesIO(), pictures
    options: dict[str, Any] = {"quality": QUALITY, "xmp": MADE_BY.encode()} if kind == "webp" else {}
    options |= {"comment": MADE_BY.encode()} if kind == "gif" else {}
    if kind == "png":
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_text("Software", MADE_BY)
    shown: Any = 1000.0 / fps
    if kind in UNITS:  # rounded so that the whole lasts as long as the shot
        ends = [UNITS[kind] * round((n + 1) * shown / UNITS[kind]) for n in range(1 + len(others))]
        shown = [end - begin for begin, end in itertools.pairwise([0, *ends])]
    first.save(data, kind.upper(), save_all=True, append_images=others, duration=shown, loop=0, **options)
    return data.getvalue()


def _mp4(pictures: Any, fps: float) -> bytes:
    av = _av()
    rate = Fraction(fps).limit_denominator(1001)
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
        path = Path(scratch) / "movie.mp4"  # not in memory: the index is moved to the front at the end
        _encode(av, pictures, path, rate)
        return path.read_bytes()


def _encode(av: Any, pictures: Any, path: Path, rate: Fraction) -> None:
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"}) as film:
        film.metadata["comment"] = MADE_BY
        stream = None
        for picture in pictures:
            even = picture.crop((0, 0, picture.width - picture.width % 2, picture.height - picture.height % 2))
            if stream is None:  # the format stores colours for two by two pixels
                stream = film.add_stream("libx264", rate=rate, options={"crf": "16", "preset": "slow"})
                stream.width, stream.height, stream.pix_fmt = even.width, even.height, "yuv420p"
            for packet in stream.encode(av.VideoFrame.from_image(even)):
                film.mux(packet)
        for packet in stream.encode():
            film.mux(packet)


def _av() -> Any:
    try:
        import av
    except ImportError:
        raise MpmNodesError(
            "movie: MP4 needs PyAV; install it with: pip install 'mpm-nodes[movie]', or write an animated .png or .webp"
        ) from None
    return av


def write_flipbook(images: Sequence[Path], labels: Sequence[str], path: Path, fps: float, title: str) -> Path:
    """Write one HTML page that holds all pictures, plays them and steps through them; it needs nothing else.

    Args:
        images: PNGs of one size, in order.
        labels: What is written below each.
        path: File to write.
        fps: Pictures a second at full speed.
        title: Heading.

    Raises:
        MpmNodesError: Its ending is not that of a page.
        OutputError: It cannot be written, or something that we did not write has that name.
    """
    from PIL import Image

    check_flipbook(path)
    shown = []
    for image in images:
        data = io.BytesIO()
        with Image.open(image) as opened:
            opened.convert("RGB").save(data, "WEBP", quality=QUALITY)
        shown.append("data:image/webp;base64," + base64.b64encode(data.getvalue()).decode())
    facts = json.dumps({"images": shown, "labels": list(labels), "fps": fps}).replace("<", "\\u003c")
    page = _PAGE.replace("TITLE", html.escape(title)).replace("FACTS", facts)
    return replace_named(path, page.encode(), _is_flipbook, make=True)


_GENERATOR = b'<meta name="generator" content="mpm-nodes">'
_PAGE = (
    f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">{_GENERATOR.decode()}<title>TITLE</title>
"""
    + """<style>
body { background: #1c1d1f; color: #ddd; font: 15px sans-serif; margin: 1.5em auto; max-width: 1280px; text-align: center }
img { max-width: 100%; image-rendering: auto } input[type=range] { width: 60% } button, select { font: inherit; margin: 0 .4em }
</style></head><body>
<h1 style="font-size:1.1em">TITLE</h1>
<img id="picture" alt="">
<p><button id="play">Pause</button><input id="place" type="range" min="0" value="0">
<select id="speed"><option>0.25</option><option>0.5</option><option selected>1</option><option>2</option></select>x
<span id="label"></span></p>
<p>Space plays and pauses, the arrow keys step.</p>
<script>
const facts = FACTS;
const get = id => document.getElementById(id);
let n = 0, playing = true, timer = 0;
get("place").max = facts.images.length - 1;
function show(k) {
  n = (k + facts.images.length) % facts.images.length;
  get("picture").src = facts.images[n]; get("place").value = n; get("label").textContent = facts.labels[n];
}
function run() {
  clearInterval(timer); get("play").textContent = playing ? "Pause" : "Play";
  if (playing) timer = setInterval(() => show(n + 1), 1000 / facts.fps / get("speed").value);
}
get("play").onclick = () => { playing = !playing; run(); };
get("speed").onchange = run;
get("place").oninput = event => { playing = false; run(); show(+event.target.value); };
document.onkeydown = event => {
  if (event.key === " ") { event.preventDefault(); playing = !playing; run(); }
  if (event.key === "ArrowRight") { playing = false; run(); show(n + 1); }
  if (event.key === "ArrowLeft") { playing = false; run(); show(n - 1); }
};
show(0); run();
</script></body></html>
"""
)
