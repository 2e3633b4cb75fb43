"""What emitters tell of their matter before a cook: how large it is, of what, and how much of it a stream brings."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpm_nodes.data import Material, MpmNodesError, Particles, SpatialField
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import at, carries_keys
from mpm_nodes.nodes.nozzles import nozzle
from mpm_nodes.nodes.rotations import TURNS, turn_matrix

if TYPE_CHECKING:
    from mpm_nodes.kernels.level_sets.regions import Region

__all__ = [
    "CLOSED",
    "Body",
    "Inflow",
    "adding",
    "body_of",
    "fastest",
    "flow_of",
    "flowed",
    "marks",
    "passed_on",
    "refuse_rigid",
    "tempered",
    "told_again",
]


CLOSED = "emit_stream.opening: is nowhere above 0 in the template, so nothing would flow; move the field"
"""What a stream without an opening is told."""


class Body(NamedTuple):
    """A box around matter of one material.

    Attributes:
        material: Its material.
        edges: Edges of the box, one a row, shape (3, 3) [m].
        place: Its middle [m].
    """

    material: Material
    edges: np.ndarray
    place: np.ndarray

    def width(self, direction: np.ndarray) -> float:
        """Return how far the box reaches along a direction, shape (3,) of any length [m]."""
        return float(np.abs(self.edges @ direction).sum() / max(float(np.linalg.norm(direction)), 1e-300))


class Inflow(NamedTuple):
    """What a stream brings.

    Attributes:
        rate: Particles per simulated second, on average over the shot.
        begin: Second of the shot at which it begins.
        end: Second of the shot at which it ends; may be infinite.
        velocity: [m/s], where it is fastest.
        most: Particles that it brings at most.
    """

    rate: float
    begin: float
    end: float
    velocity: tuple[float, float, float]
    most: float = math.inf


def body_of(region: Region, told: PreflightContext) -> tuple[Body, ...]:
    """Return the body that a region filled with the wired material is; none where no node tells its material."""
    knobs = told.knobs
    place = np.asarray(knobs.get("centre", knobs.get("translation", (0.0, 0.0, 0.0))), float)
    turned = turn_matrix(**{knob: knobs[knob] for knob in TURNS if knob in knobs})
    edges = np.diag(region.high - region.low) @ turned.T
    middle = place + turned @ (0.5 * (region.high + region.low))
    return tuple(Body(material, edges, middle) for material in told.every("material", "materials"))


def adding(*columns: str) -> Callable[[PreflightContext], dict[str, Any]]:
    """Return the preflight of a node that gives on the particles of its port `particles`, with further columns."""

    def preflight(told: PreflightContext) -> dict[str, Any]:
        return passed_on(told, *columns)

    return preflight


def passed_on(told: PreflightContext, *adds: str) -> dict[str, Any]:
    """Preflight of a node that gives on the particles that are wired into its port `particles`, with the columns that it adds."""
    return {
        "particles": told.total("particles", "particles"),
        "mean_particles": told.mean("particles"),
        "bodies": told.distinct("particles", "bodies"),
        "places": told.distinct("particles", "places"),
        **marks(told, "particles", adds=adds),
    }


def marks(told: PreflightContext, *ports: str, adds: Collection[str] = ()) -> dict[str, Any]:
    """Return what holds for some of the matter that comes in through these ports.

    It is `heated` (makes heat), `scaled` (has a factor on its tension), or `untold` (its bodies and materials are not known before
    the cook). It has `columns`, and those that the node adds; None where they are not known before the cook. `seeds` are functions
    that return where its particles are as the shot begins, shape (n, 3) [m]; none where that is not known of all.
    """
    wired = [facts for port in ports for facts in told.inputs.get(port, ())]
    found = {mark: any(facts.get(mark, False) for facts in wired) for mark in ("heated", "scaled", "untold")}
    told_of = [facts["columns"] for facts in wired if facts.get("columns") is not None]
    known = frozenset(adds).union(*told_of) if len(told_of) == len(wired) else None
    laid_out = [facts.get("seeds", ()) for facts in wired]
    seeds = tuple(itertools.chain(*laid_out)) if all(laid_out) else ()
    untold = found["untold"] or not all("bodies" in facts for facts in wired)
    return {**found, "untold": untold, "columns": known, "seeds": seeds}


_DISTINCT = ("rods", "solids", "fixed", "rigid_bodies", "rigid_solids", "hung")


def collider_passed_on(told: PreflightContext) -> dict[str, Any]:
    """Preflight of a node that gives on the collider that is wired into its port `collider`."""
    counted = (
        "carries",
        "mesh_points",
        "still_points",
        "tempered",
        "sticks",
        "painted",
        "rigid",
        "jointed",
        "pointless",
        "deforming",
    )
    totals = {fact: told.total("collider", fact) for fact in counted}
    return {**totals, **{fact: told.distinct("collider", fact) for fact in _DISTINCT}}


def refuse_rigid(told: PreflightContext, where: str) -> None:
    """Refuse a rigid body at the port `collider`, which is elsewhere once the solve has moved it."""
    if told.total("collider", "rigid"):
        raise MpmNodesError(
            f"{where}: a rigid body is known as it begins, and not where a solve moves it; wire in its moved_body, into another "
            "solve than that which moves it, or another collider"
        )


def tempered(told: PreflightContext) -> dict[str, Any]:
    """Preflight of a node that gives the collider that is wired into its port `collider` a temperature."""
    return {**collider_passed_on(told), "tempered": 1}


def fastest(velocity: Any) -> np.ndarray:
    """Return a velocity, where it is keyed the fastest of its keys, shape (3,) [m/s]; of a number the largest."""
    keys = [key[1] for key in velocity.keys] if carries_keys(velocity) else [velocity]
    return np.asarray(max(keys, key=lambda each: float(np.linalg.norm(each))), float)


def flow_of(
    told: PreflightContext,
    velocity: Any,
    begin: float,
    end: float,
    rate: Any = None,
    opening: Any = None,
    thick: float | None = None,
) -> Inflow:
    """Return what a stream brings whose template is told (seconds of the shot, m/s): a copy for each of its lengths.

    With a rate [m^3/s] that says how much, and the nozzle how fast. The template is open where the field `opening` is above 0.
    `thick` is how many particles a metre of the stream holds, where that does not follow from the outline of the template along
    the velocity.
    """
    speed, spacing = fastest(velocity), 0.5 * told.settings.cell_size
    keyed = carries_keys(velocity) if rate is None else carries_keys(rate)
    frames = np.linspace(told.settings.start, told.settings.end, 65) if keyed else [told.settings.start]
    thick = _thickness(told, speed, spacing, opening) if thick is None else thick
    if rate is None:
        brought = thick * float(np.mean([np.linalg.norm(at(velocity, frame)) for frame in frames]))
    else:
        rates = [at(rate, frame) / spacing**3 for frame in frames]
        brought = float(np.mean(rates))
        speed = speed / max(float(np.linalg.norm(speed)), 1e-300) * max(rates) / max(thick, 1e-300)
    return Inflow(brought, begin, end, (float(speed[0]), float(speed[1]), float(speed[2])))


def _thickness(told: PreflightContext, velocity: np.ndarray, spacing: float, opening: SpatialField | None) -> float:
    """Return how many particles a stream of a template holds [1/m]: those of the template, or fewer points that stand for them."""
    count = told.total("template", "particles")
    seeds = marks(told, "template")["seeds"]
    makes = seeds or told.distinct("template", "places")

    def thickness() -> float:
        points = [make() for make in makes]
        if not sum(map(len, points)) or not velocity.any():
            return count / spacing
        laid_out = np.concatenate(points)
        each = 1.0 if seeds else count / len(laid_out)
        if opening is not None:
            from mpm_nodes.solver.field_programs import field_values

            laid_out = laid_out[field_values(opening, laid_out, told.settings.start) > 0.0]
            if not len(laid_out) and seeds:
                raise MpmNodesError(CLOSED)
            if not len(laid_out):  # of many particles few points are known
                return count / spacing
        apart = spacing * each ** (1.0 / 3.0)
        axis = velocity / np.linalg.norm(velocity)
        template, _ = nozzle(Particles({"position": laid_out}, (), apart), axis)
        return each * len(template) / (apart * (round(float(np.ptp(template["position"] @ axis)) / apart) + 1.0))

    # many streams may come out of one template
    return told.kept.get(("thickness of a stream", makes, count, spacing, tuple(velocity), opening), thickness)


def flowed(flow: Inflow, clock: Clock, last: float) -> float:
    """Return how many particles a stream has brought by the frame `last`."""
    begin, end = (clock.simulated(min(clock.frame(second), last)) for second in (flow.begin, flow.end))
    return min(flow.rate * (end - begin), flow.most) if math.isfinite(end) else flow.most


def told_again(told: PreflightContext) -> dict[str, Any]:
    """Preflight of a node that gives on a material with the members that its knobs change."""
    wired = told.every("material", "materials")
    return {"materials": tuple(dataclasses.replace(material, **told.knobs) for material in wired)}
