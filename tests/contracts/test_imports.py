"""Floors: no import climbs, and light modules stay light."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mpm_nodes

PACKAGE = Path(mpm_nodes.__file__).parent
ROOT = PACKAGE.parent
OURS = ("mpm_nodes", "usd_io")
HEAVY = ("numba", "llvmlite", "pxr", "openvdb", "pyopenvdb", "bpy", "hou", "PIL")

FLOORS = {
    "mpm_nodes.kernels": 1,
    "mpm_nodes.data": 1,
    "mpm_nodes.search_path": 1,
    "mpm_nodes.children": 1,
    "mpm_nodes.compiling": 1,
    "mpm_nodes.orphans": 1,
    "mpm_nodes.reads": 1,
    "mpm_nodes.regular_files": 1,
    "mpm_nodes.terminal": 1,
    "mpm_nodes.user_files": 1,
    "mpm_nodes.materials": 2,
    "usd_io": 2,
    "mpm_nodes.graph": 2,
    "mpm_nodes.solver": 3,
    "mpm_nodes.hosts": 3,
    "mpm_nodes.physics": 1,
}
PARTS = dict.fromkeys(("kernels", "physics", "fields", "materials", "unread", "retired", "preflight"), 1) | {
    "numerics": 3,
    "stages": 3,
}
"""Floors of what lies in the folder of a phenomenon; its nodes and problems are on the top floor."""
TOP_FLOOR = 4
"""Every other package: nodes, verification, the command line and what it runs."""

LIGHT_PACKAGES = ("graph", "nodes", "hosts")
AT_HOME = {
    "kernels": {"numba", "llvmlite"},
    "materials": {"numba"},
    "solver": {"numba"},
    "usd_io": {"pxr", "openvdb", "pyopenvdb"},
}

SOURCES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "usd_io").rglob("*.py")])


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PHENOMENA = sorted(path.parent.name for path in PACKAGE.glob("physics/*/physics.py"))


def long_name(module: str) -> str:
    """Return the package that a module lies in, whether there is one or not: of a phenomenon, each part is one."""
    parts = module.split(".")
    if parts[:2] == ["mpm_nodes", "physics"] and len(parts) > 2 and parts[2] in PHENOMENA:
        return ".".join(parts[:4])
    return ".".join(parts[: 1 if parts[0] == "usd_io" else 2])


PACKAGES = {long_name(module_of(path)) for path in SOURCES} - {"mpm_nodes"}


def package_of(module: str) -> str | None:
    """Return the package of a module; the package's front door, which imports on demand, is none."""
    return name if (name := long_name(module)) in PACKAGES else None


def floor_of(package: str) -> int:
    if package.startswith("mpm_nodes.physics.") and package.count(".") == 3:
        return PARTS.get(package.rpartition(".")[2], TOP_FLOOR)
    return FLOORS.get(package, TOP_FLOOR)


