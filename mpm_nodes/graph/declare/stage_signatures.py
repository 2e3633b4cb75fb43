"""The domains that a stage touches, what it tells, limits and remembers, read off its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from mpm_nodes import data
from mpm_nodes.data import LAW_STATE, Domain, Facts, Field, Limit, Reads, Stage, StageMemory, Writes, all_domains, domain_of
from mpm_nodes.graph.declare.declarations import DomainPort, OfferedLimit, type_name
from mpm_nodes.graph.declare.signatures import SignatureReader, bare


class StageReader(SignatureReader):
    """Reads a stage, or the function of a limit.

    Attributes:
        memory: Type of what it remembers, None where it remembers nothing.
    """

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        super().__init__(kind, function)
        self.memory: type | None = None

    def domain_ports(self) -> tuple[tuple[DomainPort, ...], tuple[str, ...]]:
        """Return the domains that it touches, and the parameters before the `*` in order."""
        ports, arguments = [], []
        for parameter in self.positional():
            hint = self.hint(parameter)
            arguments.append("step" if bare(hint) is data.StepContext else parameter.name)
            if bare(hint) is data.StepContext:
                continue
            if isinstance(hint, type) and issubclass(hint, StageMemory):
                self.remember(parameter.name, hint)
                continue
            domain = domain_of(bare(hint))
            if domain is not None:
                ports.append(self.domain_port(domain, parameter, hint))
            else:
                self.fail(
                    f"has {parameter.name} of type {type_name(bare(hint))} before the *; only domains "
                    f"({', '.join(domain.port.__name__ for domain in all_domains())}) and StepContext stand there"
                )
        if not ports:
            self.fail("touches no domain; add a parameter such as particles: A[Particles, Reads('position')]")
        return tuple(ports), tuple(arguments)

    def domain_port(self, domain: Domain, parameter: inspect.Parameter, hint: Any) -> DomainPort:
        """Return what it touches of a domain."""
        name = domain.name
        if parameter.name != name:
            self.fail(f"calls its {bare(hint).__name__} {parameter.name}; call it {name}")
        metadata = getattr(hint, "__metadata__", ())
        if not any(isinstance(item, (Reads, Writes)) for item in metadata):
            self.fail(f"does not say what it touches on {name}; write A[{bare(hint).__name__}, Reads(...), Writes(...)]")
        own = self.own_fields(domain, metadata)
        known = {*domain.fields, *((LAW_STATE,) if domain.holds_law_state else ()), *(field.name for field in own)}
        reads = tuple(n for item in metadata if isinstance(item, Reads) for n in item.names)
        writes = tuple(n for item in metadata if isinstance(item, Writes) for n in item.names)
        for touched in (*reads, *writes):
            if touched not in known:
                self.fail(
                    f"touches {name}.{touched}, which is unknown; known are {', '.join(sorted(known))}"
                    + ("; describe your own with a Field in Reads(...) or Writes(...)" if domain.takes_fields else "")
                )
        conditions = tuple((n, *item.when) for item in metadata if isinstance(item, Reads) and item.when for n in item.names)
        for array, knob, _value in conditions:
            if knob not in [parameter.name for parameter in self.parameters]:
                self.fail(f"reads {name}.{array} depending on {knob}, which is none of its knobs")
        on_request = tuple(n for item in metadata if isinstance(item, Reads) and item.on_request for n in item.names)
        return DomainPort(name, reads, writes, own, conditions, on_request)

    def own_fields(self, domain: data.Domain, metadata: Iterable[Any]) -> tuple[Field, ...]:
        """Return the fields that the stage describes itself, each once."""
        given = [item for item in metadata if isinstance(item, Field)]
        given += [field for item in metadata if isinstance(item, (Reads, Writes)) for field in item.own]
        found: dict[str, Field] = {}
        for field in given:
            known = domain.fields.get(field.name) or found.get(field.name)
            if known is not None and known != field:
                self.fail(f"describes {domain.name}.{field.name} otherwise than it is known; rename it or take the known one")
            if domain.fields.get(field.name) is None:
                found[field.name] = field
        if found and not domain.takes_fields:
            self.fail(f"describes {domain.name}.{next(iter(found))}, but {domain.name} takes no further fields")
        return tuple(found.values())

    def remember(self, name: str, kind: type) -> None:
        """Note the type of what the stage remembers."""
        if name != "memory":
            self.fail(f"calls its memory {name}; call it memory")
        try:
            kind()
        except TypeError as error:
            self.fail(f"remembers {kind.__name__}, which does not begin by itself ({error}); give every field a default")
        self.memory = kind

    def facts(self, groups: Iterable[Facts], arguments: Iterable[str]) -> tuple[Facts, ...]:
        """Return what the stage tells."""
        if tuple(groups) and "step" not in arguments:
            self.fail("declares facts but takes no step to tell them; add the parameter step: StepContext")
        return tuple(groups)

    def removed(self, names: Iterable[str], outputs: Iterable[str]) -> tuple[str, ...]:
        """Return the domains that lose elements to the stage."""
        for name in names:
            if name not in outputs:
                self.fail(f"removes of {name}, which it does not return; return it, or take it out of removes")
        return tuple(names)

    def limit(self, limit: Limit) -> OfferedLimit:
        """Return a limit of the time step with what its function reads."""
        if limit.function is None:
            return OfferedLimit(limit)
        reader = StageReader(f"limit of {self.function.__name__}:", limit.function)
        ports, arguments = reader.domain_ports()
        if any(port.writes for port in ports) or reader.memory is not None:
            reader.fail("writes or remembers; a limit only reads")
        mine = [parameter.name for parameter in self.parameters if parameter.kind == parameter.KEYWORD_ONLY]
        knobs = tuple(parameter.name for parameter in reader.parameters if parameter.kind == parameter.KEYWORD_ONLY)
        for name in knobs:
            if name not in mine:
                reader.fail(f"takes {name}, which is not a knob of {self.function.__name__}; it has {', '.join(mine) or 'none'}")
        return OfferedLimit(limit, ports, arguments, knobs)

    def outputs(self, domains: tuple[DomainPort, ...]) -> tuple[str, ...]:
        """Return the domains that leave it."""
        hint = self.hints.get("return")
        if bare(hint) is not Stage or not getattr(hint, "__metadata__", ()):
            self.fail('has no return type; write -> Stage["particles", ...] with each domain that it writes')
        outputs: tuple[str, ...] = tuple(getattr(hint, "__metadata__")[0])  # noqa: B009
        given = [domain.name for domain in domains]
        for name in outputs:
            if name not in given:
                self.fail(f"returns {name}, which it does not take; it takes {', '.join(given)}")
        for domain in domains:
            if domain.writes and domain.name not in outputs:
                self.fail(f'writes {domain.name} but does not return it; write -> Stage["{domain.name}", ...]')
        return outputs
