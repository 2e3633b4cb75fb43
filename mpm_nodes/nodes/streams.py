"""Streams out of a nozzle, or out of a surface."""

from __future__ import annotations

import enum
import math
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    CurvePath,
    Emitter,
    Frames,
    GraphSettings,
    Metering,
    MetresPerSecond,
    MpmNodesError,
    Particles,
    Range,
    SpatialField,
    Unit,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable, carries_keys, scaled_keys
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import CLOSED, fastest, flow_of, marks
from mpm_nodes.nodes.collider_files import stamp
from mpm_nodes.nodes.fields import gradient, number
from mpm_nodes.nodes.fields_of_particles import everywhere
from mpm_nodes.nodes.nozzles import nozzle
from mpm_nodes.nodes.profiles import of_mean, parabolic

GRAINS = "drucker_prager"
"""The law of matter whose particles stay in the lines in which they are born: nothing in it evens out gaps."""


class FlowUnit(enum.Enum):
    """What a rate counts. VOLUME: m^3/s. MASS: kg/s, at the density of the template's particles."""

    VOLUME = "volume"
    MASS = "mass"


class Profile(enum.Enum):
    """Speeds across a nozzle. PLUG: the same everywhere. PARABOLIC: none at the wall, as a liquid flows in a tube."""

    PLUG = "plug"
    PARABOLIC = "parabolic"


def _streamed(told: PreflightContext) -> dict[str, Any]:
    """Return how much streams and when; what it comes to depends on the clock of the solve that it flows into."""
    knobs = told.knobs
    begin, end = _span(told.settings, knobs["start_frame"], knobs["duration"])
    wired = told.inputs.get("region", ())
    region, surface = _told_field(told, "region"), _told_field(told, "surface")
    _refuse_still(knobs["velocity"])
    opening = next((facts.get("field") for facts in told.inputs.get("opening", ())), None)
    velocities = next((facts.get("field") for facts in told.inputs.get("velocity_field", ())), None)
    _refuse_fields(opening, velocities, knobs["deforms"] or surface is not None)
    _refuse_amounts(knobs["rate"], knobs["volume"], region)
    _refuse_surface(surface, knobs["profile"])
    _refuse_flat(told, surface)
    _path(told.settings, told.kept, knobs["path"], knobs["prim"], knobs["travel"])
    rate = knobs["rate"] if _rated(knobs["rate"]) else None
    density = next((body.material.density for body in told.distinct("template", "bodies")), 1000.0)
    per_second = rate if rate is None or knobs["rate_unit"] is FlowUnit.VOLUME else scaled_keys(rate, 1.0 / density)
    thick = _thickness_at(told, surface)
    flow = flow_of(told, knobs["velocity"], max(begin, 0.0), max(end, 0.0), per_second, opening, thick)
    if knobs["volume"] > 0.0 and not wired:
        flow = flow._replace(most=knobs["volume"] / (0.5 * told.settings.cell_size) ** 3)
    bodies = told.distinct("template", "bodies")
    return {"flows": (flow,), "bodies": bodies, "warnings": _unheeded(told, opening), **marks(told, "template")}


def _unheeded(told: PreflightContext, opening: SpatialField | None) -> list[str]:
    """Return warnings of what is given and does nothing, and of grains in lines."""
    from mpm_nodes.solver.field_programs import varies

    found, knobs = [], told.knobs
    grains = [body.material.label for body in told.distinct("template", "bodies") if body.material.law == GRAINS]
    if grains and not knobs["jitter"]:
        found.append(
            f"emit_stream.jitter: '{grains[0]}' comes in straight lines of particles, and lies in ridges where it spreads; give 1"
        )
    if opening is not None and varies(opening):
        found.append(
            "emit_stream.opening: this field changes over time, and is taken as it is at the first frame; key the rate, or move "
            "the template over it"
        )
    if knobs["path"] is None:
        given = [name for name in ("follow_path", "travel") if name in told.keyed or knobs[name]]
        found += [f"emit_stream.{name}: is given without a path, and does nothing; give the curve as path" for name in given]
    return found


def _refuse_flat(told: PreflightContext, surface: SpatialField | None) -> None:
    """Refuse a surface without a direction all over a template that is known before the cook.

    Raises:
        MpmNodesError: As the solve would say.
    """
    from mpm_nodes.solver.field_programs import varies
    from mpm_nodes.solver.surface_streams import refuse_flat, slopes_of

    seeds = marks(told, "template")["seeds"]
    if surface is None or "field" not in told.inputs["surface"][0] or not seeds or varies(surface):
        return
    places = np.concatenate([make() for make in seeds])
    if len(places):
        slopes = gradient(surface, 0.25 * told.settings.cell_size)
        refuse_flat(slopes_of(places, slopes, float(told.settings.start))[1])


