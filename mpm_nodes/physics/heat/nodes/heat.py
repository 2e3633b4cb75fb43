"""Heat in the outer graph: what materials store and conduct, the temperatures of matter and of bodies."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Collider,
    FrameContext,
    JoulesPerKilogram,
    JoulesPerKilogramKelvin,
    Kelvins,
    Material,
    Metres,
    MpmNodesError,
    Particles,
    Range,
    SpatialField,
    Thermal,
    WattsPerMetreKelvin,
    WattsPerSquareMetre,
    WattsPerSquareMetreKelvin,
)
from mpm_nodes.graph.declare import found_by, node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.nodes.bodies import passed_on, tempered
from mpm_nodes.nodes.seeding import Seed
from mpm_nodes.nodes.through_space import at_least, refuse_misfits, through_space

_KEPT = NotKeyable("matter keeps the thermal parameters that it was made with")
_START = NotKeyable("it is what particles begin with")
_Heat = A[float, JoulesPerKilogramKelvin, Range(min=0.0, exclusive_min=True, soft_min=100.0, soft_max=1e4, log=True), _KEPT]
_Conductivity = A[float, WattsPerMetreKelvin, Range(min=0.0, exclusive_min=True, soft_min=0.01, soft_max=1e3, log=True), _KEPT]
_Temperature = Range(min=0.0, soft_min=200.0, soft_max=2000.0)


def _told_with_heat(told: PreflightContext) -> dict[str, Any]:
    """Preflight: making a material costs nothing, so it is told whole, with its melt."""
    melt = next(iter(told.every("melt", "materials")), None)
    return {"materials": tuple(material_thermal(each, melt, **told.knobs) for each in told.every("material", "materials"))}


@found_by("melt", "freeze", "hot", "cold", "wax", "lava")
@node(category="Material", label="Thermal Material", preflight=_told_with_heat)
def material_thermal(
    material: Material,
    melt: Material | None = None,
    *,
    heat_capacity: _Heat = 2000.0,
    conductivity: _Conductivity = 0.5,
    latent_heat: A[float, JoulesPerKilogram, Range(min=0.0, soft_max=5e5), _KEPT] = 1e5,
    freezing_temperature: A[float, Kelvins, Range(min=0.0, soft_max=2000.0), _KEPT] = 0.0,
    liquid_heat_capacity: A[float, JoulesPerKilogramKelvin, Range(min=0.0, soft_max=1e4), _KEPT] = 0.0,
    liquid_conductivity: A[float, WattsPerMetreKelvin, Range(min=0.0, soft_max=1e3), _KEPT] = 0.0,
) -> Material:
    """Let a material store and conduct heat, and melt: for substep graphs with heat stages.

    Args:
        material: Any material: what the matter is while it is solid.
        melt: What it is while it is liquid, with a law of its own; not wired, the law stays and only heat is taken up.
        heat_capacity: Specific heat of the solid: water 4200, ice 2100, wax and butter 2000, rock 1000, metals 400.
        conductivity: Of the solid: ice 2.2, rock 2, water 0.6, wax and butter 0.2, metals 20 to 400.
        latent_heat: Heat that melting takes up: ice 334000, wax 200000, butter 60000, lava 400000.
        freezing_temperature: Temperature at which solid and liquid are in balance; 0 K: it never melts.
        liquid_heat_capacity: Specific heat of the liquid; 0 takes that of the solid.
        liquid_conductivity: Of the liquid; 0 takes that of the solid.

    Raises:
        MpmNodesError: A melt is wired and there is no freezing temperature, or the material has a table of its liquid.

    Source: S14 sections 4.2, 5.8 and 5.9, Table 1.
    """
    if melt is not None and freezing_temperature <= 0.0:
        raise MpmNodesError(
            "material_thermal.freezing_temperature: is 0 K, but a melt is wired; set the temperature at which the material melts"
        )
    thermal = Thermal(
        heat_capacity,
        conductivity,
        liquid_heat_capacity or heat_capacity,
        liquid_conductivity or conductivity,
        latent_heat,
        freezing_temperature if freezing_temperature > 0.0 else None,
        melt,
    )
    made = dataclasses.replace(material, thermal=thermal)
    if made.tables:
        from mpm_nodes.materials.over_temperature import tabled_law

        tabled_law(made)  # a table of the liquid belongs to the melt where there is one
    return made


class Ramp(enum.Enum):
    """Axis along which temperatures change."""

    NONE = "none"
    X = "x"
    Y = "y"
    Z = "z"


def _told_with_temperature(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the matter is passed on; noise and variation that reach below 0 K are refused."""
    knobs = told.knobs
    facts = passed_on(told, "temperature", *(["freezing_shift"] if knobs["freezing_variation"] else []))
    coldest = min(knobs["temperature"], knobs["temperature"] if knobs["ramp"] is Ramp.NONE else knobs["far_temperature"])
    if knobs["noise"] > coldest:
        raise MpmNodesError(
            f"set_temperature.noise: {knobs['noise']:g} K around {coldest:g} K reaches below 0 K; give less noise than temperature"
        )
    variation = knobs["freezing_variation"]
    for material in (body.material for body in facts["bodies"]):
        freezing = None if material.thermal is None else material.thermal.freezing_temperature
        if freezing is not None and variation >= freezing:
            raise MpmNodesError(
                f"set_temperature.freezing_variation: {variation:g} K around the {freezing:g} K at which material "
                f"{material.label or material.law} freezes reaches down to 0 K; give less"
            )
    return facts


