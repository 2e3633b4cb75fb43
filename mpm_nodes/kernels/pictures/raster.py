"""Rasterise spheres and triangles into depth-buffered images, and shade them: the inner loops of the preview renderer.

| symbol | meaning                                                       | unit   |
|--------|---------------------------------------------------------------|--------|
| u, v   | image position, from the upper left corner                     | pixels |
| z      | distance along the view direction                              | m      |
| depth  | z of what is seen, infinity where nothing is, shape (H, W)      | m      |
| normal | unit normal in view axes (right, up, towards the eye)           | -      |

Threads own bands of rows and go through all primitives in order, so the picture does not depend on their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for

BAND = 32
SHADOW_SAMPLES = 24
BLOCKERS = 8.0
"""Pixels of the light's image within which what throws a shadow is looked for."""


@part
def _draw_spheres_in(band, centres, pixels, radii, colours, picture, mark):
    (u, v, z), (depth, normal, colour, layer) = centres, picture
    height, width = depth.shape
    top, bottom = band * BAND, min((band + 1) * BAND, height)
    for p in range(len(u)):
        r = pixels[p]
        if not (z[p] > 0.0 and v[p] + r >= top and v[p] - r <= bottom and u[p] + r >= 0.0 and u[p] - r <= width):
            continue
        inverse = 1.0 / r
        for row in range(max(top, int(np.ceil(v[p] - r - 0.5))), min(bottom, int(np.floor(v[p] + r - 0.5)) + 1)):
            y = (row + 0.5 - v[p]) * inverse
            for column in range(max(0, int(np.ceil(u[p] - r - 0.5))), min(width, int(np.floor(u[p] + r - 0.5)) + 1)):
                x = (column + 0.5 - u[p]) * inverse
                left = 1.0 - x * x - y * y
                if left <= 0.0:
                    continue
                rise = np.sqrt(left)
                distance = z[p] - rise * radii[p]
                if distance < depth[row, column]:
                    depth[row, column] = distance
                    normal[row, column, 0], normal[row, column, 1], normal[row, column, 2] = x, -y, rise
                    for c in range(3):
                        colour[row, column, c] = colours[p, c]
                    layer[row, column] = mark


