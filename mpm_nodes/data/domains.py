"""Domains: what stages touch. Each is one object, declared once; planner, hazards, checked mode, checkpoints and hosts read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mpm_nodes.data.errors import MpmNodesError
from mpm_nodes.data.fields import ATTRIBUTES, GRID_FIELDS, Field, table
from mpm_nodes.data.live import Colliders, Energy, Grid, LiveParticles, StaggeredGrid, SurfaceSamples
from mpm_nodes.data.values import Particles


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain of the substep graph.

    Attributes:
        name: Name of its ports, and of what a wire means that takes the state as the substep begins.
        port: Type that stands before the `*` of a stage.
        label: Name that artists see.
        colour: Of its wires: RGB, 0 to 1, sRGB.
        element: What one element is.
        fields: Its own fields by name, and those that phenomena add.
        takes_fields: Whether laws and stages may bring further fields.
        holds_law_state: Whether its elements carry the state of the constitutive laws.
        begins_empty: Its fields hold nothing when a substep begins: a stage has to write before another reads, and
            checkpoints do not hold them.
        identity: Field that tells elements apart when some come and go; None: their number is the stages' affair.
        store: Called as store(domain, fields, stores) to make its state in a solve: the fields that the plan touches by name,
            and the stores of the domains before it; None makes a table of arrays (`solver.stores.TableStore`).
    """

    name: str
    port: type
    label: str
    colour: tuple[float, float, float]
    element: str
    fields: dict[str, Field]
    takes_fields: bool = False
    holds_law_state: bool = False
    begins_empty: bool = False
    identity: str | None = None
    store: Callable[[Domain, Mapping[str, Field], Mapping[str, Any]], Any] | None = None

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name in ("step", "memory", ""):
            raise MpmNodesError(f"domain {self.name!r}: is not a name for a port; use a lower-case noun, not step or memory")
        if self.identity is not None and self.identity not in self.fields:
            raise MpmNodesError(f"domain {self.name}: its identity {self.identity!r} is none of its fields; add the field")

    def add(self, owner: str, *fields: Field) -> None:
        """Make further fields known, as those of a phenomenon.

        Raises:
            MpmNodesError: A field of that name is described differently.
        """
        for field in fields:
            if self.fields.setdefault(field.name, field) != field:
                raise MpmNodesError(f"{owner}: describes {self.name}.{field.name} otherwise than it is known; rename it")

    @property
    def lies_on_blocks(self) -> bool:
        """Whether it has values at points of the grid's blocks."""
        return any(each.packed is not None for each in self.fields.values())


_DOMAINS: dict[str, Domain] = {}


def register_domain(domain: Domain) -> Domain:
    """Make a domain known, and return it. A file that is loaded again replaces its own.

    Raises:
        MpmNodesError: Another file has a domain of that name.
    """
    known = _DOMAINS.get(domain.name)
    if known is not None and known.port.__module__ != domain.port.__module__:
        raise MpmNodesError(
            f"domain {domain.name}: declared in {known.port.__module__} and in {domain.port.__module__}; rename one"
        )
    _DOMAINS[domain.name] = domain
    return domain


def all_domains() -> tuple[Domain, ...]:
    """Return all domains, the built-in ones first."""
    return tuple(_DOMAINS.values())


def domain_names() -> tuple[str, ...]:
    """Return the names of all domains."""
    return tuple(_DOMAINS)


def domain_named(name: str) -> Domain:
    """Return a domain by name.

    Raises:
        MpmNodesError: There is none.
    """
    if name not in _DOMAINS:
        raise MpmNodesError(f"domain {name!r}: is unknown; known are {', '.join(_DOMAINS)}; register it with register_domain")
    return _DOMAINS[name]


def domain_of(port: Any) -> Domain | None:
    """Return the domain of ports of this type, or None.

    `LiveParticles` is what a running solve has of `Particles`; the class of a store names its domain itself, as `domain`.
    """
    own = getattr(port, "domain", None)
    if isinstance(own, Domain):
        return domain_named(own.name)
    port = Particles if port is LiveParticles else port
    return next((each for each in _DOMAINS.values() if each.port is port), None)


PARTICLES = register_domain(
    Domain(
        "particles",
        Particles,
        "Particles",
        (0.36, 0.62, 0.90),
        "a material point",
        ATTRIBUTES,
        takes_fields=True,
        holds_law_state=True,
        identity="id",
    )
)
GRID = register_domain(
    Domain("grid", Grid, "Grid", (0.90, 0.42, 0.50), "a node of the background grid", GRID_FIELDS, begins_empty=True)
)
COLLIDERS = register_domain(
    Domain(
        "colliders",
        Colliders,
        "Colliders",
        (0.62, 0.62, 0.64),
        "a body or a wall",
        table(Field("level_set", "phi", (), "m", doc="Signed distances and motions.", kind="object", saved=False)),
    )
)
ENERGY = register_domain(
    Domain(
        "energy",
        Energy,
        "Energy",
        (0.8, 0.409, 0.4),
        "a term of the incremental potential",
        table(Field("terms", "Phi", (), "J", doc="The terms by name.", kind="object", saved=False)),
    )
)
STAGGERED = register_domain(
    Domain(
        "staggered",
        StaggeredGrid,
        "Staggered Grid",
        (0.95, 0.60, 0.25),
        "a cell of the staggered grid, with its faces",
        {},
        begins_empty=True,
    )
)
SAMPLES = register_domain(
    Domain(
        "samples",
        SurfaceSamples,
        "Surface Samples",
        (0.30, 0.75, 0.72),
        "a point of the matter's surface, or its balance point",
        {},
        begins_empty=True,
    )
)
