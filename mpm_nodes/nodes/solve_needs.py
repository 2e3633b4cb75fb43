"""What a solve will need, what will surprise, and what is refused, before the cook."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from mpm_nodes.data import BIRTH, GraphSettings, Material, MpmNodesError, WallRule
from mpm_nodes.graph.declare.decorators import PreflightContext
from mpm_nodes.graph.plan.preflight import UNKNOWN, free_memory, in_words
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.nodes.attachments import attached_columns
from mpm_nodes.nodes.bodies import flowed, marks
from mpm_nodes.nodes.fields_of_particles import reads_age, refuse_unfollowed, refuse_unknown_reads
from mpm_nodes.nodes.libraries import KERNELS
from mpm_nodes.nodes.start_inside import inside_warnings
from mpm_nodes.nodes.unread import WiredIn, unread
from mpm_nodes.physics import all_physics


class Precision(enum.Enum):
    """Float type of the solve."""

    SINGLE = "single"
    DOUBLE = "double"


class ComputeDevice(enum.Enum):
    """What the solve runs on."""

    CPU = "cpu"
    CUDA = "cuda"
    AUTO = "auto"


BYTES, BYTES_ALWAYS = 600, 100 << 20
"""What a particle takes in single precision (state, sort buffers, the published snapshot), and what a solve takes at least."""
PUBLISHED = 192
"""What a particle takes in what the solve publishes: the values of one frame are read while those of the next are made."""
STATE, KEPT_STATES = 160, 2
"""What a particle takes in the state that is written after a frame, and how many of these are kept."""
HELD = 250
"""What implicit substeps hold of a particle as a frame begins, to solve it again if one of them fails."""
TIE, TIE_PLACE = 12, 36
"""What an attachment takes of each particle: what became of its tie, and its place, in state, sort buffers and snapshot."""
GATHERED = 200
"""What a particle takes on rank 0 of several, which publishes those of all."""


def expected(told: PreflightContext) -> dict[str, Any]:
    """Estimate the solve's memory at its last frame, and say what will surprise."""
    from mpm_nodes.graph.plan.substeps import plans_of
    from mpm_nodes.nodes.own_weight import mouth_warnings, weight_warnings
    from mpm_nodes.nodes.rods import rod_warnings
    from mpm_nodes.nodes.stiff_liquids import liquid_notes
    from mpm_nodes.solver.columns import columns_of
    from mpm_nodes.solver.periodic import refuse_half_periodic
    from mpm_nodes.solver.surroundings import AIR_RANKS, MASKED_RANKS

    scale = 1.0 if told.knobs["precision"] is Precision.SINGLE else 2.0
    each = scale * (BYTES + (HELD if _is_implicit(told.knobs["substeps"]) else 0))
    each += told.total("forces", "attachments") * (TIE + scale * TIE_PLACE)
    particles = told.total("sources", "particles") + told.total("emitters", "particles")
    clock = Clock.of(told.settings, told.knobs["start_frame"], told.knobs["time_scale"])
    flows, gravity = told.every("emitters", "flows"), told.knobs["gravity"]
    streamed, poured = (sum(flowed(flow, clock, last) for flow in flows) for last in (told.settings.end, _middle(told.settings)))
    bodies = (*told.distinct("sources", "bodies"), *told.distinct("emitters", "bodies"))
    tempered, airs = told.total("colliders", "tempered") > 0, told.total("ambient", "air")
    around, fields = (told.total("ambient", fact) > 0 for fact in ("ambient", "tension_fields"))
    matter, pushed = marks(told, "sources", "emitters"), told.total("forces", "forces") > 0
    updated = {*told.every("updates", "gives")}
    heated, scaled = matter["heated"] or "heat_source" in updated, matter["scaled"] or "tension_scale" in updated
    wired = WiredIn(frozenset({"heat_source"} if heated else ()), scaled, tempered, around, airs, fields, pushed)
    _refuse_untold(told)
    refuse_unfollowed(told)
    _refuse_mixed_updates(told)
    sides = [told.knobs[f"wall_{axis}_{side}"] for axis in "xyz" for side in ("low", "high")]
    refuse_half_periodic(sides)
    warnings = unread(bodies, told.knobs["substeps"], wired, whole=not matter["untold"])
    warnings += [*weight_warnings(bodies, gravity), *inside_warnings(told)]
    shortest, longest = (told.knobs[name] for name in ("dt_min", "dt_max"))
    if shortest > longest:
        warnings.append(f"solve.dt_min: {shortest:g} s is longer than dt_max, {longest:g} s, and holds; lower it, or raise dt_max")
    asleep = told.total("active", "sleeps") > 0
    if asleep and updated:
        warnings.append("solve.active: an update changes what sleeps, and does not wake it; let it act where matter moves")
    warnings += rod_warnings(told.distinct("colliders", "rods"), told.knobs["substeps"], told.settings.cell_size)
    for physics in all_physics():
        warnings += physics.wired(told, lambda: plans_of(told.knobs["substeps"]))
    if not told.total("colliders", "carries"):
        warnings += mouth_warnings(flows, gravity, clock, told.settings.end)
    unsure = streamed > 0 and WallRule.DELETE in sides
    if unsure:
        need = streamed * each
        if need > 0.5 * free_memory():
            warnings.append(
                f"streams bring up to {streamed:.3g} particles by frame {told.settings.end} ({in_words(int(need))}), less what the "
                "walls delete; they are not in the estimate"
            )
        streamed = poured = 0.0
    mean = int(min(told.mean("sources") + told.mean("emitters") + poured, 2.0**62))
    particles = int(min(particles + streamed, 2.0**62))
    memory = int(particles * each) + BYTES_ALWAYS
    materials = [body.material for body in bodies]
    if told.ranks > 1:
        if told.inputs.get("active"):
            raise MpmNodesError(MASKED_RANKS)
        if told.total("forces", "presses"):
            raise MpmNodesError(AIR_RANKS)
        warnings += _shared(told.knobs["substeps"], WallRule.PERIODIC in sides)
        memory = int(particles * scale * (BYTES / told.ranks + GATHERED)) + BYTES_ALWAYS
    if told.knobs["device"] is ComputeDevice.CUDA:
        _refuse_on_gpu(told, materials, particles)
    known = not matter["untold"] and matter["columns"] is not None
    columns = None
    if known:
        given = matter["columns"] | updated | ({BIRTH} if reads_age(told) else set())
        given |= attached_columns(told.total("forces", "attachments"))
        columns = columns_of(told.knobs["substeps"], materials, given)
        refuse_unknown_reads(told, columns)
    return {
        "memory": memory,
        "values": int(scale * PUBLISHED * particles),
        "shared": KERNELS,
        "disk_once": int(scale * KEPT_STATES * STATE * particles),
        "particles": particles,
        "mean_particles": mean,
        "bodies": bodies,
        "warnings": warnings,
        "notes": tuple(liquid_notes(bodies, flows, told.knobs["substeps"], gravity, clock, told.settings)),
        "columns": columns,
        "moves": told.every("colliders", "rigid_bodies"),
        "tells_forces": int(told.knobs["contact_forces"]),
        UNKNOWN: unsure,
    }


