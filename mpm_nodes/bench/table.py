"""The table that `mpm-nodes bench` prints, row by row as they are measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpm_nodes.bench import rows
from mpm_nodes.bench.measure import measure, processor
from mpm_nodes.bench.threads import available_threads, set_threads
from mpm_nodes.graph.files.folder import holds_json, replace_named
from mpm_nodes.kernels.compile.jit import thread_count

if TYPE_CHECKING:
    import argparse

CANCELLED = 3
HEADER = (
    "scene",
    "law",
    "kernel",
    "transfer",
    "particles",
    "threads",
    "Mp/s",
    "ms",
    "sort ms",
    "overhead us",
    "B/particle",
    "MB beside",
    "compile s",
)
WIDTHS = (13, 16, 9, 8, 9, 7, 6, 8, 8, 11, 10, 9, 9)
WORDS = 4
"""Columns of words, left-aligned; the others are numbers."""


def main(args: argparse.Namespace) -> int:
    """Measure the rows that were asked for, print and write them; 3 when stopped, with what was measured until then."""
    before, records, code = thread_count(), [], 0
    chosen = rows.chosen(args, available_threads())
    for threads in {row.threads for row in chosen}:
        set_threads(threads)  # refuse before minutes are spent
    cpu = processor()
    print(
        f"{cpu['cpu']}, {cpu['cpu_features']}, {chosen[0].precision}, {'fused' if chosen[0].fuse else 'not fused'}; "
        "Mp/s = million particle-steps per second, sorts included; below each row milliseconds by stage"
    )
    print(line(tuple("first s" if name == "compile s" and not args.cold else name for name in HEADER)), flush=True)
    try:
        for row in chosen:
            records.append(measure(row, seconds=0.1 if args.quick else 1.0, fresh_cache=args.cold))
            print(line(cells(records[-1])))
            print(stages(records[-1]), flush=True)
    except KeyboardInterrupt:
        code = CANCELLED
        print(f"stopped: {len(records)} of {len(chosen)} rows were measured")
    finally:
        set_threads(before)
    if args.json:
        write(args.json, records)
    return code


def write(path: Path, figures: Any) -> None:
    """Write figures as JSON; a file of other figures of a measurement may have that name."""

    def ours(old: bytes) -> bool:
        return holds_json(old, lambda found: isinstance(found, list | dict) and "format" not in found and "nodes" not in found)

    replace_named(path, (json.dumps(figures, indent=1) + "\n").encode(), ours)


def line(values: tuple[str, ...]) -> str:
    """Return the values in columns."""
    return " ".join(
        value.ljust(width) if column < WORDS else value.rjust(width)
        for column, (value, width) in enumerate(zip(values, WIDTHS, strict=True))
    )


def cells(record: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a record, in the order of the header."""
    per_step = record["total_seconds"] / record["substeps"]
    return (
        record["scene"],
        record["law"].replace("neo_hookean+", "neo_hook.+"),
        record["kernel"],
        record["transfer"],
        f"{record['particles']:,}",
        str(record["threads"]),
        f"{1e-6 * record['particle_steps_per_second']:.1f}",
        f"{1e3 * per_step:.3f}",
        f"{1e3 * record['stage_seconds'].get('sort', 0.0):.3f}",
        f"{1e6 * record['executor_overhead']:.1f}",
        f"{record['bytes_per_particle']:.0f}",
        f"{1e-6 * record['beside_bytes']:.0f}",
        f"{record['compile_seconds']:.2f}",
    )


def stages(record: dict[str, Any]) -> str:
    """Return the time of each stage [ms], in a line below its row."""
    return "    " + ", ".join(f"{name} {1e3 * spent:.3f}" for name, spent in record["stage_seconds"].items())
