"""The package folder of the built-in nodes, and a session of the stand-in for Houdini that has loaded it."""

from __future__ import annotations

import sys

import pytest

from mpm_nodes.graph import registry as registries


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


@pytest.fixture
def houdini(package, tmp_path, monkeypatch):
    """A session with the package loaded, and the program set to this Python's."""
    import fake_hou

    monkeypatch.setenv("MPM_NODES_PROGRAM", f"{sys.executable} -m mpm_nodes.cli")
    with fake_hou.session(package, tmp_path, monkeypatch) as session:
        yield session
