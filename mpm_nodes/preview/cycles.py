"""Blender's Cycles as renderer: it runs in a child process, since it can crash or hang and its USD library must not meet ours."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes import children
from mpm_nodes.data import MpmNodesError
from mpm_nodes.materials.black_body import LUMINANCE_FIT
from mpm_nodes.materials.looks import LOOKS, Look, find_look
from mpm_nodes.preview.colour_by import STOPS
from mpm_nodes.preview.exposures import CHECKER_SHARE, FADE, SKY, SKY_SHARES, Backdrop, Exposure
from mpm_nodes.preview.scene import Scene, View
from mpm_nodes.preview.sets import FOCUS, FOOT, PLATE_LOOK, RIM, Dressing, edge_behind

__all__ = ["EngineMissing", "blender_problem", "render"]

_BLENDER_SCRIPT = Path(__file__).with_name("blender_script.py")
_START_SECONDS, _SECONDS_PER_FRAME = 120.0, 600.0
_DEBIAN = {
    "libX11": "libx11-6",
    "libXrender": "libxrender1",
    "libXfixes": "libxfixes3",
    "libXi": "libxi6",
    "libXxf86vm": "libxxf86vm1",
    "libxkbcommon": "libxkbcommon0",
    "libSM": "libsm6",
    "libICE": "libice6",
    "libGL": "libgl1",
    "libEGL": "libegl1",
    "libXext": "libxext6",
    "libgomp": "libgomp1",
}


class EngineMissing(MpmNodesError):
    """The wanted renderer cannot run on this machine."""


def render(
    scene: Scene,
    wanted: Sequence[Exposure],
    around: Backdrop,
    how: Any,
    done: Callable[[Exposure, Any], None],
) -> None:
    """Render pictures; `done` gets each as a PIL image as soon as it is there.

    Args:
        scene: The cache.
        wanted: The pictures.
        around: What stands around them.
        how: `Picture`, with its size known, and what is shown.
        done: Called with a picture's `Exposure` and its image.

    Raises:
        EngineMissing: Blender cannot run here, or fails.
    """
    from PIL import Image

    job = {
        "stage": str(scene.path.absolute()),
        "size": list(how.size),
        "samples": int(how.samples),
        "shutter": float(how.shutter),
        "show": how.show,
        "ground": around.ground,
        "floor": (scene.floor() or ("", 0.0))[0],
        "every_form": scene.has_forms(),
        "floor_look": {"name": around.look, **_plain(around.look)},
        "sun_turn": scene.sun_turn(how.camera),
        "extent": around.extent,
        "sky": {"colour": list(SKY), "shares": list(SKY_SHARES), "fade": [around.extent * share for share in FADE]},
        "colours": _colours(scene, wanted[0].frame),
        "colour_by": _colour_by(scene),
        "looks": {name: found for name, look in LOOKS.items() if (found := _shading(look))},
        "patterns": {name: found for name, look in LOOKS.items() if (found := _pattern(look))},
        "grains": {name: [look.grain, look.pattern == "pores"] for name, look in LOOKS.items() if look.grain},
        "set": None if around.dressing is None else _set(around.dressing),
        "checker": around.extent * CHECKER_SHARE,
        "parts": {} if scene.colour_by is not None else _parts(scene),
        "glow": None if scene.colour_by is not None or scene.white <= 0.0 else {"white": scene.white, "fit": list(LUMINANCE_FIT)},
    }
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
        images = [Path(scratch) / f"{n}.png" for n in range(len(wanted))]
        job["pictures"] = [
            {
                "frame": exposure.frame,
                "image": str(image),
                "camera": None if exposure.view is None else _numbers(exposure.view),
                "floors": _floors(scene, exposure.frame, how.show, around.ground),
                "set": _set_before(scene, exposure, around, how),
            }
            for exposure, image in zip(wanted, images, strict=True)
        ]
        path = Path(scratch) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")

        def ready(n: int) -> None:
            with Image.open(images[n]) as opened:
                done(wanted[n], opened.convert("RGB"))
            images[n].unlink()

        _run_blender(path, len(wanted), ready)


def _numbers(view: View) -> dict[str, Any]:
    return {name: getattr(view, name).tolist() for name in ("eye", "right", "up", "forward")} | {"focal": view.focal}


def _floors(scene: Scene, frame: int, show: str, ground: float) -> list[str]:
    """Return the names of the squares in whose place the ground lies."""
    return [
        surface.path.rsplit("/", 1)[1]
        for surface in scene.shapes(frame, show).surfaces
        if surface.floor and surface.height <= ground
    ]


def _colours(scene: Scene, frame: int) -> dict[str, list[float]]:
    """Return the linear colour of each prim's name: Blender loses the materials of points on import."""
    found: dict[str, list[float]] = {}
    for show in ("points", "surface"):
        shapes = scene.shapes(frame, show)
        for cloud in shapes.clouds:
            found[cloud.path.rsplit("/", 1)[1]] = [float(c) for c in cloud.colours.mean(axis=0)]
        for surface in shapes.surfaces:
            found[surface.path.rsplit("/", 1)[1]] = (
                [float(c) for c in surface.colours.reshape(-1, 3).mean(axis=0)] if len(surface.colours) else [0.5] * 3
            )
    return found


