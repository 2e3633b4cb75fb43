"""What the samples of heat and projection show: their balances of mass, momentum and enthalpy, and what must be seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mpm_nodes.data import Material, Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.materials.volumes import volume_ratios
from mpm_nodes.solver.emission import Stream
from mpm_nodes_samples.shots.shot import Figure, Shot, Target


def enthalpy(particles: Particles) -> float:
    """Return heat and latent heat of particles, over solids at their freezing temperature, 0 K where they have none [J]."""
    total, kind, mass = 0.0, particles["material"], np.asarray(particles["mass"], float)
    temperature = np.asarray(particles["temperature"], float)
    liquid = particles["phase"] == 1 if "phase" in particles else np.zeros(len(mass), bool)
    share = np.asarray(particles["latent_heat_fraction"], float) if "latent_heat_fraction" in particles else np.zeros(len(mass))
    shift = np.asarray(particles["freezing_shift"], float) if "freezing_shift" in particles else np.zeros(len(mass))
    for index, thermal in enumerate(material.thermal for material in particles.materials):
        mine = (kind == index) & np.isfinite(temperature)
        if thermal is None or not mine.any():
            continue
        above = temperature[mine] - (thermal.freezing_temperature or 0.0) - shift[mine]
        capacity = np.where(liquid[mine], thermal.liquid_heat_capacity, thermal.heat_capacity)
        total += float(mass[mine] @ (capacity * above + thermal.latent_heat * share[mine]))
    return total


def momentum(shot: Shot, particles: Particles) -> np.ndarray:
    """Return sum m v [kg m/s], shape (3,): caches hold velocities in seconds of the shot."""
    return np.asarray(particles["mass"], float) @ np.asarray(particles["velocity"], float) / shot.time_scale


def streamed(shot: Shot) -> tuple[float, float]:
    """Return the mass [kg] and the enthalpy [J] that streams bring after the first frame, from their templates and speeds alone."""
    mass = heat = 0.0
    for name, entry in shot.graph.nodes.items():
        if entry.type != "emit_stream":
            continue
        settings, emitter = shot.graph.settings, Evaluator(shot.graph).value(name, shot.first)
        materials, clock = emitter.template.materials, Clock.of(settings, pace=shot.time_scale)
        end = clock.simulated(min(shot.last, settings.end))
        came = Stream(emitter, np.arange(len(materials), dtype=np.int32), clock).between(0.0, end)
        if came is None:
            continue
        mass += float(np.asarray(came["mass"], float).sum())
        if "temperature" in came:
            heat += enthalpy(_in_phase(came, materials))
    return mass, heat


def _in_phase(columns: Mapping[str, np.ndarray], materials: tuple[Material, ...]) -> Particles:
    """Return particles as they enter a solve: liquid, with all their latent heat, above their freezing temperature."""
    freezing = np.array([np.inf if m.thermal is None else m.thermal.freezing_temperature or np.inf for m in materials])
    liquid = columns["temperature"] > freezing[columns["material"]] + columns.get("freezing_shift", 0.0)
    found = {**columns, "phase": liquid.astype(np.int32), "latent_heat_fraction": liquid.astype(float)}
    return Particles(found, materials)


def balances(shot: Shot) -> list[Figure]:
    """Return mass, momentum and, where there is heat, enthalpy at the start and at the end, and what streams brought."""
    first, last = shot.at(shot.first), shot.at(shot.last)
    before, after = shot.mass(shot.first), shot.mass(shot.last)
    brought, warmth = streamed(shot)
    of_streams = brought > 0.0
    change = "mass that is missing, over all" if of_streams else "change of the mass"
    found = [
        Figure("mass at the start [kg]", before),
        *([Figure("mass that streams bring [kg]", brought)] if of_streams else []),
        Figure("mass at the end [kg]", after),
        Figure(change, abs(after / (before + brought) - 1.0), Target(most=1e-6), "conserved"),
        Figure("momentum at the end [kg m/s]", float(np.linalg.norm(momentum(shot, last)))),
    ]
    if "temperature" not in first:
        return found
    begin, end, heat = enthalpy(first), enthalpy(last), shot.progress.heat
    found += [
        Figure("enthalpy at the start [J]", begin),
        *([Figure("enthalpy that streams bring [J]", warmth)] if of_streams else []),
        Figure("enthalpy at the end [J]", end),
        Figure("heat from bodies, air and sources [J]", heat),
    ]
    latent = max((each.thermal.latent_heat for each in first.materials if each.thermal is not None), default=0.0)
    over = max(abs(heat), after * latent) or 1.0
    missing = abs(end - begin - warmth - heat) / over
    found.append(Figure("enthalpy that is missing, over that heat or all latent heat", missing, Target(most=1e-4), "conserved"))
    return found


def ice_in_water(shot: Shot) -> list[Figure]:
    """Return the balances, how deep the ice floats, how much is left of it, and the level of the water."""
    start, middle = shot.at(shot.first), shot.frames[2 * len(shot.frames) // 3]
    ice = start["phase"] == 0
    now = shot.at(middle)
    solid = now["phase"] == 0
    left = 100.0 * float(np.asarray(now["mass"], float)[solid].sum() / np.asarray(start["mass"], float)[ice].sum())
    y, level = now["position"][:, 1], float(np.percentile(now["position"][~solid, 1], 98.0))
    under = 100.0 * float((y[solid] < level).mean())
    depth = level - float(y[solid].min()) if solid.any() else 0.0
    return [
        *balances(shot),
        Figure(f"ice left in frame {middle} [%]", left, Target(1.0, 90.0), "melts"),
        Figure("share of it below the level of the water [%]", under, Target(60.0, 100.0), "floats: 92 in water at rest"),
        Figure("depth of its lowest point, over that of the pool", depth / level, Target(most=0.9), "does not sink"),
    ]


def between(value: float, within: float) -> Target:
    """Return the target of a number that another machine may miss by so much."""
    return Target(value - within, value + within)


def letters(shot: Shot) -> list[Figure]:
    """Return the balances, the fall of the first frame, and the volumes of the letters."""
    second, last = shot.at(shot.frames[1]), shot.at(shot.last)
    exact = shot.mass(shot.first) * 9.81 / 24.0
    found = [
        *balances(shot),
        Figure("momentum down in free fall, over m g t", -momentum(shot, second)[1] / exact, between(1.0, 1e-4)),
    ]
    rest = last["volume"].astype(float)
    taken = volume_ratios(last) * rest
    for index, name, within in (
        (0, "L, lam = 1 MPa", 0.02),
        (1, "I, lam = 70 MPa", 0.01),
        (2, "F, lam = 5 GPa", 0.01),
        (3, "T, incompressible clay", 0.01),
    ):
        mine = last["material"] == index
        ratio = float(taken[mine].sum() / rest[mine].sum())
        found.append(Figure(f"volume of {name}, over that at rest", ratio, between(0.997 if index == 0 else 1.0, within)))
    return [*found, Figure("highest particle [m]", float(last["position"][:, 1].max()), between(0.189, 0.06))]


def pool_at_rest(shot: Shot) -> list[Figure]:
    """Return the fastest particles below the surface of the two pools, over the speed of free fall since the start."""
    particles, found = shot.at(shot.last), []
    x, y = particles["position"][:, 0], particles["position"][:, 1]
    first = shot.at(shot.first)["position"]
    for name, mine, target in (
        ("with control volumes", x < 0.0, Target(most=0.05)),
        ("without", x > 0.0, Target(least=0.2)),
    ):
        deep = mine & (y < 0.8 * first[:, 1].max())
        speed = float(np.linalg.norm(np.asarray(particles["velocity"], float)[deep], axis=1).max())
        found.append(Figure(f"fastest particle below the surface, {name} [m/s]", speed, target))
    return [*balances(shot), *found]


def candied_apple(shot: Shot) -> list[Figure]:
    """Return the balances, the candy that the apple keeps, and how much of that is set."""
    last, radius, centre = shot.at(shot.last), 0.03, np.array([0.0, 0.115, 0.0])
    away = np.linalg.norm(last["position"] - centre, axis=1)
    coat = away < radius + 0.012
    set_ = 100.0 * float((last["phase"][coat] == 0).mean()) if coat.any() else 0.0
    return [
        *balances(shot),
        Figure("particles of candy on the apple", int(coat.sum()), Target(100)),
        Figure("share of its coat that is solid [%]", set_, Target(5.0), "hardens in the air"),
        Figure("share of the bath that is solid [%]", 100.0 * float((last["phase"][~coat] == 0).mean())),
    ]
