"""Planted defects: a small change of the source that some test must notice.

Each was possible without any test failing once, or is of the same kind. `test_mutations.py` applies them one by one to a copy of
the package and runs the named test against it.
"""

from __future__ import annotations

from typing import NamedTuple


class Defect(NamedTuple):
    """One change of the source.

    Attributes:
        name: What goes wrong.
        file: File, from the root of the repository.
        old: Text that stands there exactly once.
        new: Text in its place.
        test: Id of the test that must fail.
    """

    name: str
    file: str
    old: str
    new: str
    test: str
