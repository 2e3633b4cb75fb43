"""Whether particles of a checkpoint fit together: kernels take their tables as they are, and would write where nothing is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.solver.stores import Saved

__all__ = ["refuse_other_facts", "refuse_unsound"]

FURTHEST_BLOCK = 1 << 24
"""Blocks from the origin along an axis."""
MOST_PARTICLES = 1 << 40


def refuse_unsound(particles: Any, saved: Saved) -> None:
    """Refuse what no solve of this kind saved.

    Args:
        particles: The `ParticleStore` that shall restore it.
        saved: What was read from a file.

    Raises:
        InputError: Facts, tables or fields of it are of another kind or size, or do not fit together.
    """
    try:
        fault = _facts_fault(saved.facts) or _tables_fault(particles, saved) or _fields_fault(particles, saved)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        fault = f"{type(error).__name__}: {error}"
    if fault:
        raise InputError(f"checkpoint: its particles do not fit together ({fault}); cook again without --resume")


def refuse_other_facts(solver: Any, facts: dict[str, Any]) -> None:
    """Refuse facts of a checkpoint, besides those of its particles, of which no `SubstepSolver` can go on.

    Raises:
        InputError: They are of another kind.
    """
    choice, domains = facts.get("choice"), facts.get("domains")
    sound = {
        "time": _is_number(facts.get("time")),
        "substeps": type(facts.get("substeps")) is int and facts["substeps"] >= 0,
        "kind": isinstance(facts.get("kind"), dict),
        "domains": isinstance(domains, dict) and all(isinstance(domains.get(place), dict) for place in solver.lasting_stores),
        "choice": "choice" in facts and (choice is None or _is_choice(choice)),
    }
    for name, holds in sound.items():
        if not holds:
            raise InputError(f"checkpoint: does not say its {name} as this version reads it; cook again without --resume")


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, list) or len(choice) != 4 or not isinstance(choice[2], list):
        return False
    index, step, costs, own = choice
    return type(index) is int and 0 <= index < len(costs) and all(map(_is_real, (step, own, *costs)))


def _facts_fault(facts: dict[str, Any]) -> str:
    counts = {name: type(facts[name]) is int and 0 <= facts[name] < MOST_PARTICLES for name in ("count", "next_id", "sort_age")}
    numbers = {"drift": _is_number(facts["drift"]), "travelled": _is_number(facts.get("travelled", 0.0))}
    limits = facts["limits"] is None or all(len(each) == 3 and all(map(_is_real, each)) for each in facts["limits"])
    rest = {
        "sorted": type(facts["sorted"]) is bool,
        "stale": isinstance(facts["stale"], list) and all(isinstance(name, str) for name in facts["stale"]),
        "limits": limits,
    }
    return next((name for name, sound in (counts | numbers | rest).items() if not sound), "")


def _is_real(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < MOST_PARTICLES)


def _is_number(value: Any) -> bool:
    return _is_real(value) and math.isfinite(value)


def _tables_fault(particles: Any, saved: Saved) -> str:
    tables, count = saved.tables, saved.facts["count"]
    start, coord = tables["block_start"], tables["block_coord"]
    blocks = len(coord)
    body, sides = tables.get("block_body", np.zeros(blocks, np.int32)), tables.get("block_sides", np.zeros(1, np.int64))
    wanted = {"origin": ((3,), np.float64), "block_start": ((blocks + 1,), np.int64), "block_coord": ((blocks, 3), np.int32)}
    wanted |= {"block_body": ((blocks,), np.int32), "block_sides": ((len(sides),), np.int64)}
    runs = [name for name in tables if name.startswith("runs of material ")]
    wanted |= {name: ((len(tables[name]), 3), np.int64) for name in runs}
    for name, array in tables.items():
        shape, kind = wanted[name]
        if array.shape != shape or array.dtype != kind:
            return name
    if start[0] != 0 or start[-1] != count or (np.diff(start) < 0).any():
        return "block_start"
    if blocks and (np.abs(coord.astype(np.int64)) > FURTHEST_BLOCK).any():
        return "block_coord"
    if not particles.apart and len(sides) and blocks and not (0 <= body.min() and body.max() < len(sides)):
        return "block_body"
    for name in runs:
        begin, end, block = tables[name].T
        if len(begin) and not (begin.min() >= 0 and (begin <= end).all() and end.max() <= count):
            return name
        if len(block) and not 0 <= block.min() <= block.max() < blocks:
            return name
    return "" if np.isfinite(tables["origin"]).all() else "origin"


def _fields_fault(particles: Any, saved: Saved) -> str:
    count = saved.facts["count"]
    for name, values in saved.fields.items():
        rows, held = (3, particles.offset) if name == "position" else (particles.table[name].rows, particles.array(name))
        if values.shape != (rows, count) or values.dtype != held.dtype:
            return name
    lacking = {"position", *particles.names} - saved.fields.keys() - set(saved.facts["stale"])
    if lacking & {"position", "velocity", "mass", "volume", "id", "material"}:
        return sorted(lacking)[0]
    material = saved.fields["material"]
    return "material" if count and not 0 <= material.min() <= material.max() < particles.materials else ""
