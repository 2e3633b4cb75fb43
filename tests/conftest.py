"""Settings of every test run."""

import contextlib
import gc
import importlib.util
import os
import signal
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path

import long_tests
import numba
import pytest
from hypothesis import settings

from mpm_nodes.data import all_domains
from mpm_nodes.kernels.compile.jit import most_threads  # before threads start: it says which pool, and how long they wait
from mpm_nodes.packaged_samples import samples_folder
from mpm_nodes.physics import all_physics

TESTS = Path(__file__).parent

# `tests.selftest` has this one name, here and in the processes that it starts, which look for it beside the package
sys.path.append(str(TESTS.parent))

# tests build hundreds of kinds of solves on caches of every age: none of them shall start processes beside it
os.environ.setdefault("MPM_NODES_COMPILE_HELPER", "0")

# background jobs of a shell without job control ignore Ctrl-C, and so does what they start: tests of stops would wait for ever
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# nor would what ends with its terminal do so in tests that nohup started
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# makes `mpm_nodes_samples` this checkout's, also where an older copy is installed
samples_folder()

# how long an example takes says how busy the machine is, and the first one compiles
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _each_worker_has_its_own_cores():
    """Let kernels run on this worker's share of the cores unless a test says otherwise: threads that share a core wait for it."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    numba.set_num_threads(max(1, most_threads() // workers))


all_physics("")  # domains know their fields from now on


@pytest.fixture(autouse=True)
def _fields_of_users_go_with_the_test():
    """A phenomenon of a user's folder adds its fields for as long as the process lives: other tests shall not see them."""
    known = [(domain.fields, dict(domain.fields)) for domain in all_domains()]
    yield
    for fields, before in known:
        if fields != before:
            fields.clear()
            fields.update(before)


LONG = long_tests.known()


@cache
def _file(path):
    """Return the name of a file of tests as the list has it."""
    return path.relative_to(TESTS if path.is_relative_to(TESTS) else path.parent).as_posix()


def _named(config):
    """Return whether the command names single tests: those are always collected, so that it says why one does not run."""
    return any("::" in argument for argument in config.args)


def _short(config):
    """Return whether only what is neither slow nor long runs, as without options."""
    return config.option.markexpr == "not slow and not long" and not _named(config)


def pytest_ignore_collect(collection_path, config):
    """Do not read files all tests of which are long, if none of them would run: collecting took 14 s of a run of 360."""
    return True if collection_path.suffix == ".py" and _short(config) and _file(collection_path) in LONG else None


def pytest_pycollect_makeitem(collector, name):
    """Nor make the cases of long functions: that is most of what collecting does."""
    return [] if _short(collector.config) and f"{_file(collector.path)}::{name}" in LONG else None


def pytest_itemcollected(item):
    """Mark what takes long, unless it is slow: `long` and `slow` are run apart."""
    file = _file(item.path)
    name = f"{file}::{getattr(item, 'originalname', item.name)}"
    if not LONG.keys().isdisjoint((file, name)) and item.get_closest_marker("slow") is None:
        item.add_marker(pytest.mark.long)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Let the longest files begin, each on one worker as a whole: one that ran alone at the end would keep the others waiting."""
    seconds = Counter()
    for name, taken in LONG.items():
        seconds[TESTS / name.partition("::")[0]] += taken
    items.sort(key=lambda item: -seconds[item.path])


def pytest_runtest_setup(item):
    """Leave out, in a copy of the package without some phenomena, the tests that say that they need one of them."""
    for mark in item.iter_markers("phenomena"):
        missing = set(mark.args) - {each.name for each in all_physics()}
        if missing and missing <= WITHOUT:
            pytest.skip(f"there is no {', '.join(sorted(missing))} here")
        assert not missing, f"{item.nodeid} needs phenomena that are unknown: {missing}"


WITHOUT = set(filter(None, os.environ.get("MPM_NODES_TESTED_WITHOUT", "").split(",")))
"""Phenomena that are not there on purpose."""


class Stopwatch:
    """What a stretch of a test took, in seconds of the processor; infinite while it runs."""

    seconds = float("inf")


@pytest.fixture
def stopwatch():
    """Return a context that measures this thread alone, without the garbage collector: it goes over all that earlier tests left."""

    @contextlib.contextmanager
    def measuring():
        watch, collects = Stopwatch(), gc.isenabled()
        gc.disable()
        begin = time.thread_time()
        try:
            yield watch
            watch.seconds = time.thread_time() - begin
        finally:
            if collects:
                gc.enable()

    return measuring


LACKING = {
    "OpenVDB: no usable module": "needs OpenVDB",
    "no OpenVDB here: ": "needs OpenVDB",
    "No module named 'bpy'": "needs Blender's wheel (bpy)",
}
"""What a failing test or its command says on a machine without a library, and the reason for which it is skipped there instead."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip what failed for lack of OpenVDB or of Blender: Python 3.12 has no wheel of either. Elsewhere it fails."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for sign, reason in LACKING.items():
        if sign in report.longreprtext + report.capstderr and not there(reason):
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, f"Skipped: {reason}; `mpm-nodes doctor` says how to get it")


def there(reason: str) -> bool:
    """Return whether this interpreter has the library of a reason."""
    if "bpy" in reason:
        return importlib.util.find_spec("bpy") is not None
    from mpm_nodes.data import InputError
    from usd_io import openvdb_module

    try:
        openvdb_module.find_openvdb()
    except InputError:
        return False
    return True
