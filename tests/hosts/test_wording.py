"""Messages that artists read in a window name what is in that window, and no argument of a command line."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import mpm_nodes
from mpm_nodes.hosts.spec import WORDING

PACKAGE = Path(mpm_nodes.__file__).parent
HOSTS = {
    "blender": PACKAGE / "hosts/blender_addon/environment.py",
    "terminal": PACKAGE.parent / "docs/examples/mpm_terminal.py",
    "houdini": PACKAGE / "hosts/houdini/mpm_nodes_houdini/messages.py",
    "editor": PACKAGE / "editor/program.py",
}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def words_of(host: str) -> Mapping[str, str]:
    """Return a host's own words by what is asked for; its modules import its program, so they are read, not imported."""
    for item in ast.parse(HOSTS[host].read_text(encoding="utf-8")).body:
        if isinstance(item, ast.Assign) and getattr(item.targets[0], "id", "") == "WORDS":
            return ast.literal_eval(item.value)
    raise AssertionError(f"{host} has no words of its own")


@functools.cache
def said() -> list[tuple[str, str]]:
    """Return (place, text) of every text with an argument in it that is not a docstring: what messages are made of."""
    found = []
    for path in sorted([*PACKAGE.glob("*/**/*.py"), PACKAGE / "supervisor.py", PACKAGE / "cli.py"]):
        if path.relative_to(PACKAGE).parts[0] in ("hosts", "commands", "bench", "farm", "verification"):
            continue  # programs and tables of their own, which no host shows
        source = path.read_text(encoding="utf-8")
        if not FLAG.search(source):
            continue
        tree = ast.parse(source)
        docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)}
        for each in ast.walk(tree):
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and FLAG.search(each.value) and id(each) not in docs:
                found.append((f"{path.relative_to(PACKAGE)}:{each.lineno}", each.value))
    return found


NOT_SHOWN = {
    "cli.py": ("--version", "--debug", "show the traceback", "--help"),  # the parser's own arguments and help
    "supervisor.py": ("--debug",),
    "graph/document/document.py": ("--set ", "write --set"),  # mistakes of --set, which no host gives
    "kernels/cuda/compiler.py": ("--",),  # options of the compiler
    "editor/one_file.py": (" points each; take fewer",),  # of `mpm-nodes view`
    "plots/cache_curves.py": (": holds no events",),  # of `mpm-nodes plot`
    "plots/check_pictures.py": ("); choose another folder",),  # of `mpm-nodes verify`
    "preview/blender_script.py": ("--",),
    "preview/pictures.py": ("--",),
    "preview/scene.py": ("--",),
}


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_no_message_that_a_window_shows_names_an_argument(host):
    """With the host's words in place of the program's, nothing that the program may say speaks of --resume, --out and the like."""
    words = words_of(host)
    assert set(words) == {action for _, action in WORDING}
    left, used = [], set()
    for place, text in said():
        if any(text.startswith(start) for start in NOT_SHOWN.get(place.partition(":")[0], ())):
            continue
        for says, action in WORDING:
            used |= {says} if says in text else set()
            text = text.replace(says, words[action])
        left += [f"{place} {text!r}"] if FLAG.search(text) else []
    assert not left, "\n".join(left)
    assert used == {says for says, _ in WORDING}, "words that nothing says any longer"
