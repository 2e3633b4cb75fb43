"""Jobs for farms: the program's template and commands, and Shell ROPs that run them."""

from __future__ import annotations

import os
import re
import shlex

import hou

from . import process
from .actions import check, write_graph
from .messages import Trouble, ending, filled, say, told
from .nodes import facts_of, put


@told
def write_job(cook):
    """Write the job of a cook and its wedges."""
    folder = _written(cook)
    say(f"{folder}: {len(_commands(folder))} commands; README.md says how to submit them")


@told
def make_rops(cook):
    """Write the job, and make a Shell ROP for each of its commands, one after the other."""
    folder = _written(cook)
    out, before, lines = hou.node("/out"), None, _commands(folder)
    program = shlex.join(process.command(cook.parm("mpm_program").evalAsString()))
    with hou.undos.group("MPM farm ROPs"):
        for number, line in enumerate(lines, 1):
            name = re.sub(r"[^A-Za-z0-9_]", "_", f"{cook.name()}_{number:03d}")
            rop = out.node(name) or out.createNode("shell", name)
            put(rop, "command", f"cd {shlex.quote(folder)} && {program}{line.removeprefix('mpm-nodes')}")
            rop.setInput(0, before)
            before = rop
    say(f"{len(lines)} Shell ROPs in /out; render the last one, or give each to the farm")


def _written(cook):
    path, collected = write_graph(cook)
    check(cook, path, collected)
    facts = facts_of(cook)["program"]
    folder = os.path.abspath(cook.parm("mpm_job").evalAsString())
    words = [*process.command(cook.parm("mpm_program").evalAsString()), *filled(facts["farm"], graph=path, out=folder)]
    for wedge in shlex.split(cook.parm("mpm_wedges").evalAsString()):
        words += filled(facts["wedge"], wedge=wedge)
    code, _, text = process.call(words)
    if code != 0:
        raise Trouble(ending(cook, code, text))
    return folder


def _commands(folder):
    with open(os.path.join(folder, "commands.txt"), encoding="utf-8") as file:
        return [line.strip() for line in file if line.startswith("mpm-nodes ")]