def imports_of(path: Path, top_level_only: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every import; those for type checkers alone do not count."""
    tree = ast.parse(path.read_text())
    waiting: list[ast.AST] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, ast.Import):
            yield from ((item.lineno, alias.name) for alias in item.names)
        elif isinstance(item, ast.ImportFrom):
            yield from _from_import(item, path)
        for child in ast.iter_child_nodes(item):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if top_level_only and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            waiting.append(child)


def _from_import(item: ast.ImportFrom, path: Path) -> Iterator[tuple[int, str]]:
    base = item.module or ""
    if item.level:
        package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
        home = package.split(".")[: len(package.split(".")) - item.level + 1]
        base = ".".join([*home, *([item.module] if item.module else [])])
    for alias in item.names:  # `from mpm_nodes import solver` names a package as well
        yield item.lineno, f"{base}.{alias.name}" if package_of(base) is None else base


def imported_packages(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, module, package) of every import of another package."""
    for line, name in imports_of(path):
        target = package_of(name)
        if target is not None and target != package_of(module_of(path)):
            yield line, name, target


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_no_import_climbs(path: Path):
    """A module imports from its own floor and from lower ones."""
    package = package_of(module_of(path))
    for line, name, target in imported_packages(path):
        climbs = package is not None and floor_of(target) > floor_of(package)
        assert not climbs, f"{path.relative_to(ROOT)}:{line} imports {name}: from floor {floor_of(package)} to {floor_of(target)}"


def test_packages_do_not_import_in_circles():
    """Packages of one floor may import from each other one way only."""
    edges = {(package_of(module_of(path)), target) for path in SOURCES for _, _, target in imported_packages(path)}
    below = {package: {target for source, target in edges if source == package} for package in PACKAGES}
    for _ in PACKAGES:
        below = {package: near | set().union(*(below[other] for other in near)) for package, near in below.items()}
    assert [package for package in sorted(PACKAGES) if package in below[package]] == []


def phenomenon_of(module: str) -> str:
    """Return the phenomenon that a module belongs to; "" where it belongs to the core."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["mpm_nodes", "physics"] and len(parts) > 2 and parts[2] in PHENOMENA else ""


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_the_core_knows_no_phenomenon(path: Path):
    """Phenomena import from those that they need; all others ask `physics.all_physics`."""
    from mpm_nodes.physics import all_physics

    home = phenomenon_of(module_of(path))
    allowed = {home, *(name for each in all_physics() if each.name == home for name in each.needs)} if home else set()
    for line, name in imports_of(path):
        found = phenomenon_of(name)
        assert not found or found in allowed, f"{path.relative_to(ROOT)}:{line} imports {name}"


def test_only_the_sample_command_knows_the_samples():
    """Their list, sizes and study are not part of the package: one command imports them, when it runs."""
    for path in SOURCES:
        for line, name in imports_of(path):
            if name.startswith("mpm_nodes_samples"):
                assert path == PACKAGE / "commands" / "sample.py", f"{path.relative_to(ROOT)}:{line} imports {name}"
        assert not any(name.startswith("mpm_nodes_samples") for _, name in imports_of(path, top_level_only=True)), path


def modules_imported(path: Path) -> set[str]:
    """Return the modules of this repository that a module names anywhere: in functions and for type checkers too."""
    found = set()
    for item in ast.walk(ast.parse(path.read_text())):
        if isinstance(item, ast.Import):
            found |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom):
            base = item.module or ""
            if item.level:
                package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
                home = package.split(".")[: len(package.split(".")) - item.level + 1]
                base = ".".join([*home, *([item.module] if item.module else [])])
            names = {f"{base}.{alias.name}" for alias in item.names}
            found |= (names & MODULES.keys()) or {base}
    return found & MODULES.keys() - {module_of(path)}


MODULES = {module_of(path): path for path in SOURCES}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of two or more modules that reach each other, each sorted."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        near, waiting = set(), [start]
        while waiting:
            new = edges[waiting.pop()] - near
            near |= new
            waiting += new
        reached[start] = near
    found = {tuple(sorted(b for b in edges if b in reached[a] and a in reached[b])) for a in edges}
    return sorted(list(circle) for circle in found if len(circle) > 1)


def test_circles_are_found():
    """Two modules that name each other, and three in a ring; what only hangs on one is not part of it."""
    edges = {"a": {"b"}, "b": {"a", "x"}, "c": {"d"}, "d": {"e"}, "e": {"c"}, "x": set(), "y": {"a"}}
    assert circles(edges) == [["a", "b"], ["c", "d", "e"]]


def test_modules_do_not_import_in_circles():
    """Within a package and between packages, wherever the import stands: a late import only hides a circle."""
    assert circles({name: modules_imported(path) for name, path in MODULES.items()}) == []


def test_graph_knows_no_physics():
    """The graph package imports nothing of this package but data types, files, words, the door of phenomena, itself."""
    ground = tuple(f"mpm_nodes.{each}" for each in ("graph", "data", "regular_files", "terminal", "user_files", "compiling", "__"))
    for path in (PACKAGE / "graph").rglob("*.py"):
        for line, name in imports_of(path):
            if name.split(".")[0] in ("mpm_nodes", "usd_io"):
                known = name in ("mpm_nodes", "mpm_nodes.physics") or name.startswith(ground)
                assert known, f"{path.relative_to(ROOT)}:{line} imports {name}"


GRAPH = "mpm_nodes.graph"
GRAPH_LAYERS = ("reports", "files", "time", "values", "declare", "document", "plan", "revisions", "cook")
"""Sub-packages of graph, the lowest first: each imports from itself and from those before it."""


def climbs_in_graph(edges: dict[str, set[str]]) -> list[str]:
    """Return the imports that go up, or to a place without a layer, among those of one module of the graph package by another."""
    layer = {f"{GRAPH}.{name}": place for place, name in enumerate(GRAPH_LAYERS)}

    def layer_of(module: str) -> int:
        return layer.get(".".join(module.split(".")[:3]), len(layer))

    inner = ((source, target) for source in edges for target in edges[source] if target.startswith(GRAPH))
    found = [(source, target) for source, target in inner if source.startswith(GRAPH) and layer_of(target) > layer_of(source)]
    return sorted(f"{source} imports {target}" for source, target in found)


def test_climbs_in_graph_are_found():
    """Down, within a layer and from outside is well; up is not, nor is a folder that has no layer."""
    well = {f"{GRAPH}.plan.a": {f"{GRAPH}.plan.b", f"{GRAPH}.files.c", "mpm_nodes.data"}, "mpm_nodes.nodes.d": {f"{GRAPH}.cook.e"}}
    assert climbs_in_graph(well) == []
    assert climbs_in_graph({f"{GRAPH}.plan.a": {f"{GRAPH}.cook.b"}}) == [f"{GRAPH}.plan.a imports {GRAPH}.cook.b"]
    assert climbs_in_graph({f"{GRAPH}.plan.a": {f"{GRAPH}.new.b"}}) == [f"{GRAPH}.plan.a imports {GRAPH}.new.b"]


def test_no_import_climbs_within_graph():
    """Its sub-packages import downwards, and every module lies in one of them; imports in functions and for type checkers count."""
    folder = PACKAGE / "graph"
    assert climbs_in_graph({name: modules_imported(path) for name, path in MODULES.items() if folder in path.parents}) == []
    lying = {path.relative_to(folder).parts[0] for path in folder.rglob("*.py")}
    assert lying == {"__init__.py", *GRAPH_LAYERS}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_heavy_packages_stay_where_they_belong(path: Path):
    """numba, pxr, OpenVDB and the hosts' own packages are imported at module level only in the packages that need them."""
    if path.name == "openvdb_module.py" or path.parent.name == "blender_addon":  # the add-on runs inside Blender
        return
    home = next((part for part in path.relative_to(ROOT).parts if part in (*AT_HOME, *LIGHT_PACKAGES)), "")
    for line, name in imports_of(path, top_level_only=True):
        package = name.split(".")[0]
        allowed = package not in HEAVY or package in AT_HOME.get(home, ())
        allowed = allowed or (package == "hou" and "mpm_nodes_houdini" in path.parts)  # runs inside Houdini
        assert allowed, f"{path.relative_to(ROOT)}:{line} imports {name} at module level"


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import mpm_nodes",
        "from mpm_nodes import Graph, load_graph, node, stage, Particles, Material",
        "from mpm_nodes.graph.declare import registry; assert registry.nodes()",
        "from mpm_nodes.graph.document.document import Graph; Graph().add('emit_box', 'box')",
        "import mpm_nodes.cli",
    ],
)
def test_light_entrances_load_nothing_heavy(code: str):
    """Importing the package, listing nodes and building a graph load neither numba nor pxr nor a host."""
    assert not loaded_after(code) & set(HEAVY)


