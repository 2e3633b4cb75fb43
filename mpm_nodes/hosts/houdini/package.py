"""The folder that Houdini loads: assets, package file and the Python that runs inside, with the libraries expanded or packed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Literal

from mpm_nodes.data import OutputError
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.files.folder import Folder
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

FORCES = sections.ShelfTool(
    "forces",
    "MPM Add Forces",
    "Forces that are selected in a POP or DOP network become those of the selected MPM Solve, or of the only one, with keys.",
    "choose_forces(kwargs)",
    f"{MENU}/Force",
    ("SOP", "DOP"),
)
"""The tool that takes forces of Houdini over."""

WRITTEN = f"{NAMESPACE}/written.json"
"""Digest of every file that was written, by its path: nothing else is replaced or removed by the next run."""

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
    tools = [
        sections.ShelfTool(
            name,
            f"MPM Configure {recipes[name]['label']}",
            recipes[name]["doc"],
            f"configure(kwargs, {name!r})",
            f"{MENU}/Configure",
        )
        for name in ordered
    ]
    files[f"{NAMESPACE}/toolbar/{NAMESPACE}.shelf"] = sections.shelf([*tools, FORCES]).encode()
    return files


def write(spec: Spec, out: Path, form: Form = "expanded") -> list[Path]:
    """Write the package folder, and in it what was written; files of nodes that are gone are removed. Return the asset libraries.

    Raises:
        OutputError: A file cannot be written, is a link, or has a name of ours and was not written here.
    """
    wanted = all_files(spec, form)
    libraries = {path.split("/")[2] for path in wanted if path.startswith(f"{NAMESPACE}/otls/")}
    try:
        out.mkdir(parents=True, exist_ok=True)
        files = Folder(out.resolve())
        before = _written(files)
        digests = {path: hashlib.sha256(raw).hexdigest() for path, raw in wanted.items()}
        for path, digest in digests.items():
            if files.size(path) is not None and files.facts(path)["sha256"] not in (digest, before.get(path)):
                raise OutputError(f"{out / path}: was not written by mpm-nodes, or was changed; choose another --out, or remove it")
        for path, digest in before.items():
            if path not in wanted and files.size(path) is not None and files.facts(path)["sha256"] == digest:
                files.unlink(path)
                _remove_empty(out, path)
        for path, raw in wanted.items():
            if "/" in path:
                files.make(path.rpartition("/")[0])
            files.replace(path, raw)
        files.make(NAMESPACE)
        files.replace_json(WRITTEN, digests)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror or error}); choose another folder with --out") from error
    return [out / NAMESPACE / "otls" / name for name in sorted(libraries)]


def _written(files: Folder) -> dict[str, str]:
    """Return the digest of every file that an earlier run has written, by name."""
    try:
        found = json.loads(files.read(WRITTEN))
    except (OSError, ValueError, RecursionError):
        return {}
    ours = isinstance(found, dict) and all(name.startswith(NAMESPACE) and isinstance(each, str) for name, each in found.items())
    return found if ours else {}


def _remove_empty(out: Path, path: str) -> None:
    for folder in (out / path).relative_to(out).parents:
        with contextlib.suppress(OSError):  # something is left in it
            (out / folder).rmdir()