def _told_field(told: PreflightContext, port: str) -> SpatialField | None:
    """Return the field that is wired into a port, None where none is; one that shows in the cook stands for nothing."""
    wired = told.inputs.get(port, ())
    if not wired:
        return None
    found: SpatialField | None = wired[0].get("field")
    return found or SpatialField("CONSTANT", (), (0.0, 0.0, 0.0), vector=wired[0].get("vector", False))


def _thickness_at(told: PreflightContext, surface: SpatialField | None) -> float | None:
    """Return how many particles a metre of a stream out of a surface holds [1/m]; None where there is none or it is not known."""
    from mpm_nodes.solver.field_programs import field_values
    from mpm_nodes.solver.surface_streams import LAYERS

    points = [make() for make in marks(told, "template")["seeds"] or told.distinct("template", "places")]
    if surface is None or surface.operation == "CONSTANT" or not sum(map(len, points)):
        return None
    spacing = 0.5 * told.settings.cell_size
    heights = field_values(surface, np.concatenate(points), float(told.settings.start))
    share = float((heights > heights.max() - LAYERS * spacing).mean())
    return share * told.total("template", "particles") / (LAYERS * spacing)


def _span(settings: GraphSettings, start_frame: float, duration: float) -> tuple[float, float]:
    """Return the seconds of the shot at which a stream begins and ends; infinite where it has no end."""
    clock = Clock.of(settings)
    return clock.seconds(start_frame), clock.seconds(start_frame + duration) if duration > 0.0 else math.inf


def _rated(rate: float) -> bool:
    """Return whether a rate is given: above 0, or with keys."""
    return carries_keys(rate) or rate > 0.0


def _refuse_still(velocity: Any) -> None:
    if not fastest(velocity).any():
        raise MpmNodesError("emit_stream.velocity: is zero, so nothing would flow; give a speed and a direction")


def _refuse_amounts(rate: Any, volume: float, region: SpatialField | None) -> None:
    """Refuse what brings nothing, or never ends where it should.

    Raises:
        MpmNodesError: With the knob.
    """
    if carries_keys(rate) and max(key[1] for key in rate.keys) <= 0.0:
        raise MpmNodesError("emit_stream.rate: none of its keys is above 0, so nothing would flow; raise one")
    if region is not None:
        everywhere("emit_stream.region", number("emit_stream.region", region))
        if not volume > 0.0:
            raise MpmNodesError("emit_stream.volume: is 0 with a region wired in; give the volume of matter in it at which to stop")


def _refuse_surface(surface: SpatialField | None, profile: Profile) -> None:
    """Refuse a surface that is none.

    Raises:
        MpmNodesError: With the knob.
    """
    if surface is None:
        return
    everywhere("emit_stream.surface", number("emit_stream.surface", surface))
    if profile is not Profile.PLUG:
        raise MpmNodesError(f"emit_stream.profile: {profile.value} is of a nozzle, and a surface is wired in; set it to plug")


def _path(
    settings: GraphSettings, kept: Kept, path: Path | None, prim: str, travel: float, follows: bool = False
) -> CurvePath | None:
    """Return the curve that a nozzle travels."""
    if path is None:
        return None
    from usd_io import require_usd

    require_usd()
    from usd_io.curves import read_curve

    line = kept.get(("curve", *stamp(path), prim), lambda: read_curve(path, prim, settings.start / settings.fps))
    pieces = np.linalg.norm(np.diff(line, axis=0), axis=1)
    return CurvePath(line, np.concatenate([[0.0], np.cumsum(pieces)]), travel, follows)


def _warn_of_times(settings: GraphSettings, start_frame: float, duration: float, end: float) -> None:
    if start_frame > settings.end:
        warnings.warn(
            f"emit_stream.start_frame: {start_frame:g} lies after the last frame {settings.end}: the stream never comes; "
            "lower it, or raise settings.end",
            stacklevel=3,
        )
    if end < 0.0:
        warnings.warn(
            f"emit_stream.duration: the stream ends at frame {start_frame + duration:g}, before the first frame {settings.start}: "
            "it never comes; raise start_frame or duration, or lower settings.start",
            stacklevel=3,
        )


