"""Continuous emitters: a template of particles that streams through a nozzle.

The template repeats along its velocity without gaps. A particle enters the solve when it passes the nozzle's exit plane, and
starts where the stream has carried it by the end of that substep: neither the number of substeps nor their length shows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mpm_nodes.data import Emitter, MpmNodesError


class Stream:
    """One emitter of a solve.

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
        length = along.max() - along.min() + template.spacing
        self.period = length / speed
        self.crossing = (along.max() + 0.5 * template.spacing - along) / speed
        self.columns = {name: column for name, column in template.attributes.items() if name != "id"}
        self.columns["material"] = material_index[self.columns.get("material", np.zeros(len(template), np.int32))]

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
