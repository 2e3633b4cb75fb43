"""Loops in the assembly that LLVM writes, and what is in them: instructions, branches, accesses to the stack, calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["CountedLoop", "Counts", "Routine", "per_particle", "routines_of"]

LANES = 16
"""Particles that the other loops take at a time (`kernels.lanes.types.WIDTH`)."""
_PER_PARTICLE = ("scatter_fields", "gather_fields")
"""Routines whose innermost loop takes one particle at a time; all other loops take sixteen."""
_PER_BLOCK = ("run", "add_tile", "clear_tile", "load_tile", "prefetch_tile")
"""Routines that are called once a block of particles."""

_ROUTINE = re.compile(r"^([\w.$]+):\s*(?:#|//) @")
_LABEL = re.compile(r"^\.L(BB\w+):")
_HEADER = re.compile(r"Loop Header: Depth=(\d+)")
_INSIDE = re.compile(r"in Loop: Header=(\w+) Depth=\d+")
_PARENT = re.compile(r"Parent Loop (\w+) Depth=(\d+)")
_COMMENT = re.compile(r"\s*(?://|#(?![-\d])).*")
_BRANCH = re.compile(r"j(?!mp)\w+$|b\.\w+$|cbn?z$|tbn?z$")
_CALL = re.compile(r"(?:call\w*|bl)$")
_STACK = re.compile(r"\(%rsp[,)]|\[sp\b")
_FRAME = re.compile(r"\(%rbp[,)]|\[x29\b")
_USES_FRAME = re.compile(r"\tmovq\t%rsp, %rbp|\t(?:mov|add)\tx29, sp")
_SAVES = re.compile(r"push|pop")


@dataclass
class Counts:
    """How many instructions there are, and how many of them branch on a condition or touch the stack."""

    instructions: float = 0.0
    stack: float = 0.0
    branches: float = 0.0

    def add(self, other: Counts, times: float = 1.0) -> None:
        """Count others too, so many times."""
        self.instructions += times * other.instructions
        self.stack += times * other.stack
        self.branches += times * other.branches


@dataclass
class CountedLoop:
    """The blocks of one loop without those of loops inside it, or what of a routine is outside of all loops.

    Attributes:
        depth: 1 for a loop in no other; 0 for what is outside of all.
        parent: Label of the loop around it, "" for none.
        own: Its instructions.
        calls: Names of the routines that it calls, once for every call.
    """

    depth: int = 0
    parent: str = ""
    own: Counts = field(default_factory=Counts)
    calls: list[str] = field(default_factory=list)


@dataclass
class Routine:
    """One function of the assembly.

    Attributes:
        name: Its symbol.
        title: Name of the Python function that it was compiled from; the symbol for others.
        loops: Its loops by the labels of their heads; "" is what is outside of all.
    """

    name: str
    title: str
    loops: dict[str, CountedLoop] = field(default_factory=lambda: {"": CountedLoop()})


def routines_of(assembly: str) -> dict[str, Routine]:
    """Return the routines of an assembly text by symbol; it needs LLVM's comments on loops (`set_asm_verbosity`)."""
    found = {}
    for name, lines in _pieces(assembly):
        found[name] = _routine(name, lines)
    return found


def per_particle(assembly: str) -> dict[str, Counts]:
    """Return what a particle costs: in the loop over single ones, and its share in the loops over sixteen.

    What a loop calls counts with its own loops run once. Paths that are seldom taken count as if they always were.
    """
    routines = routines_of(assembly)
    costs = {"single": Counts(), "sixteen": Counts()}
    for routine in routines.values():
        if routine.title in _PER_BLOCK or routine.name.startswith(("_ZN7cpython", "mpm_nodes_copy", "parallel_for")):
            continue
        for loop in routine.loops.values():
            single = loop.depth == 2 and routine.title in _PER_PARTICLE
            if single:
                costs["single"].add(_with_calls(loop, routines))
            elif loop.depth and _is_root(routine, routines):
                costs["sixteen"].add(_with_calls(loop, routines), 1.0 / LANES)
    return costs


def _is_root(routine: Routine, routines: dict[str, Routine]) -> bool:
    """Whether a routine is called outside of loops: what loops call counts where it is called."""
    return not any(
        routine.name in loop.calls for other in routines.values() for loop in other.loops.values() if loop.depth
    ) or routine.title.startswith("block")


def _with_calls(loop: CountedLoop, routines: dict[str, Routine]) -> Counts:
    """Return what a loop's own blocks cost with what they call; the copier of a block's last few particles is left out."""
    total = Counts()
    total.add(loop.own)
    for name in loop.calls:
        if name in routines and not name.startswith("mpm_nodes_copy"):
            for part in routines[name].loops.values():
                total.add(_with_calls(part, routines))
    return total


def _pieces(assembly: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in assembly.splitlines():
        begins = _ROUTINE.match(line)
        if begins or line.startswith(".Lfunc_end"):
            if name:
                yield name, lines
            name, lines = begins[1] if begins else "", []
        else:
            lines.append(line)


def _routine(name: str, lines: list[str]) -> Routine:
    routine = Routine(name, _title(name))
    framed = any(_USES_FRAME.match(line) for line in lines)
    here, label = routine.loops[""], ""
    parents: list[str] = []
    for line in lines:
        begins = _LABEL.match(line)
        block = re.match(r"^(?:\.LBB\w+:|(?:#|//) %bb\.\d+:)", line)
        if block:
            label, here, parents = (begins[1] if begins else ""), routine.loops[""], []
        parents += [found[1] for found in _PARENT.finditer(line)]
        inside, header = _INSIDE.search(line), _HEADER.search(line)
        if header:
            depth = int(header[1])
            here = routine.loops.setdefault(label, CountedLoop())
            here.depth, here.parent = depth, parents[-1] if depth > 1 and parents else ""
        elif inside:
            here = routine.loops.setdefault(inside[1], CountedLoop())
        if line.startswith("\t") and not line.startswith("\t."):
            _count(here, _COMMENT.sub("", line).strip(), framed)
    return routine


def _count(loop: CountedLoop, instruction: str, framed: bool) -> None:
    operation, _, operands = instruction.partition("\t")
    if not operation:
        return
    loop.own.instructions += 1
    loop.own.branches += bool(_BRANCH.match(operation))
    loop.own.stack += bool(_STACK.search(operands) or (framed and _FRAME.search(operands)) or _SAVES.match(operation))
    if _CALL.match(operation):
        loop.calls.append(operands.removesuffix("@PLT"))


def _title(symbol: str) -> str:
    """Return the last part of a mangled name: "scatter_fields" of "_ZN9mpm_nodes...14scatter_fieldsB3v32...E..."."""
    rest, title = symbol.removeprefix("_ZN"), symbol
    while rest != symbol and (length := re.match(r"\d+", rest)):
        begin, end = length.end(), length.end() + int(length[0])
        title, rest = rest[begin:end], rest[end:]
        if rest[:1] == "B":  # the version and the flags that numba appends
            break
    return title
