"""Passes over tuples whose members differ in type: each is compiled for its own."""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import overloaded

__all__ = ["each_of", "for_each"]


def for_each(body, records, arguments):
    """Call body(record, arguments) for every record of a tuple, each compiled for its own fields."""
    for record in records:
        body(record, arguments)


@overloaded(for_each)
def _for_each(body, records, arguments):
    if records.count == 1:
        return lambda body, records, arguments: body(records[0], arguments)

    def first_and_others(body, records, arguments):
        body(records[0], arguments)
        for_each(body, records[1:], arguments)

    return first_and_others


def each_of(body, records):
    """Return the tuple of body(record) for every record of a tuple."""
    return tuple(body(record) for record in records)


@overloaded(each_of)
def _each_of(body, records):
    if records.count == 1:
        return lambda body, records: (body(records[0]),)
    return lambda body, records: (body(records[0]),) + each_of(body, records[1:])
