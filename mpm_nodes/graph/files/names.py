"""Names of files below an output folder: what may be one, and what it is called until it is committed."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath

from mpm_nodes.data import OutputError

__all__ = ["TEMPORARY", "checked_parts", "temporary"]

TEMPORARY = ".tmp-"
"""Prefix of a file that is not yet committed; a prefix, since libraries choose the format by the extension."""

LONGEST_PART, LONGEST_NAME = 200, 1000
"""Bytes of a part and of a whole name: file systems take 255 a part, and the temporary name is longer."""
_DEVICE_NAMES = {
    "con",
    "prn",
    "aux",
    "nul",
    "conin$",
    "conout$",
    *(f"{kind}{n}" for kind in ("com", "lpt") for n in "123456789¹²³"),
}


def temporary(name: str) -> str:
    """Return the name that a file has before it is committed."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{TEMPORARY}{last}"


def checked_parts(relative: str, what: str = "output file") -> tuple[str, ...]:
    """Return the parts of a relative file name, or raise `OutputError` when it could leave its folder or harm it."""
    shown = relative if len(relative) <= 120 else relative[:117] + "..."

    def refuse(why: str) -> OutputError:
        return OutputError(f"{what} {shown!r}: {why}; give a name relative to the output folder")

    windows = PureWindowsPath(relative)
    parts = PurePosixPath(relative.replace("\\", "/")).parts
    if windows.drive or windows.root or relative.startswith("/"):
        raise refuse("absolute names are refused")
    if not parts or ".." in parts:
        raise refuse("names that are empty or climb with '..' are refused")
    if any("\ud800" <= letter <= "\udfff" for letter in relative):
        raise refuse("half a character is in it, which no file system stores")
    if len(relative.encode()) > LONGEST_NAME or any(len(part.encode()) > LONGEST_PART for part in parts):
        raise refuse(f"it is too long ({LONGEST_PART} bytes between slashes, {LONGEST_NAME} in all)")
    for part in parts:
        if part.split(".")[0].rstrip(" ").lower() in _DEVICE_NAMES:
            raise refuse(f"{part!r} is a device name")
        if part.startswith(TEMPORARY) or re.search(r'[<>:"|?*\x00-\x1f\x7f]', part) or part != part.rstrip(". "):
            raise refuse(f"{part!r} is not a portable file name")
    return parts
