"""Continuous emitters: a template of particles that streams through a nozzle, or whole copies of it that are dropped.

The template of a stream repeats along its velocity without gaps. A particle enters the solve when it passes the nozzle's exit
plane, and starts where the stream has carried it by the end of that substep: neither the number of substeps nor their length shows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mpm_nodes.data import Emitter, MpmNodesError, Particles


def source_of(emitter: Emitter, material_index: np.ndarray) -> Stream | Drops:
    """Return what brings the particles of an emitter into a solve (arguments as `Stream`'s)."""
    return Drops(emitter, material_index) if emitter.drops else Stream(emitter, material_index)


class Stream:
    """One streaming emitter of a solve.

    Args:
        emitter: What streams, how fast, from when to when.
        material_index: Index of each of the template's materials in the solve.

    Raises:
        MpmNodesError: The stream has no speed or no particles.
    """

    def __init__(self, emitter: Emitter, material_index: np.ndarray) -> None:
        velocity = np.asarray(emitter.velocity, float)
        speed = float(np.linalg.norm(velocity))
        template = emitter.template
        if not len(template) or not speed > 0:
            raise MpmNodesError(f"emitter: {len(template)} particles at {speed:g} m/s; a stream needs particles and a speed > 0")
        self.emitter, self.velocity = emitter, velocity
        along = template["position"] @ (velocity / speed)
        layers = np.rint(np.ptp(along) / template.spacing) + 1.0  # whole ones: jitter must not open a gap where copies meet
        self.period = layers * template.spacing / speed
        self.crossing = (along.max() + 0.5 * template.spacing - along) / speed
        self.columns = _columns(template, material_index)

    def between(self, begin: float, end: float) -> Mapping[str, np.ndarray] | None:
        """Return the columns of the particles that cross the exit in (begin, end], seconds since the start frame."""
        low, high = max(begin, self.emitter.start), min(end, self.emitter.end)
        if high <= low:
            return None
        # repetition n of particle k crosses at start + crossing[k] + n period
        since = self.emitter.start + self.crossing
        first = np.maximum(np.floor((low - since) / self.period) + 1, 0).astype(int)
        last = np.floor((high - since) / self.period).astype(int)
        counts = np.maximum(last - first + 1, 0)
        if not counts.any():
            return None
        who = np.repeat(np.arange(len(counts)), counts)
        repetition = first[who] + np.arange(len(who)) - np.repeat(np.cumsum(counts) - counts, counts)
        travelled = end - since[who] - repetition * self.period + self.crossing[who]
        columns = {name: column[who] for name, column in self.columns.items()}
        columns["position"] = columns["position"] + travelled[:, None] * self.velocity
        columns["velocity"] = np.broadcast_to(self.velocity, (len(who), 3))
        return columns


class Drops:
    """One dropping emitter of a solve: every copy appears whole, moved by its velocity to the end of that substep.

    Args:
        emitter: What is dropped, where, when and how fast.
        material_index: Index of each of the template's materials in the solve.
    """

    def __init__(self, emitter: Emitter, material_index: np.ndarray) -> None:
        self.emitter = emitter
        self.columns = _columns(emitter.template, material_index)

    def between(self, begin: float, end: float) -> Mapping[str, np.ndarray] | None:
        """Return the columns of the copies whose time lies in (begin, end], seconds since the start frame.

        A copy of time 0 comes with the first substep.
        """
        due = [drop for drop in self.emitter.drops if begin < drop.time <= end or begin <= 0.0 == drop.time]
        if not due:
            return None
        velocity = np.asarray(self.emitter.velocity, float)
        places = []
        for drop in due:
            turned = self.columns["position"] @ np.asarray(drop.rotation).T
            places.append(turned + np.asarray(drop.offset) + (end - drop.time) * velocity)
        columns = {name: np.concatenate([column] * len(due)) for name, column in self.columns.items()}
        columns["position"] = np.concatenate(places)
        columns["velocity"] = np.broadcast_to(velocity, columns["position"].shape)
        return columns


def _columns(template: Particles, material_index: np.ndarray) -> dict[str, np.ndarray]:
    """Return the template's columns with the solve's material numbers; ids are given when a particle enters."""
    columns = {name: column for name, column in template.attributes.items() if name != "id"}
    columns["material"] = material_index[columns.get("material", np.zeros(len(template), np.int32))]
    return columns
