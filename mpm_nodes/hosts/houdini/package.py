"""The folder that Houdini loads: assets, package file and the Python that runs inside, with the libraries expanded or packed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Literal

from mpm_nodes.data import OutputError
from mpm_nodes.graph import strict_json
from mpm_nodes.hosts.houdini import sections
from mpm_nodes.hosts.houdini.asset import MENU, NAMESPACE
from mpm_nodes.hosts.houdini.assets import assets_of
from mpm_nodes.hosts.houdini.parameters import Spec

RUNTIME = Path(__file__).parent / "mpm_nodes_houdini"
RECIPES = (Path(__file__).parent.parent / "blender_addon" / "quick", Path(__file__).parent / "recipes")
"""Folders of graphs with open slots: those of Blender's quick panel, and Houdini's own."""
PACKAGE = {
    "enable": "houdini_version >= '20.5'",
    "load_package_once": True,
    "hpath": f"$HOUDINI_PACKAGE_PATH/{NAMESPACE}",
    "env": [{"PYTHONPATH": {"value": f"$HOUDINI_PACKAGE_PATH/{NAMESPACE}/python", "method": "prepend"}}],
}
"""The package file; its PYTHONPATH folder holds `mpm_nodes_houdini` alone, so that no pip package (usd-core) comes with it."""

Form = Literal["expanded", "packed"]
FORMS: tuple[Form, ...] = ("expanded", "packed")


def all_files(spec: Spec, form: Form = "expanded") -> dict[str, bytes]:
    """Return every file of the package folder: bytes by path."""
    files = {f"{NAMESPACE}.json": (json.dumps(PACKAGE, indent=4) + "\n").encode()}
    for asset in assets_of(spec):
        library = f"{NAMESPACE}/otls/{NAMESPACE}.{asset.id}.hda"
        if form == "packed":
            files[library] = asset.packed()
        else:
            files.update({f"{library}/{path}": text.encode() for path, text in asset.expanded().items()})
    for path in sorted(RUNTIME.glob("*.py")):
        files[f"{NAMESPACE}/python/{RUNTIME.name}/{path.name}"] = path.read_bytes()
    recipes = {}
    for path in sorted(path for folder in RECIPES for path in folder.glob("*.json")):
        files[f"{NAMESPACE}/python/{RUNTIME.name}/recipes/{path.name}"] = path.read_bytes()
        recipes[path.stem] = strict_json.read(path)["editor"]["quick"]
    ordered = sorted(recipes, key=lambda name: recipes[name]["order"])
    labels = {name: (recipes[name]["label"], recipes[name]["doc"]) for name in ordered}
    files[f"{NAMESPACE}/toolbar/{NAMESPACE}.shelf"] = sections.recipes_shelf(f"{MENU}/Configure", labels).encode()
    return files


def write(spec: Spec, out: Path, form: Form = "expanded") -> list[Path]:
    """Write the package folder; assets of nodes that are gone are removed. Return the asset libraries.

    Raises:
        OutputError: A file cannot be written.
    """
    files = all_files(spec, form)
    otls = out / NAMESPACE / "otls"
    kept = {path.split("/")[2] for path in files if path.startswith(f"{NAMESPACE}/otls/")}
    try:
        for old in otls.glob(f"{NAMESPACE}.*.hda"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        for path, raw in files.items():
            target = out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(raw)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror or error}); choose another folder with --out") from error
    return [otls / name for name in sorted(kept)]
