"""How soon the editor shows a cache: from the command to the first picture, and between frames, in Chromium.

    python benchmarks/editor_view.py [--particles 1000000 5000000]

needs Node, Chromium at $CHROMIUM (/usr/bin/chromium), and `npm ci --ignore-scripts` in mpm_nodes/editor/web. Chromium draws
without a graphics card (SwiftShader). A picture counts when its pixels are read back.

first      from the command to some of the particles; `launch` of it is the start of the server and of Chromium
some, all  from a move of the bar to a frame that was not read yet: with some of its particles, and with all
again      to a frame that is held, with all its particles; `processor`: time of all of Chromium's processes for it
turning    from picture to picture while the view is turned
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mpm_nodes
from mpm_nodes import execute, load_graph

WEB = Path(mpm_nodes.__file__).parent / "editor" / "web"
FRAMES = 5


def graph(particles: int) -> dict:
    """Return a graph that writes so many particles, eight a cell, which its keys move."""
    keys = [[1, [0, 0.5, 0], "linear"], [FRAMES, [0.5, 0.5, 0], "linear"]]
    return {
        "format": "mpm_nodes.graph",
        "version": 1,
        "settings": {"cell_size": (8.0 / particles) ** (1.0 / 3.0), "fps": 24, "start": 1, "end": FRAMES},
        "nodes": {
            "water": {"type": "material_library", "knobs": {"name": "water"}},
            "box": {"type": "emit_box", "knobs": {"centre": {"keys": keys}}, "inputs": {"material": "water"}},
            "writer": {"type": "write_cache", "inputs": {"particles": "box"}},
        },
    }


def measured(folder: Path, particles: int) -> dict:
    """Cook a cache, open the editor on it, and return what the page's driver measured [ms]."""
    (folder / "shot.json").write_text(json.dumps(graph(particles)))
    execute(load_graph(folder / "shot.json"), out=folder / "shot_cache")
    begin = time.time()
    command = [sys.executable, "-m", "mpm_nodes.cli", "edit", "shot.json", "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            driver = ["node", str(Path(__file__).with_suffix(".mjs")), url, str(WEB), str(begin * 1000.0), str(FRAMES)]
            told = subprocess.run(driver, capture_output=True, text=True, check=True, timeout=600)
            return json.loads(told.stdout)
        finally:
            server.terminate()


def main() -> None:
    """Print a line for each number of particles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--particles", type=int, nargs="+", default=[1_000_000, 5_000_000])
    for particles in parser.parse_args().particles:
        with tempfile.TemporaryDirectory(prefix="mpm_nodes_view_") as folder:
            found = measured(Path(folder), particles)
        print(
            f"{found.pop('points'):,} particles: " + ", ".join(f"{name} {value:.0f} ms" for name, value in found.items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
