"""The script that waits for a card runs: here on kernels that the CPU's compiler made."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gpu
import pytest

from mpm_nodes.kernels.cuda import device
from tests.kernels.cuda.traced import needs_compiler


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a part on the device that stands in for a card; returns the exit code and what was kept."""
    monkeypatch.setattr(device, "open_device", device.open_device)  # put back afterwards
    monkeypatch.setattr(gpu, "COPIED", 1 << 16)

    def of(part, *options):
        code = gpu.main([part, "--emulated", "--quick", "--out", str(tmp_path), *options])
        return code, json.loads((tmp_path / "gpu.json").read_text())[part]

    return of


@needs_compiler
def test_scenes_are_compared_and_rows_are_timed(run, tmp_path, monkeypatch):
    """Each part adds to the same files; what is there is not measured again, and the tables hold every row."""
    code, kept = run("check")
    assert code == 0 and len(kept) == 3 and all(units <= gpu.fusion_scenes.WITHIN for units in kept.values())
    code, kept = run("table", "--only", "0.002 M neo_hookean quadratic")
    assert code == 0 and {row["steps"] for row in kept.values()} == {2} and all(row["rate"] > 0.0 for row in kept.values())
    tables = (tmp_path / "gpu.md").read_text()
    assert all(f"| {label} |" in tables for label in kept)
    monkeypatch.setattr(gpu, "_timed", None)
    assert run("table", "--only", "0.002 M neo_hookean quadratic") == (0, kept)


def test_the_table_covers_what_was_asked_for():
    """Every combination at 8 million, each single choice at the other sizes; labels are names of their own."""
    rows = gpu.rows(emulated=False)
    assert len({row.label for row in rows}) == len(rows) == 4 * 2 * 2 * 2 + 2 * (1 + 3 + 1 + 1 + 1)


def test_without_a_card_it_says_why(tmp_path, capsys, monkeypatch):
    """And measures nothing."""
    monkeypatch.setitem(sys.modules, "cuda", None)
    assert gpu.main(["check", "--out", str(tmp_path)]) == 2
    assert "mpm-nodes[cuda]" in capsys.readouterr().err and not list(Path(tmp_path).iterdir())
