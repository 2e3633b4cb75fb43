"""Streams that are counted to a particle: by a rate, up to a volume, with a profile, and only where there is room.

Particle m, from 0, comes when (m + 1/2) V has come out: at every moment what was brought is right to half a particle. Which one it
is follows from where particles of the template stand, and from the profile: the events (f_k s - c_k) / L = 0, 1, 2 ... are put in
order, and the m-th is particle m.

Symbols
    V     volume of a particle, the mean of the template                    m^3
    s     length of the stream at its mean speed                            m
    c_k   distance of particle k from the exit, staggered across the nozzle m
    f_k   its speed, of the mean of the stream                              -
    L     length of the template                                            m
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from mpm_nodes.data import Emitter, Fact, Facts, Metering, Moment, Particles, Reduction, SpatialField, StepContext
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.time.clock import Clock, FrameClock
from mpm_nodes.solver.drains import inside
from mpm_nodes.solver.emission import SAME_TIME, Drops, Stream
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.room import RoomAround
from mpm_nodes.solver.state import ParticleStore

__all__ = ["EMITTED", "MeteredStream", "emission_of", "tell"]

EMITTED = Facts(
    "emitted",
    "What streams with a rate, a volume, a profile or a look for room brought in a frame, in the order of the wires.",
    (
        Fact("volume", "m^3", Reduction.SUM, "Volume of the particles that each brought."),
        Fact("without_room", "", Reduction.SUM, "Particles of each that were not born, since others filled their places."),
    ),
)
STAGGER = np.array([0.7548776662466927, 0.5698402909980532])
"""Fractional parts of their multiples fill a square evenly (Roberts 2018): neighbours across a nozzle come at different times."""
GAUSS = np.polynomial.legendre.leggauss(4)
"""Exact for a smooth rate in a smoothly changing pace of time: degree 6."""


def emission_of(emitter: Emitter, material_index: np.ndarray, clock: Clock | None = None) -> Stream | Drops:
    """Return what brings the particles of an emitter into a solve (arguments as `Stream`'s)."""
    kind = Drops if emitter.drops else Stream if emitter.metering is None else MeteredStream
    return kind(emitter, material_index, Clock() if clock is None else clock)


class MeteredStream(Stream):
    """A stream whose particles are counted. Arguments and errors as `Stream`'s."""

    metering: Metering

    def __init__(self, emitter: Emitter, material_index: np.ndarray, clock: Clock | None = None) -> None:
        assert emitter.metering is not None
        self.metering, self._clock = emitter.metering, Clock() if clock is None else clock
        super().__init__(emitter, material_index, self._clock)
        self.first_area, self.born, self.closed, self.brought, self.without_room = self.area, 0, False, 0, 0
        self._volumes = [0.0]
        self._cuts = _cuts(self._clock, self.start, self.metering.rate)

    def _lay_out(self, template: Particles) -> None:
        super()._lay_out(template)
        volumes = np.asarray(template["volume"] if "volume" in template else np.full(len(template), template.spacing**3), float)
        self.each, self.area = float(volumes.mean()), float(volumes.sum()) / self.length
        factors = self.metering.factors
        self.factors = np.ones(len(template)) if factors is None else np.asarray(factors, float)
        first = np.eye(3)[np.argmin(np.abs(self._axis))]
        beside = np.cross(self._axis, first)
        beside /= np.linalg.norm(beside)
        places = np.asarray(template["position"], float) @ np.stack([beside, np.cross(self._axis, beside)], axis=1)
        columns = np.rint((places - places.min(axis=0)) / template.spacing)
        self.phases = self.crossing + template.spacing * ((columns @ STAGGER) % 1.0)
        self._orders: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def follow(self, emitter: Emitter, material_index: np.ndarray, clock: FrameClock) -> None:
        """See `Stream`."""
        assert emitter.metering is not None
        self.metering = emitter.metering
        super().follow(emitter, material_index, clock)

    # ---------------------------------------------------------------- how much
    def volume(self, simulated: float) -> float:
        """Return the volume that is to have come out at simulated seconds [m^3]."""
        rate = self.metering.rate
        if rate is None:
            return self.flow.length(simulated) * self.first_area
        if not keys.carries_keys(rate):
            return float(rate) * max(simulated - self.start, 0.0)
        return self._integral(max(simulated, self.start))

    def _integral(self, simulated: float) -> float:
        """Return the integral of a keyed rate from the start on [m^3], exact between keys."""
        whole = int(np.searchsorted(self._cuts, simulated, side="right")) - 1
        while len(self._volumes) <= whole:
            n = len(self._volumes)
            self._volumes.append(self._volumes[-1] + self._piece(self._cuts[n - 1], self._cuts[n]))
        return self._volumes[whole] + self._piece(self._cuts[whole], simulated)

    def _piece(self, begin: float, end: float) -> float:
        middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
        return half * float(sum(w * self._rate(middle + half * x) for x, w in zip(*GAUSS, strict=True))) if half > 0.0 else 0.0

    def _rate(self, simulated: float) -> float:
        return float(keys.at(self.metering.rate, self._clock.frame_at(simulated)))

    def _speed(self, simulated: float) -> float:
        """Return the mean speed of the stream at simulated seconds [m/s]."""
        if self.metering.rate is None:
            return float(np.linalg.norm(self.flow.velocity(simulated)))
        return self._rate(simulated) / self.area

    def _number(self, simulated: float) -> int:
        """Return how many particles are to have come out at simulated seconds."""
        if simulated < self.start:
            return 0
        number = int(np.floor(self.volume(min(simulated, self.end)) / self.each + 0.5 + SAME_TIME))
        return number if self._by_matter else min(number, self.limit)

    @property
    def limit(self) -> int:
        """How many particles the volume is after which it stops."""
        volume = self.metering.volume / self.each
        return int(np.rint(volume)) if volume < 2.0**62 else 2**62

    @property
    def _by_matter(self) -> bool:
        """Whether what comes depends on the matter that is there."""
        return self.metering.room or self.metering.region is not None

    # ---------------------------------------------------------------- which particles
    def _events(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which particles of the template those numbered first to last - 1 are, and which repetition of them."""
        count = len(self.phases)
        whole = [self._order(block) for block in range(first // count, (last - 1) // count + 1)]
        within = slice(first - first // count * count, last - first // count * count)
        who, repetition = (np.concatenate(part)[within] for part in zip(*whole, strict=True))
        return who, repetition

    def _order(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the particles numbered n block to n (block + 1) - 1, n those of the template, in their order.

        By the length s between n s / L - n and n s / L + n of them have come, whatever their phases and factors.
        """
        if block not in self._orders:
            count, length = len(self.phases), self.length
            first, last = ((self.factors * length * shift - self.phases) / length for shift in (block - 1, block + 2))
            low, high = (np.maximum(np.ceil(each), 0).astype(np.int64) for each in (first, last))
            who = np.repeat(np.arange(count), high - low)
            repetition = low[who] + np.arange(len(who)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
            # to a hundredth of a millionth: rounding must not change the order of what comes at once
            order = np.argsort(np.rint((self.phases[who] / length + repetition) / self.factors[who] * 1e8), kind="stable")
            mine = order[block * count - int(low.sum()) :][:count]
            self._orders = {**dict(list(self._orders.items())[-1:]), block: (who[mine], repetition[mine])}
        return self._orders[block]

    # ---------------------------------------------------------------- bringing them
    def between(self, begin: float, end: float) -> Mapping[str, np.ndarray] | None:
        """Return the columns of the particles that are due in (begin, end], simulated seconds; see `admitted`."""
        spans = self._spans(begin, end) if not (self.closed or self.metering.closed) else ()
        parts = [part for low, high in spans if (part := self._due(low, high, end)) is not None]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else None

    def _spans(self, begin: float, end: float) -> Iterator[tuple[float, float]]:
        """Yield (begin, end] in pieces within which the rate has no jump."""
        inner = [float(cut) for cut in self._cuts if begin < cut < end]
        yield from itertools.pairwise([begin, *inner, end])

    def _due(self, begin: float, end: float, now: float) -> dict[str, np.ndarray] | None:
        before, after = self._number(begin), self._number(end)
        if after <= before:
            return None
        who, repetition = self._events(before, after)
        low, high = max(begin, self.start), min(end, self.end)
        out, more = self.volume(low), self.volume(high) - self.volume(low)
        share = ((np.arange(before, after) + 0.5) * self.each - out) / more if more > 0.0 else np.ones(len(who))
        times = low + np.clip(share, 0.0, 1.0) * (high - low)
        # a step key at the end of the span holds from the end on
        asked = low + np.clip(share, 0.0, 1.0 - 1e-9) * (high - low)
        given = np.array([self.flow.velocity(t) for t in asked]) if self.flow.keyed else self.flow.velocity(low)[None]
        given = self.directed(given, who, times)
        directions = given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-300)
        varies = self.flow.keyed or keys.carries_keys(self.metering.rate)
        speeds = np.array([self._speed(t) for t in asked]) if varies else np.full(len(who), self._speed(low))
        places, carried = self.nozzle.at(who, times)
        velocity = (speeds * self.factors[who])[:, None] * directions + self.emitter.inherit * carried
        places = places + self.crossing[who, None] * directions + self._beside(who, repetition, directions)
        if self.metering.velocity is not None:
            velocity = velocity + field_values(self.metering.velocity, places, self._clock.frame_at(now))
        places = places + (now - times)[:, None] * velocity
        return self._born(who, times, places, velocity)

    def admitted(
        self,
        columns: Mapping[str, np.ndarray],
        matter: Sequence[ParticleStore],
        total: Callable[[np.ndarray], np.ndarray],
        frame: float,
    ) -> Mapping[str, np.ndarray] | None:
        """Return those of the due particles that the matter there leaves room for, and that are not too many.

        Args:
            columns: From `between`.
            matter: Stores of the matter, the one that moves first; on several ranks those of this rank.
            total: Sums numbers over the ranks.
            frame: (Fractional) frame at which the region is taken.
        """
        keep, around = np.ones(len(columns["position"]), bool), None
        if self.metering.room:
            around = RoomAround(columns["position"], matter[0], total, matter[1:])
            keep = around.free(self.each)
            self.without_room += int((~keep).sum())
        if self._by_matter:
            left, counts = self.limit - self.born, keep
            if self.metering.region is not None:
                held = total(np.array([sum(_volume_in(each, self.metering.region, frame) for each in matter)]))[0]
                left = int(np.rint((self.metering.volume - held) / self.each))
                counts = keep & (field_values(self.metering.region, columns["position"], frame) > 0.5)
            self.closed = bool(counts.sum() >= left)
            keep = keep & (np.cumsum(counts) <= left) if left > 0 else np.zeros(len(keep), bool)
        self.born += int(keep.sum())
        self.brought += int(keep.sum())
        if around is not None:
            columns = around.press(columns, keep, self.each)
            return columns if keep.any() else None
        if keep.all():
            return columns
        return {name: column[keep] for name, column in columns.items()} if keep.any() else None

    def lasts_beyond(self, time: float) -> bool:
        """See `Stream`."""
        full = self.closed or (self.metering.region is None and self.born >= self.limit)
        return super().lasts_beyond(time) and not full

    # ---------------------------------------------------------------- states
    def state(self) -> np.ndarray | None:
        """Return what a checkpoint must hold, shape (1 or n + 1, 6): counts, then of a nozzle that has moved all that it is."""
        head = np.array([[self.born, self.closed, self.first_area, self.area, self.each, 0.0]])
        nozzle = super().state()
        return head if nozzle is None else np.concatenate([head, np.column_stack([nozzle, self.phases, self.factors])])

    def restore(self, state: np.ndarray) -> None:
        """See `Stream`."""
        self.born, self.closed, self.first_area = int(state[0, 0]), bool(state[0, 1]), float(state[0, 2])
        if len(state) > 1:
            super().restore(state[1:, :4])
            self.phases, self.factors, self._orders = state[1:, 4].copy(), state[1:, 5].copy(), {}
            if state[0, 3] > 0.0:  # not in older checkpoints: of the template as it was laid out last
                self.area, self.each = float(state[0, 3]), float(state[0, 4])

    def fits(self, state: np.ndarray) -> bool:
        """See `Stream`."""
        return state.shape[1] == 6 and len(state) in (1, len(self.crossing) + 1)

    def mark(self) -> Callable[[], None]:
        """See `Stream`."""
        held = self.born, self.closed

        def come_back() -> None:
            self.born, self.closed = held

        return come_back


def _volume_in(particles: ParticleStore, region: SpatialField, frame: float) -> float:
    """Return the volume of the particles in a region [m^3]."""
    if not particles.count:
        return 0.0
    return float(particles.rows("volume")[0][inside(particles, region, Moment(frame))].sum(dtype=float))


def tell(streams: Sequence[Stream | Drops], step: StepContext) -> None:
    """Tell what metered streams have brought in a substep."""
    metered = [stream for stream in streams if isinstance(stream, MeteredStream)]
    if metered:
        brought = tuple(stream.brought * stream.each for stream in metered)
        step.tell(EMITTED, volume=brought, without_room=tuple(stream.without_room for stream in metered))
    for stream in metered:
        stream.brought = stream.without_room = 0


def _cuts(clock: Clock, start: float, rate: float | None) -> np.ndarray:
    """Return the simulated seconds from the start on between which a keyed rate and the pace of time are smooth."""
    frames = [key[0] for keyed in (rate, clock.pace) if isinstance(keyed, keys.KeyedNumber) for key in keyed.keys]
    times = {clock.simulated(frame) for frame in frames}
    return np.array([start, *sorted(time for time in times if time > start)])
