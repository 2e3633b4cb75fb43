"""What tests of a GPU's kernels share."""

import os

import pytest


@pytest.fixture(scope="session")
def device_folder(tmp_path_factory):
    """Return where kernels that are compiled for the emulation are kept, for all files and processes of this run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "emulated_kernels"
