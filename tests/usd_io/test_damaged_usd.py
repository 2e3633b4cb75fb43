"""Damage that OpenUSD meets only when a value is read is told in our words, like any other."""

from __future__ import annotations

import collections
import json
import subprocess
import sys

import pytest

pytest.importorskip("pxr")

READ = """
import collections, json, random, sys
from pathlib import Path
from mpm_nodes.packaged_samples import samples_folder
from mpm_nodes.data import InputError
from usd_io.collider_meshes import StageMeshes

found, whole = collections.Counter(), (samples_folder() / "head.usdc").read_bytes()
for seed in range(60):
    raw, chance = bytearray(whole), random.Random(seed)
    place = chance.randrange(len(raw) // 2)
    raw[place : place + 64] = chance.randbytes(64)
    path = Path(sys.argv[1])
    path.write_bytes(raw)
    try:
        meshes = StageMeshes(path)
        meshes.topology(1.0), meshes.points(1.0), meshes.deforms(), meshes.authored_codes(0.0, 9.0)
        found["read"] += 1
    except InputError as error:
        found["is damaged" if ": is damaged (" in str(error) else "refused"] += 1
    except Exception as error:
        found[f"{type(error).__name__}: {error}"] += 1
print(json.dumps(found))
"""


def test_damaged_values_are_input_errors(tmp_path):
    """Sixty stages with noise in them: each is read or refused by an InputError, some while their arrays are unpacked."""
    command = [sys.executable, "-c", READ, str(tmp_path / "damaged.usdc")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found = collections.Counter(json.loads(done.stdout))
    assert set(found) <= {"read", "refused", "is damaged"} and found["is damaged"] >= 3, found
