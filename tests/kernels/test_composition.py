"""Generated loops: what a module imports and what its block finds out is what its lines ask for, whatever they are called."""

from __future__ import annotations

import types

import pytest

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.kernels.compile import sources
from mpm_nodes.kernels.composition.backends import CPU, EIGHT
from mpm_nodes.kernels.composition.fragments import Lanes, Scatter
from mpm_nodes.kernels.composition.source import Fold, source_of
from mpm_nodes.materials.contract import law

LAW = law("snow")
FIELDS = {**ATTRIBUTES, **LAW.fields}


def body_of(name, *knobs):
    """Return a user's function of the temperature and some numbers, in a module of its own."""
    module = types.ModuleType("stages_of_a_user")
    exec(f"def {name}(temperature, {', '.join(knobs)}):\n    return temperature\n", module.__dict__)
    function = vars(module)[name]
    function.__module__ = module.__name__
    return function


def test_words_in_names_decide_nothing():
    """A knob that is called like a part of the block, or holds it, is a knob."""
    words = {
        "thread_count": "one",
        "lookahead": "two",
        "SCRATCH_SIZE": "three",
        "over_stress_shift": "four",
        "no_material_viscosity": "five",
        "law": "plain",
    }
    *knobs, name = words
    table = dict(FIELDS)
    odd = source_of(LAW, (Lanes(body_of(name, *knobs), ("temperature",)),), table, ("stress",))
    plain = source_of(LAW, (Lanes(body_of(words[name], *(words[knob] for knob in knobs)), ("temperature",)),), table, ("stress",))
    text = odd.text.replace("law_in", "plain_in").replace(".law(", ".plain(").replace('"""law', '"""plain')
    for word, other in words.items():
        text = text.replace(word, other) if word != "law" else text
    assert "".join(text.split()) == "".join(plain.text.split())
    assert odd.loaded == ("stages_of_a_user",)
    assert not {"stress_local", "coefficients"} & {*odd.names}


@pytest.mark.parametrize(
    "factors, negated, fold, product",
    [
        ((), True, None, "-1.0"),
        (("dt", "dt"), False, None, "dt * dt"),
        (("Young", "share"), True, None, "-Young * share"),
        (("Young",), False, Fold("force", "momentum", "impulse"), "-impulse"),
    ],
)
def test_a_stress_is_multiplied_by_named_numbers(factors, negated, fold, product):
    """Each is an argument of the loop, whatever its name begins with; folded, the fold's own takes their place."""
    found = source_of(None, (Scatter("force", ("stress", "volume"), factors=factors, negated=negated),), FIELDS, fold=fold)
    assert f" {product} / cell_size" in " ".join(found.text.split())
    assert {"dt", "Young", "share", "impulse"} & {*found.names} == set(product.replace("-", "").split(" * ")) - {"1.0"}


@pytest.mark.parametrize("backend", [CPU, EIGHT], ids=["sixteen", "eight"])
def test_a_loop_of_one_fragment_has_no_head_that_nobody_asked_for(backend):
    """Neither thread nor scratch nor NumPy, and the next block only where rows of it are fetched."""
    text = source_of(None, (Lanes(body_of("warm", "rate"), ("temperature",)),), FIELDS, backend=backend).text
    assert "import numpy" not in text and "get_thread_id" not in text and "SCRATCH" not in text
    assert ("next_row" in text) == (backend == CPU)


def test_an_edit_of_the_composer_compiles_nothing_again(tmp_path):
    """A generated module depends on what it names, not on what writes it; its text says what that made of it."""
    swept = (Lanes(body_of("warm", "rate"), ("temperature",), ("hottest",)), Scatter("force", ("stress", "volume")))
    path = tmp_path / "loop.py"
    path.write_text(source_of(LAW, swept, FIELDS, ("temperature", "stress")).text)
    named = {file.stem for file in sources.closure(path) if file.parent == sources.PACKAGE / "kernels" / "composition"}
    assert "LOCAL_ROWS" in path.read_text() and named == {"values", "__init__"}
