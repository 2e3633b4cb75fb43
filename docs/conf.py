"""How the site is built: `sphinx-build -W docs site`. Pages are Markdown (MyST); the reference is generated when a build begins."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import make_reference  # noqa: E402

import mpm_nodes  # noqa: E402

project = "mpm_nodes"
author = "the mpm_nodes authors"
release = version = mpm_nodes.__version__
extensions = ["myst_parser", "mathml"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site", "_build"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"mpm_nodes {version}"
html_copy_source = False
html_static_path = html_css_files = ["site.css"]

_OUTSIDE = {f"](../{path}": f"](project/{name}.md" for name, path in make_reference.TOP_PAGES.items()}


def _turn_links(app: object, name: str, source: list[str]) -> None:
    """Turn links to pages outside docs/ to their copies on the site."""
    if "/" in name:
        return
    for old, new in _OUTSIDE.items():
        source[0] = source[0].replace(old, new)


def setup(app: object) -> None:
    """Write the generated pages, and turn links."""
    make_reference.write(HERE)
    app.connect("source-read", _turn_links)  # type: ignore[attr-defined]