@compiled(fastmath=False)
def draw_spheres(centres, pixels, radii, colours, picture, mark):
    """Draw spheres as shaded discs: centres (u, v, z), radii in pixels and in metres; `picture` as for triangles."""
    parallel_for(_draw_spheres_in, (picture[0].shape[0] + BAND - 1) // BAND, (centres, pixels, radii, colours, picture, mark))


@part
def _draw_triangles_in(band, corners, triangles, normals, colours, perspective, picture, mark):
    (u, v, z), (depth, normal, colour, layer) = corners, picture
    height, width = depth.shape
    top, bottom = band * BAND, min((band + 1) * BAND, height)
    for t in range(len(triangles)):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        least, most = min(v[a], v[b], v[c]), max(v[a], v[b], v[c])
        if most < top or least > bottom or min(z[a], z[b], z[c]) <= 0.0:
            continue
        area = (u[b] - u[a]) * (v[c] - v[a]) - (v[b] - v[a]) * (u[c] - u[a])
        if not abs(area) > 1e-9:
            continue
        first = max(0, int(np.floor(max(min(u[a], u[b], u[c]), 0.0))))
        last = min(width - 1, int(np.ceil(min(max(u[a], u[b], u[c]), width))))
        for row in range(max(top, int(np.floor(max(least, 0.0)))), min(bottom - 1, int(np.ceil(min(most, height)))) + 1):
            y = row + 0.5
            for column in range(first, last + 1):
                x = column + 0.5
                wa = ((u[b] - x) * (v[c] - y) - (v[b] - y) * (u[c] - x)) / area
                wb = ((u[c] - x) * (v[a] - y) - (v[c] - y) * (u[a] - x)) / area
                wc = 1.0 - wa - wb
                if wa < 0.0 or wb < 0.0 or wc < 0.0:
                    continue
                if perspective:
                    wa, wb, wc = wa / z[a], wb / z[b], wc / z[c]
                    distance = 1.0 / (wa + wb + wc)
                    wa, wb, wc = wa * distance, wb * distance, wc * distance
                else:
                    distance = wa * z[a] + wb * z[b] + wc * z[c]
                if distance < depth[row, column]:
                    depth[row, column] = distance
                    for axis in range(3):
                        normal[row, column, axis] = wa * normals[t, 0, axis] + wb * normals[t, 1, axis] + wc * normals[t, 2, axis]
                        colour[row, column, axis] = wa * colours[t, 0, axis] + wb * colours[t, 1, axis] + wc * colours[t, 2, axis]
                    layer[row, column] = mark


@compiled(fastmath=False)
def draw_triangles(corners, triangles, normals, colours, perspective, picture, mark):
    """Draw triangles with corners (u, v, z), corner normals (view axes) and corner colours (t, 3, 3); both sides are drawn.

    `picture` holds depth, normal, colour and layer, which becomes `mark`.
    """
    parallel_for(
        _draw_triangles_in,
        (picture[0].shape[0] + BAND - 1) // BAND,
        (corners, triangles, normals, colours, perspective, picture, mark),
    )


@part
def _blur_depth_row(row, depth, layer, mark, kernel, way, result):
    (reach, threshold), (down, right) = kernel, way
    height, width = depth.shape
    for column in range(width):
        here = depth[row, column]
        result[row, column] = here
        if layer[row, column] != mark:
            continue
        total, weight = 0.0, 0.0
        for step in range(-reach, reach + 1):
            y, x = row + step * down, column + step * right
            if 0 <= y < height and 0 <= x < width and layer[y, x] == mark:
                gap = abs(depth[y, x] - here)
                if gap < threshold:
                    share = (1.0 - gap / threshold) * (1.0 - step * step / (reach + 1.0) ** 2)
                    total += share * depth[y, x]
                    weight += share
        result[row, column] = total / weight


@compiled(fastmath=False)
def blur_depth(depth, layer, mark, reach, threshold, down, right):
    """Return depth averaged along one image axis (down, right) over pixels of layer `mark` within `threshold` [m].

    Along the rows and then along the columns it melts spheres together.
    """
    result = np.empty_like(depth)
    parallel_for(_blur_depth_row, len(depth), (depth, layer, mark, (reach, threshold), (down, right), result))
    return result


@part
def _normals_row(row, depth, layer, mark, focal, threshold, normal):
    height, width = depth.shape
    for column in range(width):
        if layer[row, column] != mark:
            continue
        z = depth[row, column]
        across = _slope(depth, layer, mark, row, column, 0, 1, threshold)
        down = _slope(depth, layer, mark, row, column, 1, 0, threshold)
        x, y = (column + 0.5 - 0.5 * width) / focal, (0.5 * height - row - 0.5) / focal
        # The surface is P = z (x, y, 1); its tangents follow from dz/dcolumn and dz/drow.
        tx, ty, tz = across * x + z / focal, across * y, across
        bx, by, bz = down * x, down * y - z / focal, down
        nx, ny, nz = ty * bz - tz * by, tz * bx - tx * bz, tx * by - ty * bx
        size = np.sqrt(nx * nx + ny * ny + nz * nz)
        if size > 0.0:
            side = 1.0 if nx * x + ny * y + nz < 0.0 else -1.0
            normal[row, column, 0] = side * nx / size
            normal[row, column, 1] = side * ny / size
            normal[row, column, 2] = -side * nz / size


@compiled(fastmath=False)
def normals_from_depth(depth, layer, mark, focal, threshold, normal):
    """Replace normals of layer `mark` by those of the depth image (perspective, `focal` pixels)."""
    parallel_for(_normals_row, len(depth), (depth, layer, mark, focal, threshold, normal))


@inline
def _slope(depth, layer, mark, row, column, down, right, threshold):
    """Return dz per pixel along one image axis from the neighbours that belong to the same surface."""
    height, width = depth.shape
    total, count = 0.0, 0
    for side in (-1, 1):
        y, x = row + side * down, column + side * right
        if 0 <= y < height and 0 <= x < width and layer[y, x] == mark:
            change = depth[y, x] - depth[row, column]
            if abs(change) < threshold:
                total += side * change
                count += 1
    return total / count if count > 0 else 0.0


@part
def _occlusion_rows(half, depth, normal, focal, radius, samples, result):
    height, width = depth.shape
    row = 2 * half
    for column in range(0, width - 1, 2):
        z = depth[row, column]
        if not z < np.inf:
            continue
        nx, ny, nz = normal[row, column, 0], normal[row, column, 1], normal[row, column, 2]
        x0, y0 = (column + 0.5 - 0.5 * width) * z / focal, (0.5 * height - row - 0.5) * z / focal
        side = -1.0 if nx * x0 + ny * y0 - nz * z > 0.0 else 1.0  # both sides are drawn; this one is seen
        hidden = 0.0
        turn = 2.399963 * ((half * 7 + (column // 2) * 3) % 16)
        for n in range(samples):
            reach = radius * np.sqrt((n + 0.5) / samples) * focal / z
            angle = 2.399963 * n + turn
            r, c = int(row + 0.5 + reach * np.sin(angle)), int(column + 0.5 + reach * np.cos(angle))
            if not (0 <= r < height and 0 <= c < width and depth[r, c] < np.inf):
                continue
            d = depth[r, c]
            vx, vy, vz = (c + 0.5 - 0.5 * width) * d / focal - x0, (0.5 * height - r - 0.5) * d / focal - y0, z - d
            far = vx * vx + vy * vy + vz * vz
            if 0.0 < far < 4.0 * radius * radius:  # what is far nearer belongs to something else
                rise = side * (vx * nx + vy * ny + vz * nz) / np.sqrt(far)
                hidden += max(rise - 0.05, 0.0) * (1.0 - far / (4.0 * radius * radius))
        for a in range(2):
            for b in range(2):
                result[row + a, column + b] = max(1.0 - 2.5 * hidden / samples, 0.0)


@compiled(fastmath=False)
def occlusion(depth, normal, focal, radius, samples):
    """Return the open share of the surroundings within `radius` [m]; one value for 2 x 2 pixels.

    It is 1 less two and a half times the mean height of what is seen around over the tangent plane, as a share of its distance.
    """
    result = np.ones(depth.shape, np.float32)
    parallel_for(_occlusion_rows, len(depth) // 2, (depth, normal, focal, radius, samples, result))
    return result


@part
def _creased_corners(vertex, starts, corners, faces, least, normals):
    for i in range(starts[vertex], starts[vertex + 1]):
        mine = corners[i] // 3
        ax, ay, az = faces[mine, 0], faces[mine, 1], faces[mine, 2]
        size = np.sqrt(ax * ax + ay * ay + az * az)
        x, y, z = 0.0, 0.0, 0.0
        for j in range(starts[vertex], starts[vertex + 1]):
            other = corners[j] // 3
            bx, by, bz = faces[other, 0], faces[other, 1], faces[other, 2]
            if ax * bx + ay * by + az * bz >= least * size * np.sqrt(bx * bx + by * by + bz * bz):
                x, y, z = x + bx, y + by, z + bz
        length = max(np.sqrt(x * x + y * y + z * z), 1e-300)
        corner = corners[i] - 3 * mine
        normals[mine, corner, 0], normals[mine, corner, 1], normals[mine, corner, 2] = x / length, y / length, z / length


@compiled(fastmath=False)
def creased_normals(starts, corners, faces, least, normals):
    """Write the unit normals of triangle corners (t, 3, 3): the sum over the faces at a vertex that turn by less than a crease.

    Args:
        starts: Where in `corners` each vertex begins, and their end, shape (n + 1,).
        corners: Corners 3 t + k in the order of their vertices, shape (3 t,).
        faces: Normals of the triangles as long as their areas, shape (t, 3).
        least: Cosine of the crease's angle.
        normals: Result.
    """
    parallel_for(_creased_corners, len(starts) - 1, (starts, corners, faces, least, normals))


class Light(NamedTuple):
    """A light from afar: its axes and the point in the middle of its picture [m], shape (3,) each, and pixels per metre.

    `spread` is the tangent of half the angle under which it is seen: shadows get softer by that with the distance.
    """

    right: np.ndarray
    up: np.ndarray
    forward: np.ndarray
    centre: np.ndarray
    scale: float
    spread: float


@part
def _shadow_row(row, positions, seen, light, depth, bias, result):
    right, up, forward, centre, scale, spread = light
    size = len(depth)
    for column in range(seen.shape[1]):
        result[row, column] = 1.0
        if not seen[row, column]:
            continue
        x, y, z = 0.0, 0.0, 0.0
        for axis in range(3):
            offset = positions[row, column, axis] - centre[axis]
            x += offset * right[axis]
            y += offset * up[axis]
            z += offset * forward[axis]
        i, j = 0.5 * size - y * scale, 0.5 * size + x * scale
        turn = 2.399963 * ((row * 7 + column * 3) % 16)
        away, hidden = 0.0, 0
        for n in range(SHADOW_SAMPLES):
            there = _shadow_depth(depth, i, j, BLOCKERS * np.sqrt((n + 0.5) / SHADOW_SAMPLES), 2.399963 * n + turn)
            if there < z - bias:
                away += z - there
                hidden += 1
        if hidden == 0:
            continue
        reach = min(max(spread * scale * away / hidden, 2.0), 4.0 * BLOCKERS)
        lit = 0
        for n in range(SHADOW_SAMPLES):
            if _shadow_depth(depth, i, j, reach * np.sqrt((n + 0.5) / SHADOW_SAMPLES), 2.399963 * n + turn) >= z - bias:
                lit += 1
        result[row, column] = lit / SHADOW_SAMPLES


@inline
def _shadow_depth(depth, i, j, reach, angle):
    a, b = int(np.floor(i + reach * np.sin(angle))), int(np.floor(j + reach * np.cos(angle)))
    return depth[a, b] if 0 <= a < depth.shape[0] and 0 <= b < depth.shape[1] else np.inf


@compiled(fastmath=False)
def shadow(positions, seen, light, depth, bias):
    """Return the lit share of world positions (H, W, 3) by looking them up in the light's orthographic depth image.

    What throws the shadow is looked for within BLOCKERS pixels of that image; its mean distance gives the width of the soft edge
    (percentage-closer soft shadows, Fernando 2005).
    """
    result = np.empty(seen.shape, np.float32)
    parallel_for(_shadow_row, len(seen), (positions, seen, light, depth, bias, result))
    return result
