"""What to do where short substeps make a frame long: named from the materials, emitters, bodies and presets that are there."""

from __future__ import annotations

import dataclasses
import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.time import keys
from mpm_nodes.materials.contract import Law, law
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.moduli import moduli_of
from mpm_nodes.materials.weak_compressibility import LIBRARY_DEPTH, enough_bulk_modulus
from mpm_nodes.physics import all_physics

__all__ = ["CURES", "MANY", "Advice", "StiffLiquid", "kinds", "preset_words", "slowing", "softening", "why_so_many"]

MANY = 200
"""Substeps of a frame from which on a liquid in explicit substeps is told why, and what to take."""
COARSER = "raise settings.cell_size"

CURES = {
    "dt_max": "raise the solve's dt_max",
    "dt_min": "lower the solve's dt_min only if it diverges; a coarser settings.cell_size allows longer substeps",
    "law": f"change the material that asks for so short a substep, or {COARSER}",
    "collider": "change the collider that asks for so short a substep",
    "implicit solve": "raise newton_iterations or tolerance of minimise_energy",
}
"""What to do against limits of `choose_time_step` that neither speed nor the material's numbers explain."""


class Advice:
    """Says what to do about what limits the substeps of a solver.

    Args:
        solver: The `SubstepSolver`; it is not kept alive.

    Attributes:
        emitters: Names of the nodes that its emitters come from, as far as there are any.
    """

    def __init__(self, solver: Any) -> None:
        self._solver = weakref.proxy(solver)
        self.emitters: Sequence[str] = ()
        self._told = False

    def __call__(self, limit: str, name: str = "") -> str:
        """Return the advice against a limit, as half a sentence.

        Args:
            limit: Name of what holds dt.
            name: Label of the material, or name of the body, that it is due to.
        """
        if limit == "collider speed":
            return self._slower_body()
        if limit in ("particle speed", "strain rate"):
            return self._slower_matter(name)
        found = next((each for each in self._solver.particles.laws if each.label == name), None)
        presets = preset_words(self._kinds(), found is not None and not found.moduli.shear, limit) if self._explicit() else ""
        also = f", or solve with {presets}" if presets else ""
        if found is not None and limit == "elastic wave":
            return f"{_lowered(softening(found.material), found.material)}, raise its density or settings.cell_size{also}"
        if found is not None and limit == "viscosity":
            return f"{_lowered(slowing(found.material), found.material)}, {COARSER}{also}"
        if limit in (offered := self._offered()):
            return f"{offered[limit]}, or {COARSER}{also}"
        return CURES.get(limit, f"lower the solve's time_scale, or {COARSER}")

    def of_many(self, substeps: int, limit: str = "", limit_material: str = "", **_: Any) -> str:
        """Return, once, why a frame of a liquid took so many substeps, and what to take instead; "" where there is nothing to say.

        Args:
            substeps: How many.
            limit: What held them, with its `limit_material`, as reports have it.
        """
        text = "" if self._told else self._of_many(substeps, limit, limit_material)
        self._told = self._told or bool(text)
        return text

    def _of_many(self, substeps: int, limit: str, name: str) -> str:
        solver = self._solver
        found = next((each for each in solver.particles.laws if each.label == name), None)
        if substeps < MANY or limit != "elastic wave" or found is None or solver.share.several or not self._explicit():
            return ""
        gravity = math.hypot(*solver.step_context.gravity)
        mine = solver.particles.unpack("material") == found.index
        if found.moduli.shear or not gravity or not mine.any():
            return ""
        heights = solver.particles.unpack("position")[mine] @ (np.array(solver.step_context.gravity) / gravity)
        depth, h = float(np.ptp(heights)) + solver.matter.spacing, solver.cell_size
        liquid = StiffLiquid(found.material, found.moduli.bulk, depth, self._speed(found.index))
        longest = found.viscous_step(found.viscosity, h) / solver.step_context.dt if found.viscosity > 0.0 else math.inf
        return why_so_many(f"{substeps}", liquid, gravity, h, preset_words(self._kinds(), True), longest)

    def _explicit(self) -> bool:
        """Whether explicit substeps run that no preset chose from others."""
        return len(self._solver.candidates.programs) == 1 and not self._solver.program.implicit

    def _offered(self) -> dict[str, str]:
        """Return the cures of the limits that stages offer `choose_time_step`."""
        offered = (each.limit for planned in self._solver.program.unfused.stages for each in planned.declaration.limits)
        return {limit.name: limit.cure for limit in offered if limit.function is not None and limit.cure}

    def _kinds(self) -> frozenset[str]:
        return kinds() & {planned.declaration.id for planned in self._solver.program.unfused.stages}

    def _speed(self, index: int) -> float:
        """Return the largest speed of a material's particles [m/s]."""
        particles = self._solver.particles
        velocity = particles.unpack("velocity")[particles.unpack("material") == index].astype(float)
        return float(np.sqrt((velocity * velocity).sum(axis=1).max(initial=0.0)))

    def _slower_body(self) -> str:
        colliders = self._solver.colliders
        name = f"collider '{colliders.fastest_name}'" if colliders.fastest_name else "the walls"
        return f"slow {name} down, up to {colliders.fastest:.3g} m/s here, or {COARSER}"

    def _slower_matter(self, label: str) -> str:
        """Return the advice about what gives particles their speed: an emitter or a collider that is at least half as fast."""
        index = next((each.index for each in self._solver.particles.laws if each.label == label), 0)
        speed = self._speed(index)
        streams = [(_speed_of(stream.emitter), number) for number, stream in enumerate(self._solver.matter.streams)]
        given, number = max(streams, default=(0.0, 0))
        if given and given >= 0.5 * speed:
            name = self.emitters[number] if number < len(self.emitters) else ""
            return f"lower the velocity of emitter '{name or number}', {given:.3g} m/s, or {COARSER}"
        if self._solver.colliders.fastest and self._solver.colliders.fastest >= 0.5 * speed:
            return self._slower_body()
        return f"lower the velocity that particles of '{label}' are given, up to {speed:.3g} m/s now, or {COARSER}"


