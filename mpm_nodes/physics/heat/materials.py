"""Solid and liquid matter of one kind: which materials belong together, and in which phase new particles are."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from mpm_nodes.data import ATTRIBUTES, Material, MpmNodesError, Thermal

__all__ = ["checked_thermal", "densities_of", "first_phase", "melting", "melting_rubber", "partners_of", "with_melts"]


def melting(solid: Material, melt: Material) -> Material:
    """Return a solid that melts at 300 K, as kernels are compiled for."""
    return dataclasses.replace(solid, thermal=Thermal(2000.0, 1.0, 4000.0, 0.6, 3e5, 300.0, melt))


def melting_rubber(named: Callable[[str], Material]) -> tuple[Material, ...]:
    """Return what presets with heat are compiled for, given what finds a material in the library."""
    return (melting(named("rubber"), named("water")),)


def with_melts(materials: Sequence[Material]) -> tuple[Material, ...]:
    """Return the materials and, behind them, what each that melts becomes.

    Raises:
        MpmNodesError: A material's thermal parameters are not allowed.
    """
    melts = []
    for material in materials:
        if material.thermal is not None:
            checked_thermal(material)
            if material.thermal.melt is not None:
                melts.append(dataclasses.replace(material.thermal.melt, thermal=dataclasses.replace(material.thermal, melt=None)))
    return (*materials, *melts)


def partners_of(materials: Sequence[Material]) -> np.ndarray:
    """Return (as solid, as liquid) of each material of `with_melts`: the indices of what it is in either phase."""
    found = np.stack([np.arange(len(materials))] * 2, axis=1).astype(np.int32)
    solids = [n for n, material in enumerate(materials) if material.thermal is not None and material.thermal.melt is not None]
    for place, solid in enumerate(solids):
        liquid = len(materials) - len(solids) + place
        found[solid] = found[liquid] = solid, liquid
    return found


def densities_of(materials: Sequence[Material], partners: np.ndarray) -> np.ndarray:
    """Return the densities of each material of `with_melts` as solid and as liquid [kg/m^3], shape (materials, 2)."""
    return np.array([material.density for material in materials], float)[partners]


def checked_thermal(material: Material) -> Thermal:
    """Return a material's thermal parameters.

    Raises:
        MpmNodesError: It has none, or some are out of range.
    """
    where, thermal = f"material {material.label or material.law}", material.thermal
    if thermal is None:
        raise MpmNodesError(f"{where}: has no thermal parameters, but a stage moves its heat; wire it through material_thermal")
    for name in ("heat_capacity", "conductivity", "liquid_heat_capacity", "liquid_conductivity"):
        value = getattr(thermal, name)
        if not (math.isfinite(value) and value > 0.0):
            raise MpmNodesError(f"{where}: {name} = {value:g}; give a finite value > 0")
    if not (math.isfinite(thermal.latent_heat) and thermal.latent_heat >= 0.0):
        raise MpmNodesError(f"{where}: latent_heat = {thermal.latent_heat:g} J/kg; give a finite value >= 0")
    freezing = thermal.freezing_temperature
    if freezing is not None and not (math.isfinite(freezing) and freezing > 0.0):
        raise MpmNodesError(f"{where}: freezing_temperature = {freezing:g} K; give a finite value > 0 K")
    return thermal


def first_phase(columns: dict[str, np.ndarray], materials: Sequence[Material]) -> None:
    """Set phase and latent heat of new particles by their temperature, and the material that goes with it.

    Raises:
        MpmNodesError: A temperature is below 0 K or not finite, or a freezing temperature is not above 0 K.
    """
    if not len(columns["position"]) or all(material.thermal is None for material in materials):
        return
    columns.setdefault("temperature", ATTRIBUTES["temperature"].rest_values(len(columns["position"])))
    temperature = np.asarray(columns["temperature"], float)
    if not (np.isfinite(temperature).all() and temperature.min() >= 0.0):
        bad = int(np.flatnonzero(~(np.isfinite(temperature) & (temperature >= 0.0)))[0])
        raise MpmNodesError(f"solve: temperature of particle {bad} is {temperature[bad]:g} K; temperatures are finite and >= 0 K")
    points = [
        np.inf if m.thermal is None or m.thermal.freezing_temperature is None else m.thermal.freezing_temperature for m in materials
    ]
    freezing = np.array(points)[columns["material"]] + columns.get("freezing_shift", 0.0)
    if not (freezing > 0.0).all():
        bad = int(np.flatnonzero(~(freezing > 0.0))[0])
        label = materials[columns["material"][bad]].label or materials[columns["material"][bad]].law
        raise MpmNodesError(
            f"solve: particle {bad} of material {label} freezes at {freezing[bad]:g} K, which is not above 0 K; lower "
            "set_temperature.freezing_variation, or raise material_thermal.freezing_temperature"
        )
    if "phase" in columns:
        return
    liquid = temperature > freezing
    partners = partners_of(materials)
    columns["phase"] = liquid.astype(np.int32)
    columns["latent_heat_fraction"] = liquid.astype(float)
    columns["material"] = partners[columns["material"], columns["phase"]]