def _refuse_on_gpu(told: PreflightContext, materials: Sequence[Material], particles: int) -> None:
    """Refuse a solve that cannot run on a GPU as far as the graph tells, or has no room there."""
    import numpy as np

    from mpm_nodes.kernels.cuda.device import open_device
    from mpm_nodes.physics import with_further
    from mpm_nodes.solver.coefficients import tabled_law
    from mpm_nodes.solver.device.choice import refuse, refuse_large
    from mpm_nodes.solver.program import programs_of

    laws = [tabled_law(material) for material in with_further(materials)]
    state, inputs = (tuple(dict.fromkeys(name for law in laws for name in getattr(law, of))) for of in ("state", "inputs"))
    programs = programs_of(told.knobs["substeps"], state, fuse=True, law_inputs=inputs)
    dtype = np.float32 if told.knobs["precision"] is Precision.SINGLE else np.float64
    refuse(programs, laws, dtype, several=told.ranks > 1)
    refuse_large(open_device(), particles)


def _refuse_untold(told: PreflightContext) -> None:
    """Refuse adhesion and forces on colliders where the substeps do not find them."""
    from mpm_nodes.graph.plan.substeps import plans_of
    from mpm_nodes.solver.contact_forces import refuse_untold_contacts, refuse_untold_forces
    from mpm_nodes.solver.sleep import refuse_sleep

    asked = {
        "solve.colliders: matter sticks to one by adhesion": told.total("colliders", "sticks"),
        "solve.colliders: collider_contact varies one": told.total("colliders", "painted"),
    }
    what = next((each for each, holds in asked.items() if holds), "")
    sleeps = told.total("active", "sleeps") > 0
    forces = told.knobs["contact_forces"]
    if what or forces or sleeps:
        plans = plans_of(told.knobs["substeps"])
        if what:
            refuse_untold_contacts(plans, what)
        if forces:
            refuse_untold_forces(plans)
        if sleeps:
            refuse_sleep(plans)


def _refuse_mixed_updates(told: PreflightContext) -> None:
    """Refuse updates of one attribute of which one gives vectors and another numbers."""
    known: dict[str, tuple[str, bool]] = {}
    for by, facts in zip(told.names.get("updates", ()), told.inputs.get("updates", ()), strict=False):
        for name in facts["gives"] if "vector" in facts else ():
            first, vector = known.setdefault(name, (by, facts["vector"]))
            if vector != facts["vector"]:
                kinds = ("vectors", "numbers") if vector else ("numbers", "vectors")
                given = f"'{name}' gets {kinds[0]} from {first} and {kinds[1]} from {by}"
                raise MpmNodesError(f"solve.updates: {given}; give it one kind, or another name")


def _middle(settings: GraphSettings) -> float:
    """Return the frame in the middle of the shot, where a stream that flows throughout has brought half of what it will."""
    return 0.5 * (settings.start + settings.end)


def _is_implicit(recipe: Any) -> bool:
    """Return whether a substep graph, or one that it may choose, has implicit substeps."""
    from mpm_nodes.graph.plan.substeps import is_implicit, resolve

    resolved = resolve(recipe)
    every = (resolved, *resolved.others)
    return any(is_implicit((stage, one.knobs[name]) for name, stage in one.declarations.items()) for one in every)


def _shared(recipe: Any, periodic: bool) -> list[str]:
    """Refuse what ranks cannot share, and return what it is well to know of the rest."""
    from mpm_nodes.graph.plan.substeps import plans_of
    from mpm_nodes.solver.ranks.refusals import refuse_on_ranks, warnings_on_ranks

    plans = plans_of(recipe)
    refuse_on_ranks(plans, (int(periodic),) * 3)
    return list(warnings_on_ranks(plans))
