"""A disk that is full while OpenUSD writes is told in our words: none of its classes, sources or lines reach the user."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mpm_nodes.data import OutputError
from tests.selftest import shot, syscalls

pytest.importorskip("pxr")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or bool(syscalls.available()), reason="needs a Linux that hands system calls over"
)


def told_by_a_cook(out: Path) -> tuple[int, str]:
    """Cook; return the exit code, and all that reaches the user: what is raised and what libraries print."""
    from mpm_nodes.graph.cook.executor import execute

    words = out.parent / "words"
    os.dup2(os.open(words, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(2, 1)
    try:
        execute(shot.walking_shot(1), out=out, resume=True)
    except OutputError as error:
        return error.exit_code, f"{error}\n{words.read_text()}"
    return 0, words.read_text()


def layers_only(fails_at: int, met: list[str]):
    """Return a decision that lets one change of a layer's file fail, by its number, and notes them all."""

    def decide(call: syscalls.Call) -> int:
        name = Path(call.path).name
        if not name.startswith(".tmp-cache.") or name.endswith(".vdb"):
            return 0
        met.append(call.name)
        return errno.ENOSPC if len(met) - 1 == fails_at else 0

    return decide


def test_what_is_told_when_usd_meets_a_full_disk(tmp_path):
    """Every opening, write, rename and flush of a frame's layers fails in turn: exit code 5, the file, and what to do."""
    shot.prepare()

    def cooked(fails_at: int) -> tuple[Any, list[str]]:
        met: list[str] = []
        out = tmp_path / f"out{fails_at}"
        out.mkdir()
        return syscalls.watched(lambda: told_by_a_cook(out), syscalls.WRITES, str(out), layers_only(fails_at, met)), met

    whole, calls = cooked(-1)
    assert whole.answer == (0, "") and {"openat", "pwrite64", "rename", "fsync"} <= set(calls), (whole, calls)
    for number, call in enumerate(calls):
        ending, _ = cooked(number)
        assert ending.error is None and ending.signal == 0, (call, ending)
        code, said = ending.answer
        assert code == 5 and not shot.INSIDE_USD.search(said) and "Traceback" not in said, (call, said)
        assert "is full" in said or "cannot be written" in said, (call, said)


def test_what_openusd_itself_would_say_is_recognised():
    """The pattern that the tests above and the selftest look for finds OpenUSD's own messages, and none of ours."""
    theirs = (
        "Error in 'pxrInternal_v0_25_11__pxrReserved__::Sdf_TextFileFormat::Write' at line 123 in file /u/sdf.cpp : 'No space'",
        "Runtime Error: in _Flush at line 88 of crateFile.cpp -- Failed to write",
        "Failed verification: ' TfErrorMark '",
    )
    assert all(shot.INSIDE_USD.search(text) for text in theirs)
    ours = "out/r001/.tmp-cache.0001.usdc: the disk is full; free some space, then continue with --resume"
    assert not shot.INSIDE_USD.search(ours)
