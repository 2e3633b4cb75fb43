"""Files that a user would drop into a folder on MPM_NODES_PATH: a law, a stage and a domain of their own."""

LAW = '''
"""A spring against volume change that counts its wear."""

import sys
from dataclasses import dataclass
from typing import Annotated as A
from typing import ClassVar

from mpm_nodes.data import Field, Pascals, Range, Resampling
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, sqrt
from mpm_nodes.materials.contract import register_law
from mpm_nodes.nodes.materials import material_node

WEAR = Field("offset", "w", (2,), "1", "primvars:wear_of_spring", doc="Sum and square sum.", resampling=Resampling.AVERAGED)
STATE = ("volume_change", WEAR)
COEFFICIENTS = ("bulk", "density")
STIFFNESS = ("bulk",)
VISCOSITY = None


@dataclass(frozen=True)
class Params:
    """A spring.

    Attributes:
        bulk: Bulk modulus [Pa].
    """

    law: ClassVar[str] = "worn_spring"
    label: ClassVar[str] = "Worn Spring"
    source: ClassVar[str] = "none"
    density: ClassVar[float] = 500.0
    bulk: A[float, Pascals, Range(min=0.0)] = 1e4


def coefficients(params, density):
    return params.bulk, density


@inline
def energy(state, A, coeffs, dt):
    e = state[0] + mat3.trace(A)
    return const(e, 0.5) * coeffs[0] * e * e


@inline
def stress(state, A, coeffs, dt):
    p = coeffs[0] * (state[0] + mat3.trace(A))
    return mat3.diagonal(p, p, p)


@inline
def stress_differential(state, A, dA, coeffs, dt):
    p = coeffs[0] * mat3.trace(dA)
    return mat3.diagonal(p, p, p)


@inline
def advance(state, A, coeffs, dt):
    t = mat3.trace(A)
    w = state[1]
    return (state[0] + t, (w[0] + t, w[1] + t * t))


@inline
def feasible(state, A, coeffs, dt):
    return mat3.trace(A) > const(A[0], -1.0)


@inline
def wave_speed(state, coeffs):
    return sqrt(coeffs[0] / coeffs[1])


def longest_step(state, coeffs, h):
    return 1e-3 * h + 0.0 * state[1][0]


register_law(sys.modules[__name__])
material_worn_spring = material_node(Params)
'''

STAGE = '''
"""A stage with fields, memory, facts and a limit of its own."""

from dataclasses import dataclass, field

import numpy as np

from mpm_nodes.data import (
    A, Fact, Facts, Field, Limit, Particles, Range, Reads, Reduction, Seconds, Stage, StageMemory, StepContext, Writes
)
from mpm_nodes.graph.declare import stage

WETNESS = Field("wetness", "w", (), "1", "primvars:how_wet", "wet", "Share of water.", rest=1.0)
DRIED = Facts(
    "drying",
    "What dried in a frame.",
    (
        Fact("lost", "kg", Reduction.SUM, "Water lost."),
        Fact("driest", "1", Reduction.MIN, "Least wetness."),
        Fact("wettest", "1", Reduction.MAX, "Largest wetness."),
        Fact("mean", "1", Reduction.MEAN, "Mean wetness."),
        Fact("calls", "", Reduction.LAST, "Calls since the beginning."),
    ),
    warning="{calls} calls of dry",
    warn_if="calls",
)


@dataclass
class Calls(StageMemory):
    count: int = 0
    history: np.ndarray = field(default_factory=lambda: np.zeros(3))


def drying_time(particles: A[Particles, Reads(WETNESS)], step: StepContext, *, rate: float) -> float:
    """Return the time in which the wettest particle loses a hundredth of its water."""
    return 0.01 / rate * float(particles.rows("wetness").max(initial=0.0)) ** 0


DRYING = Limit("drying", drying_time, cure="lower dry.rate", against="state")


@stage(label="Dry", facts=(DRIED,), limits=(DRYING,))
def dry(
    particles: A[Particles, Reads(WETNESS, "mass"), Writes(WETNESS)],
    step: StepContext,
    memory: Calls,
    *,
    rate: A[float, Range(min=0.0)] = 20.0,
) -> Stage["particles"]:
    """Dry every particle; every third call dries twice.

    Args:
        rate: Share of the water lost in a second.
    """
    memory.count += 1
    memory.history = np.roll(memory.history, 1)
    memory.history[0] = step.dt
    before = particles.unpack("wetness")
    after = before * (1.0 - rate * step.dt * (2.0 if memory.count % 3 == 0 else 1.0) * (1.0 + memory.history.sum()))
    particles.pack("wetness", after)
    lost = float(((before - after) * particles.unpack("mass")).sum())
    wet = particles.unpack("wetness").astype(float)
    step.tell(
        DRIED, lost=lost, driest=float(wet.min()), wettest=float(wet.max()), mean=float(wet.mean()), calls=memory.count
    )
'''

WATCH = '''
"""A stage that does nothing but limit the step by stress and strain."""

import numpy as np

from mpm_nodes.data import A, Limit, Particles, Reads, Stage, StepContext
from mpm_nodes.graph.declare import stage


def gentle_time(particles: A[Particles, Reads("stress", "velocity_gradient")], step: StepContext) -> float:
    """Return a time that falls with both."""
    strain, stress = (float(np.abs(particles.unpack(name)).max(initial=0.0)) for name in ("velocity_gradient", "stress"))
    return 1e-4 / (1.0 + strain + 1e-3 * stress)


GENTLE = Limit("gentle", gentle_time, cure="take the stage out", against="state")


@stage(label="Watch", limits=(GENTLE,))
def watch(particles: A[Particles, Reads("position")], step: StepContext) -> Stage["particles"]:
    """Leave everything as it is.

    Args:
        particles: The matter.
    """
'''

DOMAIN = '''
"""A domain of its own: probes, with the stage that moves them."""

import numpy as np

from mpm_nodes.data import A, Domain, Field, Particles, Reads, Stage, StepContext, Writes, register_domain
from mpm_nodes.graph.declare import stage


class Probes:
    """Substep domain: probes of the matter."""


register_domain(
    Domain(
        "probes",
        Probes,
        "Probes",
        (0.2, 0.7, 0.5),
        "a probe",
        {"height": Field("height", "h", (), "m", doc="Where it is."), "age": Field("age", "t", (2,), "s", doc="How old.")},
    )
)


@stage(label="Probe")
def probe(
    particles: A[Particles, Reads("position")],
    probes: A[Probes, Reads("age"), Writes("age", "height")],
    step: StepContext,
) -> Stage["particles", "probes"]:
    """Measure heights of the matter.

    Args:
        particles: The matter.
        probes: The probes.
    """
    if not probes.count:
        probes.resize(3)
    probes.pack("age", probes.unpack("age") + step.dt)
    probes.pack("height", np.percentile(particles.unpack("position")[:, 1], [0, 50, 100]))


@stage(label="Look")
def look(probes: A[Probes, Reads("height")]) -> Stage["probes"]:
    """Look at the probes."""
    probes.unpack("height")


@stage(label="Liar")
def liar(probes: A[Probes, Reads("height")]) -> Stage["probes"]:
    """Write without saying so."""
    probes.rows("age")[:] += 1.0
'''