def test_public_names_exist():
    """Every name that the package offers can be had."""
    for name in mpm_nodes.__all__:
        assert getattr(mpm_nodes, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        mpm_nodes.nonsense  # noqa: B018


# In halves, so that this file does not hold them itself: the place where the package was written, unfinished marks.
_HALVES = (("/wo", "rk/"), ("shar", "ed/"), ("CONT", "RACT.md"), ("TO", "DO"), ("FIX", "ME"))
BANNED = tuple(first + second for first, second in _HALVES)
SHUNNED_NAMES = {"utils", "core", "common", "manager", "helpers"}


ELSEWHERE = ("blender_addon", "mpm_nodes_houdini", "blender_script.py")
"""Run by other programs, which load them in their own tests."""


def test_imports_inside_functions_find_their_names():
    """What a function imports when it is called is there: perhaps no other test comes by, and some callers expect import errors."""
    missing = []
    for root in (PACKAGE, ROOT / "usd_io", ROOT / "samples"):
        for path in sorted(root.rglob("*.py")):
            if any(part in ELSEWHERE for part in path.parts):
                continue
            for item in ast.walk(ast.parse(path.read_text())):
                ours = isinstance(item, ast.ImportFrom) and not item.level and str(item.module).startswith(OURS)
                if not ours or not item.col_offset:
                    continue
                module = importlib.import_module(item.module)
                for name in (alias.name for alias in item.names):
                    part = hasattr(module, "__path__") and importlib.util.find_spec(f"{item.module}.{name}")
                    if not part and not hasattr(module, name):
                        missing.append(f"{path.relative_to(ROOT)}:{item.lineno}: {item.module}.{name}")
    assert missing == []


def texts() -> list[Path]:
    kinds = {".py", ".md", ".json", ".toml", ".cfg", ".yml", ".txt"}
    folders = [ROOT / name for name in ("mpm_nodes", "usd_io", "tests", "docs", "samples", "benchmarks", ".ci")]
    files = [path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.suffix in kinds]
    return sorted([*files, *(path for path in ROOT.glob("*") if path.suffix in kinds)])


def test_no_text_names_the_place_where_it_was_written():
    """Paths of a workplace, unfinished marks and notes to oneself do not belong into the repository."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in texts()
        if {"__pycache__", "node_modules"}.isdisjoint(path.parts)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for word in BANNED
        if word in line
    ]
    assert found == []


def test_no_room_is_called_after_nothing():
    """No module is called utils, core, common, manager or helpers."""
    found = [str(path.relative_to(ROOT)) for path in SOURCES if set(path.relative_to(ROOT).with_suffix("").parts) & SHUNNED_NAMES]
    assert found == []


def test_no_test_means_another_folders_module():
    """pytest puts each folder of tests first on the path: one name is one module, and what they all have is imported by none."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    names = [path.name for path in files if path.name not in ("conftest.py", "__main__.py")]
    assert sorted(names) == sorted(set(names))
    found = [
        str(path.relative_to(ROOT))
        for path in files
        for item in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(item, ast.ImportFrom) and item.module == "conftest")
        or (isinstance(item, ast.Import) and "conftest" in [each.name for each in item.names])
    ]
    assert found == []
