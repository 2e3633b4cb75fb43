"""The package folder of the built-in nodes, and a session of the stand-in for Houdini that has loaded it."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys

import pytest

from mpm_nodes import cli
from mpm_nodes.graph.declare import registry as registries


@pytest.fixture(scope="session")
def spec():
    """The host specification of the built-in nodes, whatever MPM_NODES_PATH says."""
    from mpm_nodes.hosts.spec import host_spec

    return host_spec(registries.load(path="", entry_points=False))


@pytest.fixture(scope="session")
def package(spec, tmp_path_factory):
    """A package folder as `mpm-nodes host houdini` writes it."""
    from mpm_nodes.hosts.houdini.package import write

    folder = tmp_path_factory.mktemp("package")
    write(spec, folder)
    return folder


PROGRAM = [sys.executable, "-m", "mpm_nodes.cli"]


@pytest.fixture
def houdini(package, tmp_path, monkeypatch):
    """A session with the package loaded, and the program set to this Python's.

    Short calls of the program run in this process; `tests/contracts/test_launches.py` starts it as Houdini does, and so do cooks.
    """
    import fake_hou

    monkeypatch.setenv("MPM_NODES_PROGRAM", shlex.join(PROGRAM))
    with fake_hou.session(package, tmp_path, monkeypatch) as session:
        from mpm_nodes_houdini import process

        started = process.call

        def call(arguments, timeout=120.0):
            if arguments[:3] != PROGRAM:
                return started(arguments, timeout)
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
                code = cli.main(arguments[3:])
            return code, out.getvalue(), errors.getvalue()

        monkeypatch.setattr(process, "call", call)
        yield session
