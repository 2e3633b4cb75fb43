"""The module around the calls of fragments: its imports, the function of one block, and the kernel that loops over blocks."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from mpm_nodes.kernels.composition.fragments import VISCOSITY, Fragment, Gather, Scatter
from mpm_nodes.kernels.composition.text import call, import_line, in_order

__all__ = ["label_of", "module_of"]


def module_of(writer: Any) -> str:
    """Return the module of what `source._Writer` has collected."""
    if not writer.backend.blocks:
        return _shared_among_threads(writer)
    writer.use("mpm_nodes.kernels.compile.jit", "compiled", "part")
    writer.use("mpm_nodes.kernels.compile.parallel", "parallel_for")
    coloured = any(getattr(fragment, "scatters", ()) for fragment in writer.fragments)
    body = "\n".join([*writer.made.values(), *writer.lines])
    head = _block_head(writer, body, coloured)
    loop = ["first", "last"] if coloured else []
    gathers = "tile_slot" in writer.source.names
    outside = ("colour_start", "colour_shares") if coloured else ("shares",) if gathers else ()
    for name in outside:
        writer.argument(name)
    arguments = [name for name in writer.source.names if name not in outside]
    block = f"@part\n{call('def block', ['k', *loop, *arguments])}:\n{textwrap.indent(head + body, '    ')}\n"
    passed = f"({', '.join([*loop, *arguments])})"
    if coloured:
        calls = "for colour in range(8):\n    first, last = colour_start[colour], colour_start[colour + 1]\n"
        calls += textwrap.indent(call("parallel_for", ["block", "colour_shares[colour]", passed]), "    ")
    else:
        calls = call("parallel_for", ["block", "shares" if gathers else "segments.shape[0]", passed])
    kernel = f"@compiled(fastmath=False)\n{call('def run', writer.source.names)}:\n{textwrap.indent(calls, '    ')}\n"
    return _with_head(writer, [*writer.functions, block, kernel])


def _shared_among_threads(writer: Any) -> str:
    """Return the module of a kernel whose thread blocks take one run of particles each, and their threads its particles."""
    writer.use("numba", "cuda")
    writer.argument("segments")
    head = "start, end, step = segments[row, 0] + cuda.threadIdx.x, segments[row, 1], cuda.blockDim.x"
    lines = ["row = cuda.blockIdx.x", head, *_viscosity(writer), *writer.lines]
    kernel = f"@cuda.jit\n{call('def run', writer.source.names)}:\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    return _with_head(writer, [*writer.functions, kernel])


def _viscosity(writer: Any) -> list[str]:
    """Return the line that finds the material's own viscosity, where anything asks for it."""
    if VISCOSITY not in "\n".join(writer.lines):
        return []
    writer.use("mpm_nodes.kernels.composition.values", "own_viscosity")
    return [f"{VISCOSITY} = own_viscosity({writer.argument('coefficients')}, {len(writer.law.names)})"]


def _block_head(writer: Any, body: str, coloured: bool) -> str:
    """Return the lines that say which particles it is about, as far as the others ask for them."""
    lines = []
    writer.argument("segments")
    inner = [name for name in writer.inner if any(f"{writer.column(name)}_{end}" in body for end in ("stride", "shift"))]
    thread = inner or "thread" in body
    if thread:
        writer.use("numba", "get_thread_id")
    row = f"{writer.argument('colour_range')}[first + k]" if coloured else "k"
    lines.append(f"row, thread = {row}, get_thread_id()" if thread else f"row = {row}")
    lines.append("start, end = segments[row, 0], segments[row, 1]")
    if "ahead" in body or "next_row" in body:
        after = "colour_range[min(first + k + 1, last - 1)]" if coloured else "min(k + 1, segments.shape[0] - 1)"
        lines += [f"next_row = {after}", "ahead = segments[next_row, 0] - start"]
    if "SCRATCH" in body:
        writer.use("mpm_nodes.kernels.transfers.tiles", "SCRATCH")
    place = 0
    for name in inner:
        column = writer.column(name)
        local = writer.argument(f"{column}_local")
        writer.use("mpm_nodes.kernels.composition.source", "LOCAL_ROWS")
        shift = f"thread * LOCAL_ROWS * {local} - start" + (f" + {place} * {local}" if place else "")
        lines += [f"{column}_stride, {column}_shift = stride, np.int64(0)", f"if {local} > 0:"]
        lines += [f"    {column}_stride = {local}", f"    {column}_shift = {shift}"]
        writer.argument("stride")
        place += writer.rows_of(name)
    return "\n".join([*lines, *_viscosity(writer)]) + "\n"


def _with_head(writer: Any, pieces: list[str]) -> str:
    """Return a module: its title, what it imports, and its functions."""
    names = " + ".join(dict.fromkeys(label_of(fragment) for fragment in writer.fragments))
    for_law = "" if writer.law is None else f' for the law "{writer.law.id}"'
    title = textwrap.fill(f'"""{names}{for_law}: one loop over blocks.', 120)
    text = "\n\n".join(pieces)
    lines = [title, "", f'Written by {__name__}.\n"""', ""]
    modules = dict(writer.imports)
    bound = {"law": writer.law.module.__name__} if writer.law is not None and re.search(r"\blaw\b", text) else {}
    bound |= {alias: module for module, alias in writer.foreign.items()}
    if bound:
        lines += ["import sys", ""]
    if "np." in text:
        lines.append("import numpy as np")
    lines += [f"from {name} import {', '.join(in_order(modules.pop(name)))}" for name in ("numba",) if name in modules]
    lines.append("")
    lines += [import_line(name, in_order(found)) for name, found in sorted(modules.items())]
    lines += ["", *(f'{alias} = sys.modules["{module}"]' for alias, module in bound.items())] if bound else []
    return "\n\n".join(["\n".join(lines) + "\n", text])


def label_of(fragment: Fragment) -> str:
    """Return what a fragment is called in a title."""
    if isinstance(fragment, Scatter):
        return f"scatter {fragment.target}"
    if isinstance(fragment, Gather):
        return f"gather {fragment.source}"
    return fragment.body.__name__.strip("_").replace("_", " ")  # type: ignore[attr-defined]
