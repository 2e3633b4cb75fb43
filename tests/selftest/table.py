"""The figures of a selftest, as columns of text, as Markdown and as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

import mpm_nodes
from tests.selftest.parts import Part
from tests.selftest.session import Session

__all__ = ["facts", "markdown", "text"]

COLUMNS = ("part", "what was tried", "cases", "how they ended", "slowest", "memory", "against a promise")


def _rows(session: Session) -> list[tuple[str, ...]]:
    """Return the cells of every row."""
    found = []
    for row in session.rows.values():
        if row.skipped and not row.cases:
            found.append((row.part, row.name, "0", f"skipped: {row.skipped}", "", "", ""))
            continue
        endings = ", ".join(
            f"{count:,} {ending}" if len(row.endings) > 1 else ending for ending, count in row.endings.most_common()
        )
        slowest = f"{row.seconds:.2f} s" if row.seconds else ""
        memory = f"{row.megabytes:.0f} MB" if row.megabytes else ""
        found.append((row.part, row.name, f"{row.cases:,}", endings, slowest, memory, str(row.against)))
    return found


def text(session: Session) -> str:
    """Return the table as columns, with what went against a promise below it."""
    rows = [COLUMNS, *_rows(session)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *_faults(session)])


def markdown(session: Session, parts: Sequence[Part]) -> str:
    """Return the table as a section of a page: what must hold, what was found, on what."""
    told = facts(session, parts)
    lines = [
        f"`python -m tests.selftest{'' if session.hours is None else f' --hours {session.hours:g}'} --seed {session.seed}`, "
        f"mpm-nodes {told['version']}, {told['machine']}, {told['seconds']:.0f} seconds:",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *("| " + " | ".join(row) + " |" for row in _rows(session)),
    ]
    return "\n".join([*lines, *(f"\n{fault}" for fault in _faults(session))]) + "\n"


def facts(session: Session, parts: Sequence[Part]) -> dict[str, Any]:
    """Return everything as JSON-able facts."""
    cores = os.cpu_count() or 1
    return {
        "version": mpm_nodes.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {cores} cores, Python {platform.python_version()}",
        "seed": session.seed,
        "hours": session.hours,
        "seconds": round(sum(session.seconds.values()), 1),
        "against_a_promise": session.against,
        "parts": [
            {
                "part": part.name,
                "promise": part.promise,
                "seconds": round(session.seconds.get(part.name, 0.0), 1),
                "ended_by_its_time": part.name in session.cut,
                "whole": part.name in session.whole,
                "next_cases": session.next_cases.get(part.name, []) if part.numbered else [],
            }
            for part in parts
        ],
        "rows": [row.to_json() for row in session.rows.values()],
    }


def _faults(session: Session) -> list[str]:
    return [f"{row.part}, {row.name}: {fault}" for row in session.rows.values() for fault in row.faults]
