"""Whatever a message, a help text or an advice names is there: nodes, stages, knobs, presets, materials, commands, options.

The texts of the package are read from its sources, whether or not a test comes by where they are said; what the solver advises
about short substeps is made from the registry, and swept in tests/solver/test_advice.py.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mpm_nodes
from mpm_nodes import cli
from mpm_nodes.data import ATTRIBUTES, GraphSettings
from mpm_nodes.graph.declare import registry
from mpm_nodes.materials import contract
from mpm_nodes.materials.library import LIBRARY
from mpm_nodes.materials.parameters import BUILT_IN

PACKAGE = Path(mpm_nodes.__file__).parent
REGISTRY = registry.load(path="", entry_points=False)
DECLARED = {**REGISTRY.nodes(), **REGISTRY.stages()}
SETTINGS = {field.name for field in dataclasses.fields(GraphSettings)}
COMMAND = re.compile(r"`mpm-nodes ([a-z]+)([^`]*)`|\bmpm-nodes (" + "|".join(cli.COMMANDS) + r")\b([^`;()]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SYMBOLS = re.compile(r"[a-zA-Z]{1,2}_\w+|mpm_nodes\w*")
"""Symbols of formulas, which are not names, and names of packages."""
PYTHON = {
    *("advance_deformation", "any_lane", "from_arrays", "to_arrays", "needs_any", "parallel_for", "register_domain", "warn_if"),
    *("binary_little_endian", "houdini_version", "x86_64"),
}
"""What authors of nodes, stages and laws write in Python, and words of formats and machines."""


def names_of(declaration: object) -> set[str]:
    """Return knobs, ports and outputs of a node or stage."""
    places = (*declaration.knobs, *getattr(declaration, "ports", ()), *getattr(declaration, "outputs", ()))
    return {each if isinstance(each, str) else each.name for each in places}


def known() -> set[str]:
    """Return every name with an underscore that a text may say."""
    found = {*DECLARED, *REGISTRY.presets, *LIBRARY, *BUILT_IN, *ATTRIBUTES, *SETTINGS, *contract.REQUIRED, *contract.OPTIONAL}
    for declaration in DECLARED.values():
        found |= names_of(declaration) | {str(choice) for knob in declaration.knobs for choice in knob.choices or ()}
    for file in REGISTRY.presets.values():
        found |= set(json.loads(file.read_text(encoding="utf-8")).get("parameters", ()))
    return found | {path.stem for path in (PACKAGE.parent / "samples").glob("*.json")} | PYTHON


KNOWN = known()


def options() -> dict[str, set[str]]:
    """Return the options of each command, those of its own commands with them."""
    found: dict[str, set[str]] = {}

    def look(command: str, parser: argparse.ArgumentParser) -> None:
        for action in parser._actions:
            found.setdefault(command, set()).update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    look(command or name, inner)

    look("", cli.parser())
    return found


OPTIONS = options()


def texts() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of the texts of three words and more that are neither docstrings nor code."""
    for path in sorted([*PACKAGE.glob("**/*.py"), *(PACKAGE.parent / "usd_io").glob("*.py")]):
        place = path.relative_to(PACKAGE.parent)
        if place.parts[1:2] == ("kernels",):
            continue  # it writes sources of kernels
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        docs = {id(each.value) for each in nodes if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)}
        for each in nodes:
            if (
                isinstance(each, ast.Constant)
                and isinstance(each.value, str)
                and id(each) not in docs
                and len(each.value.split()) > 2
            ):
                if not re.search(r"\bimport |==|\$\{", each.value):
                    yield f"{place}:{each.lineno}", each.value


def wrong_in(text: str) -> list[str]:
    """Return what a text names that is not there."""
    wrong = []
    for owner, name in re.findall(r"\b([a-z]\w*)\.([a-z]\w*)\b", text):
        declaration = DECLARED.get(owner)
        there = SETTINGS if owner == "settings" else None if declaration is None else names_of(declaration)
        wrong += [f"{owner}.{name}"] if there is not None and name not in there else []
    for name in re.findall(r"(?<![\w/.-])[a-z]\w*_\w*[a-z0-9](?![\w/(]|\.\w)", text):
        wrong += [name] if name not in KNOWN and not SYMBOLS.fullmatch(name) else []
    for listed in re.findall(r"\bpresets? ((?:[a-z_]+, )*[a-z]+_[a-z_]+(?: or [a-z_]+)?)", text):
        wrong += [name for name in re.split(r", | or ", listed) if "_" in name and name not in REGISTRY.presets]
    for one, rest, other, more in COMMAND.findall(text):
        command = one or other
        wrong += [f"mpm-nodes {command}"] if command not in cli.COMMANDS else []
        wrong += [f"{command} {option}" for option in OPTION.findall(rest or more) if option not in OPTIONS.get(command, ())]
    return wrong


def test_every_text_names_what_is_there():
    """Names with an underscore, places, presets, commands and options of all texts."""
    every = list(texts())
    found = {place: (wrong, text) for place, text in every if (wrong := wrong_in(text))}
    assert not found, "\n".join(f"{place}: {wrong}: {text!r}" for place, (wrong, text) in found.items())
    assert len(every) > 1000


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("raise settings.cellsize", ["settings.cellsize"]),
        ("lower youngs_moduls of it", ["youngs_moduls"]),
        ("lower choose_time_step.cfll", ["choose_time_step.cfll"]),
        ("take the preset semi_implicit", ["semi_implicit", "semi_implicit"]),
        ("see `mpm-nodes nodez`", ["mpm-nodes nodez"]),
        ("`mpm-nodes verify --lst` names all", ["verify --lst"]),
        ("raise settings.cell_size, solve.dt_max or the youngs_modulus, or take the preset implicit_apic", []),
        ("mpm-nodes cook GRAPH --out DIR", []),
    ],
)
def test_the_sweep_finds_what_is_not_there(text, wrong):
    """A misspelt setting, knob, preset, command and option; and nothing in what is right."""
    assert wrong_in(text) == wrong
