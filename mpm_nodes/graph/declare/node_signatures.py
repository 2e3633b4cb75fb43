"""The ports and outputs of a node, read off its function."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Any

from mpm_nodes import data
from mpm_nodes.graph.declare.declarations import Output, Port, members
from mpm_nodes.graph.declare.signatures import SignatureReader, bare
from mpm_nodes.graph.time.keys import TakenAtStart
from mpm_nodes.graph.values.kept import Kept


class NodeReader(SignatureReader):
    """Reads a node."""

    def ports(self) -> tuple[tuple[Port, ...], dict[str, Any]]:
        """Return the input ports, and the parameters that are none by what they take."""
        ports, special = [], {}
        for parameter in self.positional():
            hint = bare(self.hint(parameter))
            if hint is data.FrameContext:
                special["ctx"] = parameter.name
            elif hint is data.GraphSettings:
                special["settings"] = parameter.name
            elif hint is Kept:
                special["kept"] = parameter.name
            elif typing.get_origin(hint) is data.Previous:
                special["previous"] = parameter.name
                special["previous_type"] = typing.get_args(hint)[0]
            else:
                ports.append(self.port(parameter, hint))
        return tuple(ports), special

    def port(self, parameter: inspect.Parameter, hint: Any) -> Port:
        """Return the port of a parameter."""
        many = typing.get_origin(hint) is data.Many
        one = typing.get_args(hint)[0] if many else hint
        kinds = [part for part in members(one) if part is not type(None)]
        if parameter.default not in (parameter.empty, None, ()):
            self.fail(f"has port {parameter.name} with default {parameter.default!r}; only None, or () for Many, can be")
        wire_type = kinds[0] if len(kinds) == 1 else typing.Union[tuple(kinds)]  # noqa: UP007 (built from a list)
        optional = parameter.default is not parameter.empty
        at_start = any(isinstance(item, TakenAtStart) for item in getattr(self.hint(parameter), "__metadata__", ()))
        return Port(parameter.name, wire_type, optional, many, self.help_of(parameter.name), at_start)

    def outputs(self) -> tuple[Output, ...]:
        """Return the outputs."""
        if "return" not in self.hints:
            self.fail("has no return type; write -> Particles, a NamedTuple of outputs, or None")
        returned = bare(self.hints["return"])
        if returned is type(None):
            return ()
        if isinstance(returned, type) and issubclass(returned, tuple) and hasattr(returned, "_fields"):
            hints = typing.get_type_hints(returned, include_extras=True)
            return tuple(Output(name, bare(hints[name])) for name in returned._fields)
        return (Output(_snake(returned), returned),)


def _snake(hint: Any) -> str:
    if not isinstance(hint, type) or typing.get_args(hint):
        return "result"
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", hint.__name__).lower()
