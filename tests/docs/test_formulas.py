"""Formulas of the pages become MathML, which browsers draw without a script."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("sphinx")
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def draw():
    """The function that the site is built with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield importlib.import_module("mathml").mathml


def formulas() -> list[tuple[str, str, bool]]:
    """Return (page, formula, whether it is a block) of all pages."""
    found = []
    for page in sorted(DOCS.glob("*.md")):
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.S | re.M)
        found += [(page.name, each, True) for each in re.findall(r"\$\$(.+?)\$\$", text, re.S)]
        text = re.sub(r"\$\$.+?\$\$", "", text, flags=re.S)
        found += [(page.name, each, False) for each in re.findall(r"\$([^$\s](?:[^$\n]*[^$\s])?)\$(?!\d)", text)]
    return found


def test_every_formula_is_drawn(draw):
    """Well-formed, of elements that browsers know, without a command that was not understood, and with all its letters."""
    known = {
        *"div math mrow mi mo mn mtext mspace mfrac msqrt msub msup msubsup munder mover munderover mstyle mtable mtr mtd".split()
    }
    pages = formulas()
    assert len(pages) > 200 and {"equations.md", "projection.md"} <= {page for page, _, _ in pages}
    for page, text, block in pages:
        tree = ElementTree.fromstring(f"<div>{draw(text, block=block)}</div>")
        names = {element.tag.rpartition("}")[2] for element in tree.iter()}
        assert names <= known, (page, text, names - known)
        words = {letter for word in re.sub(r"\\(?:begin|end)\{\w+\}|\\[A-Za-z]+", " ", text) for letter in word if letter.isalnum()}
        assert words <= set("".join(tree.itertext())), (page, text)
        assert not [e for e in tree.iter() if e.tag.endswith("}mo") and len(e)], (page, text)


def test_a_wide_formula_can_be_wrapped(draw):
    """A block is cut where it has a wide space, so that a narrow page puts the parts below each other."""
    assert draw(r"a = 1, \qquad b = 2", block=True).count("<math") == 2
    assert draw(r"a = 1, \qquad b = 2", block=False).count("<math") == 1


def test_bars_and_functions_stand_as_in_print(draw):
    """No space inside of |v|, between max and its bracket, or within +=; some behind ln."""
    assert draw("|v|", block=False).count('lspace="0" rspace="0"') == 2
    assert '<mo rspace="0">max</mo>' in draw(r"\max(a, b)", block=False)
    assert "<mo>+=</mo>" in draw(r"m \mathrel{+}= 1", block=False) and "<mo>-=</mo>" in draw(r"m \mathrel{-}= 1", block=False)
    assert "<mspace" in draw(r"\ln s", block=False) and "<mspace" not in draw(r"\ln(s)", block=False)


def test_an_unknown_command_is_refused(draw):
    """Its name would stand on the page."""
    with pytest.raises(ValueError, match="does not know a command"):
        draw(r"\nosuchcommand x", block=True)