def _parts(scene: Scene) -> dict[str, list[str]]:
    """Return, by the name of each mesh of several materials, what shades each of them: Blender reads that for one frame only."""
    from pxr import UsdGeom, UsdShade

    found: dict[str, list[str]] = {}
    for prim in scene.stage.Traverse():
        subsets = UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets() if prim.IsA(UsdGeom.Mesh) else ()
        bound = [UsdShade.MaterialBindingAPI(part.GetPrim()).ComputeBoundMaterial()[0] for part in subsets]
        if bound and all(bound):
            found[prim.GetName()] = [material.GetPrim().GetName() for material in bound]
    return found


def _shading(look: Look) -> dict[str, Any]:
    """Return what of a look Blender's import leaves out: light inside of matter, and through it."""
    inputs: dict[str, Any] = {}
    if look.subsurface:
        inputs |= {"Subsurface Weight": look.subsurface, "Subsurface Scale": look.depth, "Subsurface Radius": [1.0, 0.85, 0.7]}
    if look.clear:
        inputs |= {"Transmission Weight": look.clear, "Base Color": [*look.tint, 1.0], "IOR": look.refraction, "Alpha": 1.0}
    return inputs


def _pattern(look: Look) -> list[Any]:
    return [look.pattern, look.colour, look.second] if look.pattern not in ("", "pores") else []


def _set(dressing: Dressing) -> dict[str, Any]:
    """Return what the script needs of a set, whatever the camera."""
    kind = dressing.kind
    if kind is None:
        return {"file": str(dressing.file.absolute()) if dressing.file else ""}
    ground, ceramic = (_covering(look, kind.tile * dressing.radius) for look in (kind.ground, LOOKS[PLATE_LOOK]))
    plate = {"radius": dressing.plate, "foot": FOOT, "rim": list(RIM), **ceramic} if dressing.plate else None
    lamps = [lamp._asdict() for lamp in kind.lamps]
    sky = {"horizon": list(kind.horizon), "zenith": list(kind.zenith)}
    known = {"shape": kind.shape, "ground": ground, "plate": plate, "lamps": lamps, "sky": sky, "exposure": kind.exposure}
    known["wall"] = kind.wall
    return {"file": "", **known, "middle": dressing.middle.tolist(), "radius": dressing.radius, "held": dressing.held}


def _covering(look: Look, tile: float) -> dict[str, Any]:
    """Return how what a set brings along is shaded; its unevenness stays large enough to be seen."""
    inputs = {"Roughness": look.roughness, "Coat Weight": look.coat, **_shading(look)}
    return {
        "colour": list(look.colour),
        "inputs": inputs,
        "pattern": _pattern(look),
        "tile": tile,
        "grain": look.grain and max(look.grain, 0.1 * tile),
    }