@found_by("pour", "tap", "faucet", "fountain", "hose", "inflow", "spout", "source")
@node(category="Emit", label="Stream", version=2, preflight=_streamed)
def emit_stream(
    settings: GraphSettings,
    template: Particles,
    region: SpatialField | None = None,
    opening: SpatialField | None = None,
    velocity_field: SpatialField | None = None,
    surface: SpatialField | None = None,
    kept: Kept = NOTHING_KEPT,
    *,
    velocity: A[Vec3, MetresPerSecond, KeysTravel()] = (0.0, -1.0, 0.0),
    start_frame: A[float, Frames, NotKeyable("a stream begins once")] = 1.0,
    duration: A[float, Frames, Range(min=0.0, soft_max=240.0), NotKeyable("a stream ends once")] = 0.0,
    rate: A[float, Unit("m^3/s"), Range(min=0.0, soft_max=0.01), KeysTravel()] = 0.0,
    rate_unit: FlowUnit = FlowUnit.VOLUME,
    volume: A[float, Unit("m^3"), Range(min=0.0, soft_max=1.0), NotKeyable("a stream is full once")] = 0.0,
    profile: Profile = Profile.PLUG,
    room_only: A[bool, NotKeyable("it is how all of a stream is counted")] = False,
    inherit_velocity: A[float, Unit("%"), Range(min=0.0, soft_max=100.0)] = 100.0,
    path: Path | None = None,
    prim: str = "",
    travel: A[float, Unitless, Range(min=0.0, max=1.0), KeysTravel()] = 0.0,
    follow_path: A[bool, NotKeyable("a nozzle is led in one way")] = False,
    deforms: A[bool, NotKeyable("it is what the template is")] = False,
    jitter: A[float, Unitless, Range(min=0.0, max=1.0), NotKeyable("it is how a stream is made")] = 0.0,
) -> Emitter:
    """Let particles stream without end, or as much as is told, out of the place that the template fills.

    With a rate, a volume, a profile, a field or a look for room its particles are counted: at every frame as many have come as that
    says, to one particle, and the event `emitted` tells their volume.

    Args:
        template: Particles that fill the nozzle: copies follow one another without gap. Where the template is not equally long
            everywhere along the velocity (a ball, a box askew to it), new particles fill its outline seen along the velocity, and
            a warning says so. Their own velocity is replaced by that of the stream. Key the emitter that makes them to move the
            nozzle: matter takes its motion along.
        surface: A field of the distance from a surface (field_collider, field_shape): the stream leaves it along its normals, out
            of the particles of the template that lie outermost, a cell deep. The velocity then gives the speed alone.
        region: A field: `volume` is then that of all matter where it is above 1/2 (a jar, with the stream over it).
        opening: A field: how fast matter comes in each place of the nozzle, of the mean; nothing comes where it is 0 or below. A
            stencil; it is looked at in the template, as it is at the shot's first frame. A nozzle that leaves it brings none.
        velocity_field: A field of vectors [m/s] that is added to the velocity of particles where they are born, then: a swirl, a
            spray. As many come as without it.
        velocity: Speed and direction of the stream, beside the nozzle's own motion, per simulated second. With a rate its
            direction alone counts.
        start_frame: First frame that shows it: its foremost particles are there. Before the shot's start it runs from the start.
        duration: How many frames it lasts; 0 for the whole shot.
        rate: What comes in a simulated second; the speed follows from the nozzle's cross-section. Stepped keys make bursts. 0: what
            the velocity carries.
        rate_unit: Whether the rate is a volume or, in kg/s, a mass.
        volume: Volume after which it stops for good; 0: it does not.
        profile: Speeds across the nozzle.
        room_only: Particles are born only where matter that is there leaves room, under its surface too.
        inherit_velocity: How much of the nozzle's own velocity the matter takes along.
        path: A USD file with a curve (BasisCurves) that the nozzle travels, from where its template is.
        prim: Path or name of the curve; may stay empty where the file holds only one.
        travel: Where along the curve the nozzle is, as a share of its arc length; key it.
        follow_path: Turn the nozzle, about its middle, and the direction of its stream with the curve: they are as given where its
            travel begins.
        deforms: The template changes its shape and keeps its particles in their order, as those of read_points: what comes between
            frames comes from where each of them is by then, and takes its velocity along. Its outline is not filled.
        jitter: Random shift across the stream, another for each particle that is born, as a fraction of the spacing. Without it all
            that comes from one place of the nozzle goes one way: sand that spreads lies in lines. 1 for sand; liquids need none.

    Raises:
        MpmNodesError: Nothing would flow, a region has no volume, or a field does not fit.
        InputError: The curve cannot be read.
    """
    if not len(template):
        raise MpmNodesError("emit_stream.template: holds no particles; wire an emitter that makes some")
    _refuse_still(velocity)
    _refuse_amounts(rate, volume, region)
    _refuse_surface(surface, profile)
    start, end = _span(settings, start_frame, duration)
    _warn_of_times(settings, start_frame, duration, end)
    _refuse_fields(opening, velocity_field, deforms or surface is not None)
    speed = fastest(velocity)
    axis = speed / np.linalg.norm(speed)
    template = _opened(template, opening, settings)[0]
    outline, gap = nozzle(template, axis) if surface is None else (template, 0.0)
    if deforms and gap > 0.0:
        warnings.warn(  # in the same words at every frame, so that it is told once
            "emit_stream.template: copies of it leave gaps, where it is not equally long along the velocity, since what deforms "
            "keeps its particles; make it of one layer across the velocity, or turn deforms off",
            stacklevel=2,
        )
    elif gap > 0.0:
        template = outline
        warnings.warn(
            f"emit_stream.template: copies of it would leave gaps of up to {gap:.3g} m, since it is not equally long everywhere "
            "along the velocity; its outline seen along the velocity is filled with a new lattice; turn it along the velocity to "
            "keep its particles",
            stacklevel=2,
        )
    template, factors = _opened(template, opening, settings)
    closed = factors is not None and not factors.any()
    if closed:
        warnings.warn(f"{CLOSED}, or wait until it is there", stacklevel=2)
        factors = None
    metering = None
    if _rated(rate) or volume > 0.0 or profile is not Profile.PLUG or room_only or opening or velocity_field:
        each = float(np.asarray(template["volume"], float).mean())
        if 0.0 < volume < 0.5 * each:
            told = f"{volume:g} m^3 is less than half a particle of {each:.3g} m^3: none comes"
            warnings.warn(f"emit_stream.volume: {told}", stacklevel=2)
        if profile is Profile.PARABOLIC:
            factors = parabolic(template, axis) if factors is None else of_mean(parabolic(template, axis) * factors)
        given = _in_volume(template, rate, rate_unit) if _rated(rate) else None
        metering = Metering(given, volume or math.inf, region, factors, room_only, velocity_field, closed)
        if given is not None and not carries_keys(velocity):
            most = float(fastest(given))
            velocity = _vector(axis * most / _section(template, axis))
    columns = dict(template.attributes)
    columns["velocity"] = np.broadcast_to(np.asarray(velocity, np.float64), (len(template), 3))
    moving = Particles(columns, template.materials, template.spacing, template.time)
    return Emitter(
        moving,
        velocity if carries_keys(velocity) else _vector(velocity),
        max(start, 0.0),
        end,
        metering=metering,
        inherit=0.01 * inherit_velocity,
        path=_path(settings, kept, path, prim, travel, follow_path),
        deforms=deforms,
        surface=None if surface is None else (surface, gradient(surface, 0.25 * settings.cell_size)),
        jitter=jitter,
    )


