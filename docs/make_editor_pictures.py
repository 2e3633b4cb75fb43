"""Photograph the editor: the pictures of the README and of the page "The editor".

python docs/make_editor_pictures.py [--cooked DIR] [--all DIR]

The demo is cooked first (three minutes), unless its cache lies in DIR/demo. Needs Node, Chromium, and `npm ci --ignore-scripts` in
mpm_nodes/editor/web. With --all the other states that were photographed go to a folder as well.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from redraw import note, pictures

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
KEPT = {
    "editor": "editor.jpg",
    "cooking": "editor/cooking.jpg",
    "preview": "editor/preview.jpg",
    "view": "editor_view.jpg",
    "heat": "editor_heat.jpg",
    "keys": "editor_keys.jpg",
}
"""Pictures that pages show."""
QUALITY = 80


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description="Photograph the editor.")
    parser.add_argument("--cooked", type=Path, default=Path("none"), help="folder of caches by name of the sample")
    parser.add_argument("--all", type=Path, help="folder for all pictures, as PNG")
    args = parser.parse_args()
    drawn = pictures()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        begin_project(folder, args.cooked / "demo")
        photograph(folder)
        (DOCS / "editor").mkdir(exist_ok=True)
        for name, kept in KEPT.items():
            with Image.open(folder / f"{name}.png") as picture:
                picture.convert("RGB").save(DOCS / kept, quality=QUALITY, optimize=True, progressive=True)
            note(drawn[kept])
        for picture in folder.glob("*.png") if args.all else ():
            args.all.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, args.all)


def begin_project(folder: Path, cooked: Path) -> None:
    """Fill a folder with the demo, its cache, and a graph that is not cooked yet."""
    from mpm_nodes.editor.project import Project

    Project(folder).take_sample("demo")
    shutil.copy(DOCS / "snowball.json", folder)
    if cooked.is_dir():
        shutil.copytree(cooked, folder / "demo" / "demo_cache", ignore=shutil.ignore_patterns("preview"))
    else:
        command = [sys.executable, "-P", "-m", "mpm_nodes.cli", "cook", str(folder / "demo/demo.json"), "--out"]
        subprocess.run([*command, str(folder / "demo/demo_cache")], check=True)


def photograph(folder: Path) -> None:
    """Serve the folder, and take PNGs of its states into it."""
    from mpm_nodes.editor.server import EditorServer, serve_in_background

    server = EditorServer(folder)
    serve_in_background(server)
    try:
        web = ROOT / "mpm_nodes/editor/web"
        command = ["node", str(DOCS / "editor_pictures.mjs"), server.url, str(folder), str(web)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    finally:
        server.shutdown()
        server.close()
    fault = json.loads(done.stdout.splitlines()[-1]).get("error")
    if fault:
        shutil.copy(folder / "failed.png", tempfile.gettempdir())
        raise SystemExit(fault)


if __name__ == "__main__":
    main()
