"""Every node and stage that graph files may name: built in, in folders on MPM_NODES_PATH, or from entry points.

Nothing is imported before the first question. Graph files never name code to load; only the environment does.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import mpm_nodes
from mpm_nodes.data import MpmNodesError
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.declare.decorators import Declaration, NodeDeclaration, StageDeclaration
from mpm_nodes.physics import DECLARATION, Physics, RetiredNode, all_physics
from mpm_nodes.user_files import PATH_VARIABLE, RegistryError, fault_of, import_file, user_folders

NODE_MODULES = (
    "mpm_nodes.nodes.materials",
    "mpm_nodes.nodes.emit",
    "mpm_nodes.nodes.retime",
    "mpm_nodes.nodes.secondary",
    "mpm_nodes.nodes.streams",
    "mpm_nodes.nodes.drops",
    "mpm_nodes.nodes.measure",
    "mpm_nodes.nodes.collide",
    "mpm_nodes.nodes.collider_contacts",
    "mpm_nodes.nodes.fields",
    "mpm_nodes.nodes.fields_of_bodies",
    "mpm_nodes.nodes.fields_of_curves",
    "mpm_nodes.nodes.fields_of_files",
    "mpm_nodes.nodes.fields_of_pictures",
    "mpm_nodes.nodes.attributes",
    "mpm_nodes.nodes.fields_of_particles",
    "mpm_nodes.nodes.forces",
    "mpm_nodes.nodes.goals",
    "mpm_nodes.nodes.attachments",
    "mpm_nodes.nodes.moving",
    "mpm_nodes.nodes.solve",
    "mpm_nodes.nodes.surface",
    "mpm_nodes.nodes.pieces",
    "mpm_nodes.nodes.deform_mesh",
    "mpm_nodes.nodes.colours",
    "mpm_nodes.nodes.looks",
    "mpm_nodes.nodes.caches",
    "mpm_nodes.nodes.export",
)
STAGE_PACKAGE = "mpm_nodes.solver.stages"
ENTRY_POINTS = "mpm_nodes"
LISTING = "mpm-nodes nodes"
"""Command that lists nodes, stages, presets and materials; followed by one of them, it lists its ports and knobs."""


class Registry:
    """Nodes and stages by id, in one namespace.

    Args:
        declarations: What it holds.
        presets: Files of substep presets by name.
        later: Adds what is slow to import; called when a name is not found or stages are asked for.

    Attributes:
        retired: By type of nodes that are no more, what stands for them in files that have them (`graph.document.retired`).

    Raises:
        RegistryError: When an id is given twice; both places are named.
    """

    def __init__(
        self,
        declarations: Iterable[Declaration] = (),
        presets: Mapping[str, Path] | None = None,
        later: Callable[[Registry], None] | None = None,
    ) -> None:
        self._declarations: dict[str, Declaration] = {}
        self._later = later
        self._guard = threading.RLock()
        self.presets: dict[str, Path] = dict(presets or {})
        self.retired: dict[str, RetiredNode] = {}
        self.add_all(declarations)

    def add(self, declaration: Declaration) -> None:
        """Add a declaration; adding the same one again is not an error (modules import from each other)."""
        known = self._declarations.get(declaration.id)
        if known is not None and known.function is not declaration.function:
            raise RegistryError(f"{declaration.id}: declared twice, in {known.place} and {declaration.place}; rename one")
        self._declarations[declaration.id] = declaration

    def add_all(self, declarations: Iterable[Declaration]) -> None:
        """Add several declarations; see `add`."""
        for declaration in declarations:
            self.add(declaration)

    def add_module(self, module: ModuleType) -> None:
        """Add every node and stage that is a global of the module."""
        for value in list(vars(module).values()):
            declaration = getattr(value, "declaration", None)
            if isinstance(declaration, Declaration):
                self.add(declaration)

    def nodes(self) -> dict[str, NodeDeclaration]:
        """Return all nodes by id, sorted."""
        return {name: d for name, d in sorted(self._declarations.items()) if isinstance(d, NodeDeclaration)}

    def stages(self) -> dict[str, StageDeclaration]:
        """Return all stages by id, sorted."""
        return {d.id: d for d in self if isinstance(d, StageDeclaration)}

    def find(self, name: str) -> Declaration | None:
        """Return a declaration by id, or None."""
        if name not in self._declarations:
            self._load_rest()
        return self._declarations.get(name)

    def get(self, name: str) -> Declaration:
        """Return a declaration by id.

        Raises:
            RegistryError: When there is none; near names are given.
        """
        declaration = self.find(name)
        if declaration is None:
            raise RegistryError(f"{name}: there is no such node or stage; {nearest_type(name, self._declarations)}")
        return declaration

    def extended(self, *declarations: Declaration) -> Registry:
        """Return a registry that holds `declarations` besides all of this one, which stays as it is.

        Raises:
            RegistryError: When an id is taken by another function.
        """
        wider = Registry(self._declarations.values(), self.presets, later=lambda new: new.add_all(self))
        wider.retired = self.retired
        for declaration in declarations:
            wider.find(declaration.id)  # so that a clash with what loads later is seen now
            wider.add(declaration)
        return wider

    def add_presets(self, folder: Path) -> None:
        """Add every preset of a folder: NAME.json.

        Raises:
            RegistryError: When a name is taken; both files are named.
        """
        for file in sorted(folder.glob("*.json")):
            if file.stem in self.presets:
                raise RegistryError(f"{file}: {self.presets[file.stem]} is called {file.stem} as well; rename one")
            self.presets[file.stem] = file

    def _load_rest(self) -> None:
        with self._guard:  # another thread waits until all is there; the loading itself asks again
            later, self._later = self._later, None
            if later is not None:
                later(self)

    def __iter__(self) -> Iterator[Declaration]:
        self._load_rest()
        return iter(self._declarations[name] for name in sorted(self._declarations))

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None


def nearest_type(name: Any, known: Iterable[str] | Callable[[], Iterable[str]]) -> str:
    """Return a cure for an unknown node or stage: `nearest`, and where those of one's own are looked for."""
    folders = os.environ.get(PATH_VARIABLE, "")
    return f"{nearest(name, known, LISTING)}; your own are read from the folders of {PATH_VARIABLE} ({folders or 'not set'})"


