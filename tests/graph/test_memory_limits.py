"""Limits of the address space, as farms set them, end in a sentence or in a result, never in a signal or in "damaged"."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mpm_nodes.packaged_samples import samples_folder

resource = pytest.importorskip("resource")

PROGRAM = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({bytes}, {bytes})); "
COMMAND = "from mpm_nodes.cli import main; sys.exit(main(sys.argv[1:]))"


def limited(size: float, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM.format(bytes=int(size)) + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("size", [0.3e9, 0.6e9, 1.0e9, 1.5e9])
@pytest.mark.parametrize("command", ["cook", "render", "verify", "demo"])
def test_a_limit_that_libraries_cannot_bear_is_named(size, command):
    """0.3 to 1.5 GB of address space: exit code 5, the limit, what is needed and the cure; no segmentation fault."""
    done = limited(size, COMMAND, command, *(["nowhere"] if command in ("cook", "render") else []))
    assert done.returncode == 5 and f"limited to {size / 1e9:.2g} GB (ulimit -v)" in done.stderr


def test_a_hard_limit_does_not_make_a_volume_damaged(tmp_path):
    """A child cannot raise a hard limit, and does not try: the file is read."""
    read = "from usd_io.volumes import read_volumes; print(*read_volumes(sys.argv[1]))"
    done = limited(4e9, read, str(samples_folder() / "trivet.vdb"))
    assert (done.returncode, done.stdout.split()) == (0, ["mesh2ls_trivet"]), done.stderr


def test_what_the_child_says_last_is_told(tmp_path, monkeypatch):
    """A child that dies before it answers is quoted, and memory is named as a possible cause."""
    from mpm_nodes import children
    from mpm_nodes.data import InputError
    from usd_io.volumes import read_volumes

    script = tmp_path / "dies.py"
    script.write_text("raise ValueError('not enough room')")
    start = children.command(script)
    monkeypatch.setattr(children, "command", lambda *arguments: start)
    with pytest.raises(InputError, match=r"exit status 1: ValueError: not enough room; .*memory.*ulimit -v"):
        read_volumes(samples_folder() / "trivet.vdb")