def _refuse_fields(opening: SpatialField | None, velocity_field: SpatialField | None, whole: bool) -> None:
    """Refuse fields that read particles, a number for velocities, vectors for an opening, and one in what needs its whole template.

    Raises:
        MpmNodesError: With the port.
    """
    if opening is not None and whole:
        raise MpmNodesError(
            "emit_stream.opening: a template that deforms, or whose stream leaves a surface, is whole; take the opening out, or "
            "the surface and deforms"
        )
    if opening is not None:
        everywhere("emit_stream.opening", number("emit_stream.opening", opening))
    if velocity_field is not None:
        if not everywhere("emit_stream.velocity_field", velocity_field).vector:
            raise MpmNodesError("emit_stream.velocity_field: is a field of numbers, and vectors are needed; see field_vector")


def _opened(template: Particles, opening: SpatialField | None, settings: GraphSettings) -> tuple[Particles, np.ndarray | None]:
    """Return the particles of a template where it is open, and how fast they come, of the mean, where they differ in that.

    Where it is closed everywhere they are all there, and none comes: a nozzle may leave its opening, and come back.

    Raises:
        MpmNodesError: The field is not finite.
    """
    if opening is None:
        return template, None
    from mpm_nodes.solver.field_programs import field_values

    found = field_values(opening, np.asarray(template["position"], float), settings.start)
    if not np.isfinite(found).all():
        raise MpmNodesError("emit_stream.opening: is not finite everywhere in the template; limit the field by field_math")
    kept = found > 0.0
    if not kept.any():
        return template, np.zeros(len(template))
    attributes = {name: column[kept] for name, column in template.attributes.items()}
    factors = of_mean(found[kept]) if np.ptp(found[kept]) else None
    return Particles(attributes, template.materials, template.spacing, template.time), factors


def _in_volume(template: Particles, rate: float, unit: FlowUnit) -> float:
    """Return a rate in m^3/s."""
    if unit is FlowUnit.VOLUME:
        return rate
    return scaled_keys(rate, float(np.asarray(template["volume"], float).sum() / np.asarray(template["mass"], float).sum()))


def _section(template: Particles, axis: np.ndarray) -> float:
    """Return the area of the stream of a template [m^2]: its volume over its length."""
    layers = round(float(np.ptp(template["position"] @ axis)) / template.spacing) + 1.0
    return float(np.asarray(template["volume"], float).sum()) / (layers * template.spacing)


def _vector(components: Iterable[float]) -> Vec3:
    x, y, z = map(float, components)
    return x, y, z
