"""Python files of users: the folders of MPM_NODES_PATH, and their import with errors that name file and line."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from mpm_nodes.data.errors import InputError, MpmNodesError
from mpm_nodes.regular_files import check_regular

__all__ = ["PATH_VARIABLE", "RegistryError", "fault_of", "import_file", "import_from_folder", "named_places", "user_folders"]

PATH_VARIABLE = "MPM_NODES_PATH"


class RegistryError(MpmNodesError):
    """A user's node file cannot be loaded, or two declarations share an id."""


def user_folders(path: str | None = None) -> list[Path]:
    """Return the folders of user nodes.

    Raises:
        RegistryError: When one does not exist.
    """
    text = os.environ.get(PATH_VARIABLE, "") if path is None else path
    folders = [Path(part).expanduser() for part in text.split(os.pathsep) if part]
    for folder in folders:
        if not folder.is_dir():
            raise RegistryError(f"{PATH_VARIABLE}: {folder} is not a folder; correct or remove it")
    return folders


def import_file(file: Path) -> ModuleType:
    """Import a user's Python file; stages and nodes in it are globals of what is returned.

    Raises:
        RegistryError: When it is a pipe, say, or fails; file and line are named.
    """
    _check(file)
    name = f"{_name_of(file)}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise RegistryError(f"{file}: cannot be imported; check that it is a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba and typing look modules up there
    try:
        with named_places(file.parent):
            spec.loader.exec_module(module)
    except MpmNodesError:
        del sys.modules[name]
        raise
    return module


def import_from_folder(file: Path) -> ModuleType:
    """Import a Python file of a folder as a module of a package, so that the files of the folder may import from each other.

    Raises:
        RegistryError: When it, or what it imports, fails; file and line are named.
    """
    _check(file)
    package = _name_of(file.parent)
    if package not in sys.modules:
        module = ModuleType(package)
        module.__path__ = [str(file.parent)]
        sys.modules[package] = module
    with named_places(file.parent):
        return importlib.import_module(f"{package}.{file.stem}")


def _check(file: Path) -> None:
    try:
        check_regular(file)  # a pipe would be waited for
    except InputError as error:
        raise RegistryError(f"{PATH_VARIABLE}: {error}") from error


def _name_of(path: Path) -> str:
    return f"mpm_nodes_user_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def named_places(folder: Path) -> Iterator[None]:
    """Say where in a user's folder an import failed.

    Raises:
        RegistryError: With file and line.
    """
    try:
        yield
    except MpmNodesError:
        raise
    except (Exception, SystemExit) as error:  # a file that ends the program is at fault as one that fails
        raise RegistryError(
            f"{_innermost(error, folder)}: {fault_of(error)}; fix the file or take it off {PATH_VARIABLE}"
        ) from error


def _innermost(error: BaseException, folder: Path) -> str:
    """Return the last place in a folder that an error came through."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{frame.filename}:{frame.lineno}" for frame in frames if folder in Path(frame.filename).parents]
    return lines[-1] if lines else f"{folder}:1"


def fault_of(error: BaseException) -> str:
    """Return an error in one line."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(text.split())}"
