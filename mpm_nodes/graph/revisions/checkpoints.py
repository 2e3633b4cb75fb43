"""Checkpoints of sequential nodes: one file each, or one for each rank where several cook one simulation.

Rank 0 writes `checkpoints/0007.sim.state`, rank 1 `checkpoints/0007.sim.rank1.state`, and so on. Each holds how many there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError
from mpm_nodes.graph.files.archive import read_archive, rebuilt, write_archive
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.files.names import temporary

__all__ = ["are_held", "header_of", "read_state", "state_name", "write_file", "write_parts"]


def state_name(number: int, node: str, rank: int = 0) -> str:
    """Return the name, relative to the revision, of the checkpoint of a node after the frame with a number."""
    return f"checkpoints/{number:04d}.{node}{f'.rank{rank}' if rank else ''}.state"


def header_of(node: str, frame: int, value: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands in front of the arrays of a state, `facts` being what it says of itself."""
    header = {"node": node, "frame": frame, "format": getattr(value, "STATE_FORMAT", 1), "facts": facts}
    parts = getattr(value, "parts", 1)
    return header if parts == 1 else {**header, "parts": parts}


def read_state(files: Folder, number: int, node: str, kind: Any) -> Any:
    """Return the state of a node after the frame with a number, built by `kind.from_arrays`; several parts by `kind.joined`.

    Raises:
        InputError: A file is missing or damaged, or holds a state of another format than `kind` reads.
    """
    first, parts = _read(files, state_name(number, node), kind)
    if parts == 1:
        return first
    return kind.joined([first, *(_read(files, state_name(number, node, rank), kind)[0] for rank in range(1, parts))])


def _read(files: Folder, name: str, kind: Any) -> tuple[Any, int]:
    path = files.path / name
    try:
        with files.stream(name) as stream:
            header, arrays = read_archive(path, stream)
    except FileNotFoundError as error:
        raise InputError(f"{path}: is missing; cook again without --resume") from error
    return rebuilt(path, kind, header, arrays, "cook again without --resume")


def write_parts(folder: Path, frame: int, number: int, states: Mapping[str, Any], rank: int) -> list[tuple[str, dict[str, Any]]]:
    """Write this rank's parts of states under temporary names; return names, and size and digest of each, for the commit.

    Args:
        folder: The revision folder.
        frame: Frame that the states are after.
        number: Its number in file names.
        states: States by node; those that ranks do not share are rank 0's to write.
        rank: Number of this rank.
    """
    files, written = Folder(folder), []
    for node, value in states.items():
        if getattr(value, "parts", 1) == 1:
            continue
        name = state_name(number, node, rank)
        facts, arrays = value.to_arrays()
        written.append((name, write_file(files, name, header_of(node, frame, value, facts), arrays)))
    return written


def write_file(files: Folder, name: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Write an archive under its temporary name; return its size and digest."""
    files.make(name.rpartition("/")[0])
    files.unlink(temporary(name))
    digest = write_archive(files.path / temporary(name), header, arrays)
    return {"bytes": files.synced_size(temporary(name)), "sha256": digest}


def are_held(files: Mapping[str, Any], number: int, nodes: Collection[str]) -> list[str] | None:
    """Return the names of all checkpoints in a frame's record, None where one of a node in `nodes` is missing."""
    if not all(state_name(number, node) in files for node in nodes):
        return None
    return [name for name in files if name.startswith("checkpoints/")]
