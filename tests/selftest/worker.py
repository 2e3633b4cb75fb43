"""The process that does a share of a part: tells each outcome in one line of JSON on its standard output."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from pathlib import Path

from tests.selftest.outcomes import Job

__all__ = ["main"]


def main(module: str, told: str) -> None:
    """Do a job; called in a child of its own."""
    job = Job(**json.loads(told))
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the answer
    os.chdir(job.folder)
    for outcome in importlib.import_module(module).cases(job):
        told_of = {**dataclasses.asdict(outcome), "case": _begun}
        print(json.dumps(told_of), file=answer, flush=True)  # at once: the next case may be the last
    print("{}", file=answer, flush=True)
    answer.close()
    sys.stdout.flush()
    os._exit(0)


_begun = -1
"""Number of the case that began last."""


def at_case(job: Job, number: int) -> None:
    """Note the case that begins, for who looks after this process has died."""
    global _begun
    _begun = number
    Path(job.folder, "case").write_text(str(number))
