"""A cook keeps within its memory limit and to itself: what it keeps, counts and warns of belongs to no other cook."""

from __future__ import annotations

import ast
import gc
import os
import sys
import threading
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from fake_nodes import REGISTRY, Cloud, calls, shot

import mpm_nodes
from mpm_nodes.data import FrameContext
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore

MEGABYTE = 1 << 20
PACKAGE = Path(mpm_nodes.__file__).parent
alive: weakref.WeakSet = weakref.WeakSet()


def tracked(count: int, fill: float) -> np.ndarray:
    array = np.full(count, fill).view(Tracked)
    alive.add(array)
    return array


class Tracked(np.ndarray):
    """An array whose life can be watched."""

    __hash__ = object.__hash__  # type: ignore[assignment]


@node(category="Test", label="Heavy")
def heavy(ctx: FrameContext, kept: Kept, *, table: int = 0, out: int = 1) -> Cloud:
    """Make a megabyte a frame, and keep a megabyte for each of a few tables.

    Args:
        table: Number of the kept table; a frame that has no table of its own makes it.
        out: Megabytes.
    """
    calls["heavy"] += 1
    which = (table, ctx.frame % 7)
    kept.get(("table", *which), lambda: made(which))
    return Cloud(tracked(out * MEGABYTE // 8, float(ctx.frame)))


def made(which: tuple[int, int]) -> np.ndarray:
    calls["table"] += 1
    return tracked(MEGABYTE // 8, 0.5)


@pytest.fixture(autouse=True)
def no_calls():
    """Counts begin at zero, and the collector looks at nothing older than the test: compiled kernels are millions of objects."""
    calls.clear()
    alive.clear()
    gc.freeze()
    yield
    gc.unfreeze()


def live_bytes() -> int:
    gc.collect()
    return sum(array.nbytes for array in alive)


# ---------------------------------------------------------------- memory
@pytest.mark.parametrize("limit", [0, 3 * MEGABYTE, 10 * MEGABYTE])
def test_all_that_a_cook_keeps_lies_within_its_limit(limit):
    """Published values and what nodes keep share one limit: the bytes that stay alive show it, at every frame."""
    graph = Graph(registry=REGISTRY.extended(heavy.declaration), start=1, end=30)
    graph.add(heavy, "one", table=1)
    graph.add(heavy, "two", table=2)
    peaks = []
    frame_values = 2 * MEGABYTE  # what the sinks of the frame hold while it is cooked, and the result of the one before
    store = MemoryStore(limit)
    execute(graph, store=store, on_event=lambda e: peaks.append(live_bytes()) if e["event"] == "frame_done" else None)
    assert len(peaks) == 30 and max(peaks) <= limit + 2 * frame_values
    assert store.held <= limit and calls["heavy"] == 60
    if limit == 0:
        assert calls["table"] == 60
    else:
        assert max(peaks) > limit // 2 and calls["table"] >= 14


def test_kept_values_are_found_again_while_there_is_room():
    """With package for all, every table is made once, in this cook and in the next one that shares the store."""
    graph = Graph(registry=REGISTRY.extended(heavy.declaration), start=1, end=20)
    graph.add(heavy, "one", table=1)
    store = MemoryStore(100 * MEGABYTE)
    execute(graph, store=store)
    graph.set("one.out", 2)
    execute(graph, store=store)
    assert calls["table"] == 7 and calls["heavy"] == 40


def test_a_view_counts_with_all_that_it_keeps_alive():
    """One row of a large array costs the array."""
    store = MemoryStore(2 * MEGABYTE)
    store.put("row", np.zeros((1000, 1000))[3])
    assert store.held == 0 and len(store) == 0


# ---------------------------------------------------------------- two cooks in one process
@node(category="Test", label="Talk")
def talk(ctx: FrameContext, *, text: str = "") -> Cloud:
    """Warn at every frame, slowly.

    Args:
        text: What to say.
    """
    for _ in range(20):
        warnings.warn(text, stacklevel=1)
        ctx.check_cancel()
        threading.Event().wait(0.0005)
    return Cloud(np.zeros(1))


def same_name(factor: float) -> Registry:
    """A registry whose node `scale` multiplies by a factor of its own."""

    @node(category="Test", label="Scale")
    def scale(ctx: FrameContext, *, by: float = 1.0) -> Cloud:
        """Scale.

        Args:
            by: How much.
        """
        return Cloud(np.full(3, by * factor * ctx.frame))

    return REGISTRY.extended(scale.declaration, talk.declaration)


def test_cooks_in_two_threads_do_not_disturb_each_other():
    """Registries with another node of the same name, settings, limits, warnings and figures: each cook has its own."""
    import mpm_nodes.kernels.compile.jit  # noqa: F401 (numba's import sets variables of its own, once)

    results: dict[int, list] = {1: [], 2: []}
    hooks = (warnings.showwarning, list(warnings.filters), dict(os.environ))
    together = threading.Barrier(2)

    def cook(number: int) -> None:
        graph = Graph(registry=same_name(float(number)), cell_size=0.1 * number, start=1, end=10 * number)
        graph.add("scale", "scale", by=2.0)
        graph.add("talk", "talk", text=f"said by {number}")
        together.wait()
        for _ in range(3):
            results[number].append(execute(graph, memory_limit=number * 10_000, threads=number))

    threads = [threading.Thread(target=cook, args=(number,)) for number in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, cooked in results.items():
        assert len(cooked) == 3
        for result in cooked:
            assert result.outputs["scale"]["cloud"].points.tolist() == [2.0 * number * 10 * number] * 3
            assert result.warnings == (f"talk: said by {number}",)
            assert [each.frame for each in result.figures] == [*range(1, 10 * number + 1)]
    assert (warnings.showwarning, list(warnings.filters), dict(os.environ)) == hooks


def test_a_warning_outside_a_cook_is_the_caller_s():
    """While another thread cooks, a warning of this one goes where it went before."""
    graph = Graph(registry=same_name(1.0), start=1, end=20)
    graph.add("talk", "talk", text="from the node")
    with pytest.warns(UserWarning, match="from outside") as heard:
        thread = threading.Thread(target=execute, args=(graph,))
        thread.start()
        for _ in range(50):
            warnings.warn("from outside", stacklevel=1)
            threading.Event().wait(0.001)
        thread.join()
    assert {str(each.message) for each in heard} == {"from outside"}


def test_a_registry_that_loads_late_is_whole_for_every_thread():
    """A thread that asks while another loads the rest waits, instead of being told that there is nothing."""
    ready = threading.Event()

    def later(registry: Registry) -> None:
        ready.set()
        threading.Event().wait(0.1)
        registry.add(talk.declaration)

    registry = Registry(later=later)
    answers = []
    first = threading.Thread(target=lambda: registry.find("talk"))
    first.start()
    ready.wait()
    answers.append(registry.find("talk"))
    first.join()
    assert answers == [talk.declaration]


def test_the_shared_registry_follows_the_path(tmp_path, monkeypatch):
    """MPM_NODES_PATH is what it is when a graph is made; a graph keeps the registry that it began with."""
    source = Path(__file__).with_name("fake_nodes.py").read_text()
    (tmp_path / "mine.py").write_text(source)
    before = Graph()
    monkeypatch.setenv("MPM_NODES_PATH", str(tmp_path))
    assert "fake_source" in registries.default() and "fake_source" in Graph().registry
    assert "fake_source" not in before.registry
    monkeypatch.delenv("MPM_NODES_PATH")
    assert "fake_source" not in registries.default()


def containers() -> dict[str, int]:
    """Length of every mutable container that is a global of a module of ours."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(("mpm_nodes.graph", "mpm_nodes.nodes", "mpm_nodes.data", "usd_io")):
            for key, value in vars(module).items():
                if isinstance(value, (dict, list, set)) and not key.startswith("__"):
                    found[f"{name}.{key}"] = len(value)
    return found


def test_a_cook_changes_no_container_of_a_module(tmp_path):
    """What modules hold before a cook they hold after it."""
    execute(shot(end=1), out=tmp_path)
    before = containers()
    graph = Graph(registry=REGISTRY.extended(heavy.declaration), start=1, end=5)
    graph.add(heavy, "one")
    execute(graph, out=tmp_path)
    execute(shot(), out=tmp_path)
    assert containers() == before


@pytest.mark.parametrize("path", sorted([*(PACKAGE / "graph").rglob("*.py"), *(PACKAGE / "nodes").glob("*.py")]), ids=str)
def test_no_module_of_graph_or_nodes_remembers_calls(path):
    """No cache decorators and no `global` in these packages; Python's own warnings are the exception."""
    tree = ast.parse(path.read_text())
    for item in ast.walk(tree):
        if isinstance(item, ast.Global):
            assert path.name == "node_warnings.py", f"{path}:{item.lineno}"
        if isinstance(item, ast.FunctionDef):
            names = {ast.unparse(decorator).partition("(")[0] for decorator in item.decorator_list}
            assert not names & {"functools.cache", "functools.lru_cache", "cache", "lru_cache"}, f"{path}:{item.lineno}"