def _set_before(scene: Scene, exposure: Exposure, around: Backdrop, how: Any) -> dict[str, Any] | None:
    """Return how a set stands before the camera of a picture, and what that is focused on."""
    dressing, view = around.dressing, exposure.view or scene.view(exposure.frame)
    if dressing is None or dressing.kind is None or view is None:
        return None
    depths = (dressing.points - view.eye) @ view.forward
    depth = float(max((1.0 - FOCUS) * depths.min() + FOCUS * depths.max(), 1e-3 * dressing.radius))
    return {
        "ahead": [float(view.forward[0]), float(-view.forward[2])],
        "distance": float(np.linalg.norm(view.eye - dressing.middle)),
        "edge": edge_behind(dressing, view, how.size[0] / how.size[1]),
        "focus": depth,
        "aperture": dressing.kind.aperture * depth,
    }


def _plain(name: str) -> dict[str, Any]:
    """Return what of a look Blender's import reads."""
    look = find_look(name)
    return {"colour": list(look.colour), "roughness": look.roughness, "metallic": look.metallic}


def _colour_by(scene: Scene) -> dict[str, Any] | None:
    """Return the attribute that colours the points, as the script needs it."""
    chosen = scene.colour_by
    if chosen is None:
        return None
    return {"attribute": chosen.usd_name, "low": chosen.low, "high": chosen.high, "stops": STOPS.tolist()}


def _run_blender(job: Path, count: int, ready: Callable[[int], None]) -> None:
    """Run the script in a child process; `ready` is called with the number of each finished picture, from 0."""
    child = children.start(
        _BLENDER_SCRIPT,
        [str(job)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=job.parent,
    )
    lines: list[str] = []
    watch = _Deadline(child, _START_SECONDS + _SECONDS_PER_FRAME * count)
    with watch:
        for line in child.stdout:
            lines.append(line.rstrip())
            if line.startswith("MPM_FRAME "):
                ready(int(line.split()[1]) - 1)
        child.wait()
    if watch.expired:
        raise EngineMissing(f"Blender gave no result within {watch.seconds:.0f} s; try fewer frames, or the engine 'splat'")
    if child.returncode != 0:
        raise EngineMissing(blender_problem(lines, child.returncode))


class _Deadline:
    """Ends a child process when it runs longer than `seconds`, or when the block is left by an error."""

    def __init__(self, child: subprocess.Popen, seconds: float) -> None:
        import threading

        self.child, self.seconds, self.expired = child, seconds, False
        self.timer = threading.Timer(seconds, self._expire)
        self.timer.daemon = True

    def _expire(self) -> None:
        self.expired = True
        self.child.kill()

    def __enter__(self) -> _Deadline:
        self.timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()


def blender_problem(lines: Sequence[str], code: int) -> str:
    """Return one sentence on why Blender failed, from what it printed; missing libraries with their Debian packages."""
    text = "\n".join(lines)
    missing = re.search(r"(lib[A-Za-z0-9+-]+)[.\d-]*\.so[.\d]*: cannot open shared object file", text)
    if missing:
        named = _DEBIAN.get(missing[1])
        # The loader names only the first one; a bare server lacks the whole family.
        family = "libx11-6 libxrender1 libxfixes3 libxi6 libxxf86vm1 libxkbcommon0 libsm6 libice6 libgl1 libegl1"
        return (
            f"Blender needs the system library {missing[1]}, which this machine lacks; install the Debian packages: "
            f"{family if named else missing[1].lower()}"
        )
    if "No module named 'bpy'" in text:
        return "Blender is not installed; install it with: pip install 'mpm-nodes[vdb]'"
    last = next((line for line in reversed(lines) if line.strip()), "no output")
    return f"Blender failed (exit status {code}): {last.strip()[:200]}"
