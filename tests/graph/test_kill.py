"""kill -9 at any moment, between any two renames: a resumed cook has the bytes of one that nobody killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

DRIVER = """
import json, os, random, signal, sys, time
from pathlib import Path
sys.path[:0] = [{here!r}, {root!r}]
from fake_nodes import content, shot
from mpm_nodes.graph.revisions import transaction
from mpm_nodes.graph.cook.executor import execute

END, base = 3, Path({base!r})

def cook(out, crash=None):
    execute(shot(end=END), out=out, resume=True, crash=crash)

def killed(out, crash=None, after=None):
    child = os.fork()
    if child == 0:
        cook(out, crash)
        os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]

def verdict(out, **facts):
    cook(out)
    found = content(out / "r001")
    wrong = sorted(name for name in {{*found, *whole}} if found.get(name) != whole.get(name))
    return dict(facts, wrong=wrong, revisions=len(list(out.glob("r*"))))

labels = []
cook(base / "whole", labels.append)
began = time.perf_counter()
killed(base / "timed")  # not the first, which loads kernels besides
lasted = time.perf_counter() - began
whole = content(base / "whole" / "r001")
results = []
for number in range(len(labels)):
    def crash(label, left=[number]):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
    status = killed(base / f"rename{{number}}", crash)
    results.append(verdict(base / f"rename{{number}}", kind=labels[number], died=os.WIFSIGNALED(status)))
whole_archive = transaction.write_archive
for number in range(1, END + 1):
    def half(path, header, arrays, **options):
        digest = whole_archive(path, header, arrays, **options)
        if header["frame"] == number:  # in the thread, while the nodes behind the solve are cooked
            os.truncate(path, path.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        return digest
    transaction.write_archive = half
    status = killed(base / f"half{{number}}")
    transaction.write_archive = whole_archive
    results.append(verdict(base / f"half{{number}}", kind="half", died=os.WIFSIGNALED(status)))
chance = random.Random(20)
for number in range(6):  # twenty, five hundred: python -m tests.selftest
    out = base / f"random{{number}}"
    deaths = [os.WIFSIGNALED(killed(out, after=chance.uniform(0.0, lasted))) for _ in range(1 + number % 3)]
    lasted *= 1.0 if any(deaths) else 0.5  # the machine has less to do than when it was measured
    results.append(verdict(out, kind="random", died=any(deaths)))
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Cook and kill many times, in a process of its own that forks the victims."""
    here = Path(__file__).parent
    code = DRIVER.format(here=str(here), root=str(here.parent.parent), base=str(tmp_path_factory.mktemp("kill")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_between_renames(results):
    """Death at every step of three commits, before the first rename and after the last one included."""
    renames = [result for result in results if result["kind"] not in ("random", "half")]
    assert len(renames) == 3 * 7 and all(result["died"] for result in renames)
    assert {result["kind"] for result in renames} >= {
        "synced",
        "recorded",
        "renamed stage.txt",
        "before record",
        "committed",
    }
    assert [result for result in renames if result["wrong"] or result["revisions"] != 1] == []


def test_killed_while_a_checkpoint_is_half_written(results):
    """Death in the thread that writes the checkpoint, at each of three frames."""
    halves = [result for result in results if result["kind"] == "half"]
    assert len(halves) == 3 and all(result["died"] for result in halves)
    assert [result for result in halves if result["wrong"] or result["revisions"] != 1] == []


def test_killed_at_random_moments(results):
    """Six seeded moments, some of them two and three deaths in a row; several strike while the cook runs."""
    moments = [result for result in results if result["kind"] == "random"]
    assert len(moments) == 6 and sum(result["died"] for result in moments) >= 2
    assert [result for result in moments if result["wrong"] or result["revisions"] != 1] == []
