"""Formulas of the site as MathML, which browsers draw themselves: no script, nothing from the network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
_TIDIED = (
    # bars around a value: an operator between two values would have space on both sides
    (r'<mo stretchy="false">&#x0007C;</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
    (r"<mo><mrow><mo>&#x0002B;</mo></mrow></mo><mo>&#x0003D;</mo>", "<mo>+=</mo>"),
    (r"<mo><mrow><mo>&#x02212;</mo></mrow></mo><mo>&#x0003D;</mo>", "<mo>-=</mo>"),
    # the name of a function stands off its argument, and close to its bracket
    (r"(<mi>(?:ln|exp|sin|cos|det|arg)</mi>)(?!<mo[^>]*>&#x00028;)", r'\1<mspace width="0.17em" />'),
    (r"<mo>([a-z]{2,})</mo>(?=<mo[^>]*>&#x00028;|<mrow><mo[^>]*>&#x00028;)", r'<mo rspace="0">\1</mo>'),
)
"""What a reader would see of latex2mathml, and what is written in its place."""


def mathml(text: str, *, block: bool) -> str:
    """Return a formula in LaTeX as MathML; a block is cut at each `\\qquad`, so that a narrow page can wrap it.

    Raises:
        ValueError: A command is not known; latex2mathml would print its name.
    """
    pieces = text.split(r"\qquad") if block else [text]
    elements = "".join(convert(piece.strip(), display="block" if block else "inline") for piece in pieces)
    if "\\" in elements:
        raise ValueError(f"latex2mathml does not know a command of {text!r}")
    for found, written in _TIDIED:
        elements = re.sub(found, written, elements)
    return f'<div class="math">{elements}</div>' if block else elements


def _visit(translator: Any, node: Any, *, block: bool) -> None:
    """Write the formula of a node, and leave out what is below it."""
    try:
        drawn = mathml(node.astext(), block=block)
    except Exception as fault:  # latex2mathml raises a class for each mistake; the build names the place, and -W ends it
        _LOG.warning("formula: %s: %s", type(fault).__name__, fault, location=node)
        drawn = translator.encode(node.astext())
    translator.body.append(drawn)
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer(
        "mathml",
        (lambda translator, node: _visit(translator, node, block=False), None),
        (lambda translator, node: _visit(translator, node, block=True), None),
    )
    return {"parallel_read_safe": True}
