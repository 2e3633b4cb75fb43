"""Fields in space as programs: a list of operations on registers, which one kernel runs at every place.

An operation is a row (code, a, b, c, first number); it writes the register of its own row, three values, from the registers a, b
and c. A number has the same value three times, so that it multiplies a vector. Places are in metres. `codes` says what each does.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.fields import codes
from mpm_nodes.kernels.fields.noise import curl_noise, gradient_noise
from mpm_nodes.kernels.level_sets.vector_leaves import BIAS

__all__ = ["MOST", "evaluate", "fill_own", "run_at"]

MOST = 512
"""Operations of a program at most."""
CHUNK = 256
"""Places of one call of the loop."""


@part
def _quotient(a, b):
    """Return a / b, 0 where b is."""
    return a / b if b != 0.0 else 0.0


@part
def _power(a, b):
    """Return |a|^b with the sign of a, 0 where a is."""
    return math.copysign(math.exp(b * math.log(abs(a))), a) if a != 0.0 else 0.0


@part
def _distance(code, x, y, z, numbers, first):
    """Return the signed distance of a shape."""
    if code == codes.SPHERE:
        return math.sqrt(x * x + y * y + z * z) - numbers[first]
    if code == codes.PLANE:
        return y
    if code == codes.CAPSULE:
        y = y - min(max(y, -numbers[first + 1]), numbers[first + 1])
        return math.sqrt(x * x + y * y + z * z) - numbers[first]
    x, y, z = abs(x) - numbers[first], abs(y) - numbers[first + 1], abs(z) - numbers[first + 2]
    u, v, w = max(x, 0.0), max(y, 0.0), max(z, 0.0)
    return math.sqrt(u * u + v * v + w * w) + min(max(x, y, z), 0.0)


@part
def _remapped(value, numbers, first):
    low, high = numbers[first], numbers[first + 1]
    share = _quotient(value - low, high - low) if high != low else (1.0 if value >= high else 0.0)
    if numbers[first + 4] > 0.0:
        share = min(max(share, 0.0), 1.0)
    if numbers[first + 4] > 1.0:
        share = share * share * (3.0 - 2.0 * share)
    return numbers[first + 2] + share * (numbers[first + 3] - numbers[first + 2])


@part
def _noise(code, x, y, z, numbers, first):
    """Return the three values of a kind of noise."""
    seed, octaves = int(numbers[first + 1]), int(numbers[first + 2])
    periods = int(numbers[first + 3]), int(numbers[first + 4]), int(numbers[first + 5])
    w = numbers[first]
    if code == codes.CURL:
        return curl_noise(x, y, z, w, seed, octaves, periods)
    value = gradient_noise(x, y, z, w, seed, octaves, periods, code == codes.ROUGH)
    return value, value, value


@part
def _leaf_key(i, j, k):
    """Return what `vector_leaves.leaf_keys` does, of one leaf."""
    return ((i + BIAS) << 42) | ((j + BIAS) << 21) | (k + BIAS)


@part
def _leaf_of(key, leaves, first, count):
    """Return the place of the leaf with a key, -1 for none."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) >> 1
        if leaves[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low - first if low < first + count and leaves[low] == key else -1


@part
def _index_at(x, y, z, numbers, at):
    """Return a place [m] in voxels or cubes: the first twelve numbers of a grid."""
    return (
        numbers[at] * x + numbers[at + 1] * y + numbers[at + 2] * z + numbers[at + 3],
        numbers[at + 4] * x + numbers[at + 5] * y + numbers[at + 6] * z + numbers[at + 7],
        numbers[at + 8] * x + numbers[at + 9] * y + numbers[at + 10] * z + numbers[at + 11],
    )


@part
def _sampled(x, y, z, numbers, at, leaves, voxels):
    """Return the three values of a grid at a place [m].

    Its numbers: to_index, the value outside, whether what it does not hold is left out, its place among all grids.
    """
    u, v, w = _index_at(x, y, z, numbers, at)
    outside, left_out, first, count = numbers[at + 12], numbers[at + 13] > 0.0, int(numbers[at + 14]), int(numbers[at + 15])
    begin, parts = int(numbers[at + 16]), int(numbers[at + 17])
    if not (abs(u) < BIAS and abs(v) < BIAS and abs(w) < BIAS):
        return outside, outside, outside
    a, b, c = math.floor(u), math.floor(v), math.floor(w)
    i, j, k = int(a), int(b), int(c)
    u, v, w = u - a, v - b, w - c
    r = s = t = held = 0.0
    leaf, known = -1, np.int64(-1)
    for corner in range(8):
        a, b, c = i + (corner >> 2), j + ((corner >> 1) & 1), k + (corner & 1)
        key = _leaf_key(a >> 3, b >> 3, c >> 3)
        if key != known:
            leaf, known = _leaf_of(key, leaves, first, count), key
        if leaf < 0:
            continue
        voxel = begin + parts * (512 * leaf + 64 * (a & 7) + 8 * (b & 7) + (c & 7))
        if math.isnan(voxels[voxel]):
            continue
        weight = (u if corner >> 2 else 1.0 - u) * (v if (corner >> 1) & 1 else 1.0 - v) * (w if corner & 1 else 1.0 - w)
        held += weight
        r += weight * voxels[voxel]
        s += weight * voxels[voxel + (1 if parts == 3 else 0)]
        t += weight * voxels[voxel + (2 if parts == 3 else 0)]
    if left_out:
        return (r / held, s / held, t / held) if held > 1e-3 else (outside, outside, outside)
    return r + (1.0 - held) * outside, s + (1.0 - held) * outside, t + (1.0 - held) * outside


@part
def _spline(d):
    """Return the quadratic spline of a distance [cubes]."""
    d = abs(d)
    return 0.75 - d * d if d < 0.5 else 0.5 * max(1.5 - d, 0.0) ** 2


@part
def _on_cubes(x, y, z, numbers, at, keys, values):
    """Return the value at a place [m] of cubes that lie around it, NaN where none does; its numbers: to_index, its place."""
    u, v, w = _index_at(x, y, z, numbers, at)
    first, count, begin = int(numbers[at + 12]), int(numbers[at + 13]), int(numbers[at + 14])
    if not (abs(u) < BIAS - 2 and abs(v) < BIAS - 2 and abs(w) < BIAS - 2):
        return math.nan
    i, j, k = int(np.floor(u)), int(np.floor(v)), int(np.floor(w))
    total = weight = 0.0
    for n in range(27):
        a, b, c = i + n // 9 - 1, j + (n // 3) % 3 - 1, k + n % 3 - 1
        each = _spline(u - a - 0.5) * _spline(v - b - 0.5) * _spline(w - c - 0.5)
        place = _leaf_of(_leaf_key(a, b, c), keys, first, count) if each > 0.0 else -1
        if place >= 0:
            total += each * values[begin + place]
            weight += each
    return total / weight if weight > 1e-6 else math.nan


@part
def _between(a, b, share):
    """Return what lies a share of the way from a to b; where one of them is NaN the other."""
    if math.isnan(a):
        return b
    return a if math.isnan(b) else a + share * (b - a)


@part
def run_at(operations, rows, numbers, grids, x, y, z, registers):
    """Run rows of a program at a place.

    Args:
        operations: Shape (5 n,), int32: of each the code, three registers, and where its numbers begin.
        rows: First and last + 1 of them: those that are the same everywhere come first, and are run once for many places.
        numbers: Of all operations, float64.
        grids: Keys of the leaves of all grids, ascending in each, int64, and their voxels, float32, NaN where they hold nothing.
        x, y, z: Place [m].
        registers: Written, shape (3 n,), float64.

    Arrays may be lent without their shape (`lend.plain`).
    """
    for n in range(rows[0], rows[1]):
        code, a, b, c, first = (
            operations[5 * n],
            operations[5 * n + 1],
            operations[5 * n + 2],
            operations[5 * n + 3],
            operations[5 * n + 4],
        )
        u, v, w = registers[3 * a], registers[3 * a + 1], registers[3 * a + 2]
        r, s, t = registers[3 * b], registers[3 * b + 1], registers[3 * b + 2]
        if code == codes.CONSTANT:
            u, v, w = numbers[first], numbers[first + 1], numbers[first + 2]
        elif code == codes.PLACE:
            u, v, w = x, y, z
        elif code == codes.MOVED:
            r, s, t = u - numbers[first + 9], v - numbers[first + 10], w - numbers[first + 11]
            u = (numbers[first] * r + numbers[first + 3] * s + numbers[first + 6] * t) / numbers[first + 12]
            v = (numbers[first + 1] * r + numbers[first + 4] * s + numbers[first + 7] * t) / numbers[first + 13]
            w = (numbers[first + 2] * r + numbers[first + 5] * s + numbers[first + 8] * t) / numbers[first + 14]
        elif code <= codes.CURL:
            u, v, w = _noise(code, u, v, w, numbers, first)
        elif code <= codes.PLANE:
            u = _distance(code, u, v, w, numbers, first)
            v = w = u
        elif code == codes.REMAPPED:
            u, v, w = _remapped(u, numbers, first), _remapped(v, numbers, first), _remapped(w, numbers, first)
        elif code == codes.ADD:
            u, v, w = u + r, v + s, w + t
        elif code == codes.SUBTRACT:
            u, v, w = u - r, v - s, w - t
        elif code == codes.MULTIPLY:
            u, v, w = u * r, v * s, w * t
        elif code == codes.DIVIDE:
            u, v, w = _quotient(u, r), _quotient(v, s), _quotient(w, t)
        elif code == codes.MINIMUM:
            u, v, w = min(u, r), min(v, s), min(w, t)
        elif code == codes.MAXIMUM:
            u, v, w = max(u, r), max(v, s), max(w, t)
        elif code == codes.POWER:
            u, v, w = _power(u, r), _power(v, s), _power(w, t)
        elif code == codes.ABSOLUTE:
            u, v, w = abs(u), abs(v), abs(w)
        elif code == codes.LENGTH:
            u = math.sqrt(u * u + v * v + w * w)
            v = w = u
        elif code == codes.NORMALIZE:
            length = math.sqrt(u * u + v * v + w * w)
            u, v, w = _quotient(u, length), _quotient(v, length), _quotient(w, length)
        elif code == codes.DOT:
            u = u * r + v * s + w * t
            v = w = u
        elif code == codes.CROSS:
            u, v, w = v * t - w * s, w * r - u * t, u * s - v * r
        elif code == codes.GRID:
            u, v, w = _sampled(u, v, w, numbers, first, grids[0], grids[1])
        elif code == codes.MIX:
            f, g, h = registers[3 * c], registers[3 * c + 1], registers[3 * c + 2]
            u, v, w = u + f * (r - u), v + g * (s - v), w + h * (t - w)
        elif code == codes.CUBES:
            u = _on_cubes(u, v, w, numbers, first, grids[0], grids[1])
            v = w = u
        elif code == codes.BETWEEN:
            share = numbers[first]
            u, v, w = _between(u, r, share), _between(v, s, share), _between(w, t, share)
        elif code == codes.FILLED:
            u, v, w = r if math.isnan(u) else u, s if math.isnan(v) else v, t if math.isnan(w) else w
        elif code == codes.COSINE:
            u, v, w = math.cos(u), math.cos(v), math.cos(w)
        registers[3 * n], registers[3 * n + 1], registers[3 * n + 2] = u, v, w


@part
def fill_own(own, p, registers):
    """Put what a particle has into the registers of its attributes.

    Args:
        own: Registers of the attributes, int32; their values, three rows each, float64; how many attributes; elements a row.
        p: Place of the particle in memory.
        registers: Written.
    """
    places, values, count, stride = own
    for n in range(count):
        for axis in range(3):
            registers[3 * places[n] + axis] = values[(3 * n + axis) * stride + p]


@part
def _evaluate_at(k, places, program, scratch, found):
    operations, count, uniform, numbers, grids, own = program
    registers = plain(scratch[k])
    run_at(operations, (0, uniform), numbers, grids, 0.0, 0.0, 0.0, registers)
    for p in range(CHUNK * k, min(CHUNK * k + CHUNK, places.shape[0])):
        if own[2] > 0:
            fill_own(own, p, registers)
        run_at(operations, (uniform, count), numbers, grids, places[p, 0], places[p, 1], places[p, 2], registers)
        for axis in range(3):
            found[p, axis] = registers[3 * (count - 1) + axis]


@compiled(fastmath=False)
def evaluate(places, operations, uniform, numbers, grids, own, found):
    """Run a program at places.

    Args:
        places: [m], shape (n, 3), float64.
        operations, numbers, grids: The program, as `run_at` takes it.
        uniform: How many of its rows, the first ones, are the same everywhere.
        own: Registers of attributes, shape (k,), int32, and what particles at the places have, shape (3 k n,), float64.
        found: Written: the last register, shape (n, 3), float64.
    """
    count, chunks = operations.shape[0] // 5, (places.shape[0] + CHUNK - 1) // CHUNK
    scratch = np.empty((chunks, 3 * count))
    mine = plain(own[0]), plain(own[1]), own[0].shape[0], places.shape[0]
    program = (plain(operations), count, uniform, plain(numbers), (plain(grids[0]), plain(grids[1])), mine)
    parallel_for(_evaluate_at, chunks, (places, program, scratch, found))
