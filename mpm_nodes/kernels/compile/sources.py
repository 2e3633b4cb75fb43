"""What a compiled function depends on: its file, and every file of the package that can reach it.

numba keys its disk cache by the file of the compiled function only: after an edit in a helper of another file it would serve
the old machine code. A digest of the whole package would be safe too, but then one edit compiles everything again.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
PACKAGES = ("kernels", "materials", "solver.stages")
"""Where functions are that may be compiled into others. A file elsewhere that a user's stage calls counts by its own digest in the
name of the generated loop."""

_PACKAGE = r"mpm_nodes\.(?:" + "|".join(map(re.escape, PACKAGES)) + r")(?:\.\w+)*"
# `from a.b import c, d` with names on one line or in brackets; any other mention of a module is taken whole
_FROM = re.compile(rf"^[ \t]*from[ \t]+({_PACKAGE})[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)", re.MULTILINE)
_MODULE = re.compile(rf"""(?:^[ \t]*import[ \t]+|sys\.modules\[")({_PACKAGE})""", re.MULTILINE)


@functools.cache
def digest(path: str) -> str:
    """Return a digest of a Python file and of all files of these packages that it imports, directly or not."""
    found = hashlib.sha256()
    for file in sorted(closure(Path(path))):
        found.update(file.name.encode() + b"\0" + _content(file))
    return found.hexdigest()


@functools.cache
def package_digest() -> str:
    """Return a digest of every file of these packages: of all that any kernel is compiled from."""
    found = hashlib.sha256()
    for package in PACKAGES:
        for file in sorted(PACKAGE.joinpath(*package.split(".")).rglob("*.py")):
            found.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + _content(file))
    return found.hexdigest()


def closure(path: Path) -> set[Path]:
    """Return a file and all files of these packages that it imports, directly or through others."""
    found, waiting = set(), [path]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imports(file)
    return found


@functools.cache
def _imports(file: Path) -> tuple[Path, ...]:
    text = _content(file).decode(errors="replace")  # a compiled module has no imports to read
    names = set(_MODULE.findall(text))
    for module, imported in _FROM.findall(text):
        # the name may be a module of the package or something in it
        names |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", imported))}
    return tuple(path for name in sorted(names) for path in _files(name))


def _files(module: str) -> Iterator[Path]:
    """Yield the file of a dotted name where it is a module, and the packages' `__init__` that run before it."""
    folder = PACKAGE
    for part in module.split(".")[1:]:
        yield from (path for path in (folder / f"{part}.py", folder / part / "__init__.py") if path.is_file())
        folder = folder / part


@functools.cache
def _content(file: Path) -> bytes:
    return file.read_bytes()