@found_by("hot", "cold", "heat")
@node(category="Emit", label="Temperature", preflight=_told_with_temperature)
def set_temperature(
    particles: Particles,
    *,
    temperature: A[float, Kelvins, _Temperature, _START] = 293.15,
    ramp: Ramp = Ramp.NONE,
    far_temperature: A[float, Kelvins, _Temperature, _START] = 293.15,
    noise: A[float, Kelvins, Range(min=0.0, soft_max=100.0), _START] = 0.0,
    noise_size: A[float, Metres, Range(min=0.0, exclusive_min=True, soft_min=0.01, soft_max=1.0), _START] = 0.1,
    freezing_variation: A[float, Kelvins, Range(min=0.0, soft_max=50.0), _START] = 0.0,
    seed: Seed = 0,
) -> Particles:
    """Give particles the temperature that they begin with.

    Args:
        particles: Particles of an emitter, or the template of a stream.
        temperature: Temperature; with a ramp at its low end.
        ramp: Axis along which it changes from the lowest particle to the highest.
        far_temperature: Temperature at the high end of the ramp.
        noise: Largest deviation that smooth noise adds.
        noise_size: Distance over which the noise changes.
        freezing_variation: Half width of the random shift of each particle's freezing temperature: crusts break up unevenly.
        seed: Seed of the random choices.

    Raises:
        MpmNodesError: The noise takes temperatures below 0 K.
    """
    position = particles["position"]
    share = np.zeros(len(particles))
    if ramp is not Ramp.NONE and len(particles):
        along = position[:, "xyz".index(ramp.value)]
        share = (along - along.min()) / max(float(np.ptp(along)), 1e-300)
    values = temperature + (far_temperature - temperature) * share
    if noise > 0.0:
        values = values + noise * _smooth_noise(position, noise_size, np.random.default_rng([seed, 2]))
    if len(values) and values.min() < 0.0:
        raise MpmNodesError(
            f"set_temperature: the coldest particle has {values.min():g} K; temperatures are >= 0 K, lower the noise"
        )
    columns = {**particles.attributes, "temperature": values}
    if freezing_variation > 0.0:
        columns["freezing_shift"] = freezing_variation * np.random.default_rng([seed, 3]).uniform(-1.0, 1.0, len(particles))
    return dataclasses.replace(particles, attributes=columns)


def _told_with_field(told: PreflightContext) -> dict[str, Any]:
    refuse_misfits(told, "collider_temperature.field")
    return tempered(told)


@node(category="Collide", label="Collider Temperature", preflight=_told_with_field)
def collider_temperature(
    collider: Collider,
    ctx: FrameContext,
    field: SpatialField | None = None,
    *,
    temperature: A[float, Kelvins, _Temperature, KeysTravel()] = 373.15,
    conductance: A[
        float, WattsPerSquareMetreKelvin, Range(min=0.0, exclusive_min=True, soft_min=10.0, soft_max=1e6, log=True), KeysTravel()
    ] = 1e4,
    held: bool = False,
) -> Collider:
    """Give a collider a temperature, so that matter that touches it is heated or cooled.

    Args:
        collider: Any collider.
        field: Temperatures of places on its surface [K]; without it `temperature` everywhere.
        temperature: Temperature of its surface; keys are sampled at every substep.
        conductance: Heat through a square metre of contact, a kelvin of difference: 1000 loose, 1e4 firm, 1e6 as one piece.
        held: Whether matter at the surface has the temperature itself; the conductance then says nothing.

    Raises:
        MpmNodesError: The field is one of vectors.
    """
    where = "collider_temperature.field"
    warm = None if field is None else through_space(ctx, where, at_least(ctx, where, field, 0.0))
    firmness = math.inf if held else conductance
    return dataclasses.replace(collider, temperature=temperature, temperatures=warm, conductance=firmness)


@node(category="Collide", label="Collider Heat Flux", preflight=tempered)
def collider_heat_flux(
    collider: Collider,
    ctx: FrameContext,
    *,
    flux: A[float, WattsPerSquareMetre, Range(soft_min=-1e5, soft_max=1e5), KeysTravel()] = 1e4,
) -> Collider:
    """Let a flux of heat come through the surface of a collider into matter on it, whatever its temperature: a burner, a cooler.

    Args:
        collider: Any collider; with a temperature besides (collider_temperature) both count, without one it insulates else.
        flux: Heat through a square metre of contact: a kitchen's hob 5e4, the sun 1e3; negative ones cool. Keys are sampled at
            every substep.
    """
    return dataclasses.replace(collider, heat_flux=flux)


def _smooth_noise(position: np.ndarray, size: float, random: np.random.Generator) -> np.ndarray:
    """Return noise in [-1, 1] that changes over `size` [m]: random values on a lattice, smoothly in between."""
    if not len(position):
        return np.zeros(0)
    place = (position - position.min(axis=0)) / size
    cells = np.floor(place).astype(np.int64)
    if float(np.prod(cells.max(axis=0) + 2.0)) > 1e8:
        raise MpmNodesError(f"set_temperature.noise_size: {size:g} m is too fine for these particles; raise it")
    lattice = random.uniform(-1.0, 1.0, cells.max(axis=0) + 2)
    f = place - cells
    f = f * f * (3.0 - 2.0 * f)
    found = np.zeros(len(position))
    for corner in range(8):
        offset = np.array([corner >> 2, (corner >> 1) & 1, corner & 1])
        found += np.prod(np.where(offset, f, 1.0 - f), axis=1) * lattice[tuple((cells + offset).T)]
    return found