class StiffLiquid(NamedTuple):
    """A liquid in explicit substeps.

    Attributes:
        material: What it is.
        bulk_modulus: Of now [Pa].
        depth: [m].
        speed: At which it moves [m/s].
    """

    material: Material
    bulk_modulus: float
    depth: float
    speed: float


def why_so_many(count: str, liquid: StiffLiquid, gravity: float, cell_size: float, presets: str, longest: float = math.inf) -> str:
    """Return why a frame of a liquid takes many substeps, and what to take instead; "" where there is nothing to take.

    Args:
        count: How many substeps, in words.
        liquid: The liquid.
        gravity: [m/s^2].
        cell_size: [m].
        presets: Other substeps, as `preset_words` has them.
        longest: Times the substep of now that something else allows.
    """
    material, bulk, depth, speed = liquid
    name, enough = material.label or material.law, enough_bulk_modulus(material.density, gravity, depth, cell_size, speed)
    knob = next(iter(softening(material)), "")
    softer, why = "", f"{count} substeps a frame: pressure waves of '{name}' ask for so many"
    if knob and enough < 0.5 * bulk:
        fewer = f"{max(1.0, min(math.sqrt(bulk / enough), longest)):.2g}"
        moves = f" and {speed:.2g} m/s" if speed * speed > gravity * depth else ""
        softer = (
            f"; its {knob} is {bulk:.3g} Pa, and {enough:.2g} Pa would do for a depth of {depth:.2g} m{moves} on cells of "
            f"{cell_size:.2g} m, in {fewer} times fewer substeps: {_lowered((knob,), material, enough / bulk)}"
        )
    return f"{why}{softer}{f'; or solve with {presets}' if presets else ''}" if softer or presets else ""


def kinds() -> frozenset[str]:
    """Return the stages that say what a substep graph is for: another preset can take its place where it has the same of them."""
    return frozenset().union(*(physics.kinds for physics in all_physics()))


def softening(material: Material) -> tuple[str, ...]:
    """Return the parameters of a material whose law gets softer, and its elastic waves slower, as they are halved."""

    def of_waves(found: Law, numbers: np.ndarray) -> float:
        moduli = moduli_of(found, numbers)
        return moduli.bulk + 4.0 / 3.0 * moduli.shear

    return tuple(_halved(material, of_waves))


