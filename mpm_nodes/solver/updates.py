"""Attributes of particles that change while a solve runs, as fields say."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpm_nodes.data import AttributeUpdate, Moment, MpmNodesError, SpatialField, StepContext
from mpm_nodes.data.spatial import attributes_of
from mpm_nodes.solver.field_programs import field_values, rows_of
from mpm_nodes.solver.state import ParticleStore

__all__ = ["update_attributes"]


def update_attributes(particles: ParticleStore, updates: Sequence[AttributeUpdate], step: StepContext) -> None:
    """Change attributes of particles: as a frame begins, or every substep where an update asks for it.

    Fields are looked at where particles are then, at the frame that it is then. Each update sees what those before it left.

    Args:
        particles: Particles that have the attributes.
        updates: In the order in which they act.
        step: The substep that begins.

    Raises:
        MpmNodesError: A value is not finite, or a vector is given to a number.
    """
    due = [each for each in updates if each.each_substep or step.substep == 0] if particles.count else []
    if not due:
        return
    now = step.moment(0.0)
    moment = dataclasses.replace(now, frame=round(now.frame, 6))  # a key at a frame counts from there, whatever is rounded
    places = particles.unpack("position")
    for each in due:
        held = np.asarray(particles.unpack(each.attribute), float)
        value = _values(each.value, particles, places, moment)
        if value.shape != held.shape:
            kinds = ("a vector", "a number") if value.ndim > held.ndim else ("a number", "a vector")
            raise MpmNodesError(f"update_attribute {each.name}: the field gives {kinds[0]}, and {each.attribute} is {kinds[1]}")
        if each.combination != "set":
            value = held + value if each.combination == "add" else held * value
        value = np.clip(value, *each.limits)
        if each.mask is not None:
            share = np.clip(_values(each.mask, particles, places, moment), 0.0, 1.0)
            share = share if held.ndim == 1 else share[:, None]
            value = share * value + (1.0 - share) * held
        if not (np.abs(value) <= np.finfo(particles.dtype).max).all():
            raise MpmNodesError(f"update_attribute {each.name}: {each.attribute} is not finite everywhere in the matter")
        particles.pack(each.attribute, value)


def _values(field: SpatialField, particles: ParticleStore, places: np.ndarray, moment: Moment) -> np.ndarray:
    """Return a field on particles, shape (count,) or (count, 3)."""
    rows = rows_of(particles, moment)
    return field_values(field, places, moment, {name: rows(name).T for name in attributes_of(field)})
