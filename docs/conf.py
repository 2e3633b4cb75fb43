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
html_copy_source = html_show_copyright = False
html_extra_path = [make_reference.SCHEMA]
html_static_path = html_css_files = ["site.css"]

_FOLDED = {
    "houdini": ("houdini_test",),
    "python": ("wedges",),
    "extending": (
        "a_node_in_20_lines",
        "a_stage_in_a_preset",
        "a_law_in_90_lines",
        "a_phenomenon_in_a_folder",
        "fragments",
        "transfers",
    ),
    "samples/index": tuple(make_reference.SAMPLE_PAGES),
    "reference/nodes": ("materials", "attributes"),
    "reference/stages": ("presets",),
    "project/contributing": ("/selftest", "/numba"),
}
"""Pages that the navigation folds below another one. They stand here, as GitHub shows a `toctree` of a page as it is written."""
_OUTSIDE = {f"](../{path}": f"]({name}.md" for name, path in make_reference.TOP_PAGES.items()}


def _prepare(app: object, name: str, source: list[str]) -> None:
    """Turn links to pages outside docs/ to their copies on the site, and fold pages below theirs."""
    if "/" not in name:
        for old, new in _OUTSIDE.items():
            source[0] = source[0].replace(old, new)
    if name in _FOLDED:
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", "", *_FOLDED[name], "```", ""])


def setup(app: object) -> None:
    """Write the generated pages, and turn links."""
    make_reference.write(HERE)
    app.connect("source-read", _prepare)  # type: ignore[attr-defined]