def slowing(material: Material) -> tuple[str, ...]:
    """Return the parameters of a material whose viscosity falls as they are halved; "viscosity" is also the material's own."""
    own = ("viscosity",) if material.viscosity > 0.0 else ()
    of_law = _halved(material, lambda found, numbers: 0.0 if found.viscosity is None else float(numbers[found.viscosity]))
    return tuple(dict.fromkeys((*of_law, *own)))


def preset_words(of: frozenset[str], liquid: bool, limit: str = "") -> str:
    """Return the presets whose substeps go beyond elastic waves, in words: 'substeps "implicit_apic" or "auto", ...'.

    Args:
        of: Those of `kinds` that the substeps of now have.
        liquid: Whether the matter resists no shear: presets with a stage for liquids, where there are any, are for it, and others
            for solids.
        limit: Name of what holds the step: presets with a stage that offers it are not better.
    """
    known = {name: strict_json.read(path) for name, path in registry.default().presets.items()}
    long = {name: _types(raw) for name, raw in known.items() if _goes_beyond(raw)}
    offering = {
        name
        for name, stage in registry.default().stages().items()
        if limit in [each.limit.name for each in stage.limits if each.limit.function]
    }
    long = {name: types for name, types in long.items() if types & kinds() == of and not types & offering}
    for_liquids = {stage for physics in all_physics() for stage in physics.for_liquids}
    suited = {name for name, types in long.items() if bool(types & for_liquids) == liquid} or set(long)
    either = [name for name, raw in known.items() if set(raw.get("candidates", ())) & suited]
    text = " or ".join(f'"{name}"' for name in sorted(suited))
    if text and either:
        text += f", or {' or '.join(f'{chr(34)}{name}{chr(34)}' for name in sorted(either))}, which takes the cheaper"
    return f"substeps {text}" if text else ""


def _types(raw: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(each["type"] for each in raw.get("nodes", {}).values())


def _goes_beyond(raw: Mapping[str, Any]) -> bool:
    return any(each.get("knobs", {}).get("implicit") is True for each in raw.get("nodes", {}).values())


def _halved(material: Material, measure: Callable[[Law, np.ndarray], float]) -> Iterator[str]:
    """Yield the parameters of a law that lower a measure of its coefficients by a quarter or more as they are halved."""
    found = law(material.law)
    values = {each.name: each.default for each in dataclasses.fields(found.params)} | dict(material.params)
    values = {name: keys.at(value, 0.0) if keys.carries_keys(value) else value for name, value in values.items()}
    before = measure(found, found.coefficients(values, material.density))
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0.0:
            continue
        try:
            after = measure(found, found.coefficients({**values, name: 0.5 * value}, material.density))
        except MpmNodesError:  # half of it is not allowed
            continue
        if after < 0.75 * before:
            yield name


def _lowered(names: Sequence[str], material: Material, share: float = 0.0) -> str:
    """Return 'lower these parameters', and where: an entry of the library has no knobs but the depth of its liquids.

    `share` is what of its modulus would do for a liquid, where that is known.
    """
    if not names:
        return "take a softer material"
    entry, depth = _entry_of(material)
    if entry and share:
        return f'set depth of material_library "{entry}" to {share * depth:.2g} m'
    text = f"lower {' or '.join(names)} of '{material.label or material.law}'"
    return f'{text} (a node material_{material.law} in place of material_library "{entry}" has the knob)' if entry else text


def _entry_of(material: Material) -> tuple[str, float]:
    """Return the entry of the library that a material is, and the depth that it was taken for [m]; "" for none."""
    for name in LIBRARY:
        ready, depth, params = named_material(name), LIBRARY_DEPTH, dict(material.params)
        scaled = LIBRARY[name].scale_with_depth
        if scaled and ready.law == material.law:
            stiff = ready.params[scaled]
            depth = LIBRARY_DEPTH * params.get(scaled, stiff) / stiff
            params[scaled] = stiff
        if (ready.law, ready.label, ready.params, ready.density) == (material.law, material.label, params, material.density):
            return name, depth
    return "", LIBRARY_DEPTH


def _speed_of(emitter: Any) -> float:
    velocity = emitter.velocity
    every = [key[1] for key in velocity.keys] if isinstance(velocity, keys.KeyedVector) else [velocity]
    return max(float(np.linalg.norm(each)) for each in every)
