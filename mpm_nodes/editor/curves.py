"""Curves of caches as JSON, read in a child of their own: it keeps OpenUSD loaded, and may be ended at any moment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mpm_nodes.editor.frames import FrameReader, packed, serve_requests

__all__ = ["CurveReader", "panels_as_json", "serve"]


class CurveReader(FrameReader):
    """The child that reads curves."""

    def __init__(self) -> None:
        super().__init__("mpm_nodes.editor.curves:serve")

    def curves(self, folder: Path, first: int) -> dict[str, Any]:
        """Return `panels`: name, unit, log, lines (name, frames, values) and notes of a revision from a frame on.

        Raises:
            InputError: It cannot be read.
        """
        return self.json(folder=str(folder), first=first)


def serve() -> None:
    """Answer requests for curves."""
    serve_requests(lambda folder, first: packed({"panels": panels_as_json(Path(folder), first)}, []))


def panels_as_json(folder: Path, first: int) -> list[dict[str, Any]]:
    """Return the panels of a revision from a frame on, as JSON holds them."""
    from mpm_nodes.plots.cache_curves import cache_panels

    return [
        {
            "name": panel.name,
            "unit": panel.unit,
            "log": panel.log,
            "lines": [{"name": line.name, "frames": line.frames, "values": line.values} for line in panel.lines],
            "notes": panel.notes,
        }
        for panel in cache_panels(folder, (first, sys.maxsize))
    ]