# ---------------------------------------------------------------- loading
def load(path: str | None = None, builtin: bool = True, entry_points: bool = True) -> Registry:
    """Load a registry.

    Args:
        path: Folders of user nodes, separated as in PATH; None takes the environment variable MPM_NODES_PATH.
        builtin: Whether to load this package's nodes and stages.
        entry_points: Whether to load installed packages that offer the entry point group "mpm_nodes".

    Raises:
        RegistryError: When a user file is broken (file and line are named) or an id is given twice.
    """
    phenomena = all_physics(path, builtin)
    registry = Registry(later=lambda new: _add_stages(new, phenomena, builtin))
    if builtin:
        for name in NODE_MODULES:
            registry.add_module(importlib.import_module(name))
        registry.add_presets(Path(mpm_nodes.__file__).parent / "solver" / "presets")
    for physics in phenomena:
        registry.add_presets(physics.folder / "presets")
        registry.retired |= physics.retired
        for module in physics.modules("nodes"):
            registry.add_module(module)
    for folder in user_folders(path):
        if (folder / DECLARATION).is_file():
            continue  # a phenomenon
        registry.add_presets(folder)
        for file in sorted(folder.glob("[!_]*.py")):
            registry.add_module(import_file(file))
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS) if entry_points else ():
        _add_entry_point(registry, entry)
    return registry


def _add_stages(registry: Registry, phenomena: Iterable[Physics], builtin: bool) -> None:
    """Add the stages of this package and of phenomena; their kernels need numba, so they are imported when first asked for."""
    for name in importlib.import_module(STAGE_PACKAGE).MODULES if builtin else ():
        registry.add_module(importlib.import_module(f"{STAGE_PACKAGE}.{name}"))
    for physics in phenomena:
        for module in physics.modules("stages"):
            registry.add_module(module)


def _add_entry_point(registry: Registry, entry: importlib.metadata.EntryPoint) -> None:
    """Add an installed package's module, or its single node or stage."""
    try:
        loaded = entry.load()
    except MpmNodesError:
        raise
    except Exception as error:
        place = f"entry point {entry.name} = {entry.value}"
        raise RegistryError(f"{place}: {fault_of(error)}; fix or uninstall that package") from error
    if isinstance(loaded, ModuleType):
        registry.add_module(loaded)
    elif isinstance(getattr(loaded, "declaration", None), Declaration):
        registry.add(loaded.declaration)


# ---------------------------------------------------------------- the registry that everyone shares
_GUARD = threading.Lock()
_LOADED: dict[str, Registry] = {}
"""Shared registries by the value of MPM_NODES_PATH that they were loaded for; they are not changed after that."""


def default() -> Registry:
    """Return the registry for today's MPM_NODES_PATH, loaded once."""
    path = os.environ.get(PATH_VARIABLE, "")
    with _GUARD:
        if path not in _LOADED:
            _LOADED[path] = load(path)
        return _LOADED[path]


def nodes() -> dict[str, NodeDeclaration]:
    """Return all nodes of the shared registry by id."""
    return default().nodes()


def stages() -> dict[str, StageDeclaration]:
    """Return all stages of the shared registry by id."""
    return default().stages()


def get(name: str) -> Declaration:
    """Return a declaration of the shared registry by id; `RegistryError` names the nearest when there is none."""
    return default().get(name)
