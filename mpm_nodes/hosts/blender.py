"""Build the Blender extension: one zip with the add-on's files, its manifest and the specification of all nodes."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import mpm_nodes
from mpm_nodes.data import OutputError
from mpm_nodes.graph.files.folder import replace_named

ID = "mpm_nodes"
FOLDER = Path(__file__).parent / "blender_addon"
OLDEST_BLENDER = "4.2.0"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of every entry, so that equal contents make equal zips."""

MANIFEST = {
    "schema_version": "1.0.0",
    "id": ID,
    "version": mpm_nodes.__version__,
    "name": "MPM Nodes",
    "tagline": "Simulate soft, sticky and melting matter with node graphs",
    "maintainer": "The mpm_nodes authors",
    "type": "add-on",
    "tags": ["Node", "Physics"],
    "blender_version_min": OLDEST_BLENDER,
    "license": ["SPDX:MIT"],
    "copyright": ["2026 The mpm_nodes authors"],
}
PERMISSIONS = {"files": "Write graphs and exported objects, read caches"}


def extension_files(spec: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """Return every file of the extension by its name in the zip.

    Args:
        spec: The specification of the nodes; None takes that of the shared registry.
    """
    if spec is None:
        from mpm_nodes.hosts.spec import host_spec

        spec = host_spec()
    files = {path.name: path.read_bytes() for path in FOLDER.glob("*.py")}
    files |= {f"quick/{path.name}": path.read_bytes() for path in (FOLDER / "quick").iterdir() if path.suffix in (".json", ".jpg")}
    files["blender_manifest.toml"] = manifest().encode()
    files["spec.json"] = (json.dumps(spec, indent=1, ensure_ascii=False) + "\n").encode()
    files["LICENSE"] = _licence()
    return dict(sorted(files.items()))


def _licence() -> bytes:
    """Return the licence's text: of the checkout, or of the installed package.

    Raises:
        OutputError: Neither has one.
    """
    here = Path(mpm_nodes.__file__).parent.parent / "LICENSE"
    if here.is_file():
        return here.read_bytes()
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.files("mpm-nodes") or ():
            if file.name == "LICENSE" and Path(str(file.locate())).is_file():
                return Path(str(file.locate())).read_bytes()
    raise OutputError("LICENSE: the installed mpm-nodes has none, and no extension is built without; install it again")


def manifest() -> str:
    """Return the text of `blender_manifest.toml`."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in MANIFEST.items()]
    lines += ["", "[permissions]", *(f"{name} = {json.dumps(value)}" for name, value in PERMISSIONS.items())]
    return "\n".join(lines) + "\n"


def build(folder: Path, spec: Mapping[str, Any] | None = None) -> Path:
    """Write the extension's zip into a folder; return its path.

    Raises:
        OutputError: It cannot be written, or something else has its name.
    """
    name = f"{ID}-{re.sub(r'[^0-9a-z.+-]', '', mpm_nodes.__version__)}.zip"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for inner, content in extension_files(spec).items():
            entry = zipfile.ZipInfo(inner, EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return replace_named(folder / name, data.getvalue(), lambda old: b"blender_manifest.toml" in old, make=True)
