"""The family of errors that are the user's to fix."""

from __future__ import annotations


class MpmNodesError(Exception):
    """Base of every error that is the user's to fix: one line saying where, what was given, what is allowed, the cure."""

    exit_code = 2


class InputError(MpmNodesError):
    """A file or value from outside cannot be used (exit code 5 for files, see `OutputError` for writing)."""

    exit_code = 5


class OutputError(MpmNodesError):
    """A result cannot be written: folder, permission, disk space (exit code 5)."""

    exit_code = 5


class Cancelled(MpmNodesError):
    """The user asked to stop; what was committed before stays (exit code 3)."""

    exit_code = 3
