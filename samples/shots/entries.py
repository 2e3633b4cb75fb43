"""What a sample is: its graph, its two sizes, and its camera."""

from __future__ import annotations

from dataclasses import dataclass

from mpm_nodes.materials.black_body import WHITE


@dataclass(frozen=True)
class PaperSize:
    """What a source states about its own run, and what turns the sample's graph into it.

    Attributes:
        particles: Particles at the start, as the sample's graph should have them; 0 where none are stated.
        minutes: Its minutes a frame (of 1/30 s), on eight cores; 0 where none are stated.
        overrides: Changes of knobs and settings, as `--set` takes them.
        without: Nodes that are taken out.
        still: Streams that are there as a whole from the start: the solve takes their templates as sources.
        machine: What it ran on.
        share: 1/30 s over the duration of a frame here.
        sheet: Frames of the contact sheet; some of all when there are none.
        step: Its seconds a substep; 0 where none are stated.
    """

    particles: int
    minutes: float
    overrides: tuple[str, ...]
    without: tuple[str, ...] = ()
    still: tuple[str, ...] = ()
    machine: str = "8 cores"
    share: float = 1.0
    sheet: tuple[int, ...] = ()
    step: float = 0.0


@dataclass(frozen=True)
class Camera:
    """How a sample is looked at.

    Attributes:
        eye: Where the camera stands [m].
        target: What it looks at [m].
        focal: Focal length, in picture widths.
        size: Width and height of a picture in pixels.
    """

    eye: tuple[float, float, float]
    target: tuple[float, float, float]
    focal: float
    size: tuple[int, int]


@dataclass(frozen=True)
class Sample:
    """One packaged sample.

    Attributes:
        name: What the command calls it; its graph is NAME.json.
        doc: One line on what is seen.
        source: Figure of the source that it follows.
        paper: Its large size; None where the source states none.
        show: What the contact sheet draws: "surface", or "points" where the surface hides what is inside.
        camera: The camera of the pictures; the cache's own when None.
        colour_by: Attribute that colours the matter, with a legend; none when empty.
        white: Luminance that its pictures show as white [cd/m^2], where its matter glows.
    """

    name: str
    doc: str
    source: str
    paper: PaperSize | None
    show: str = "surface"
    camera: Camera | None = None
    colour_by: str = ""
    white: float = WHITE
