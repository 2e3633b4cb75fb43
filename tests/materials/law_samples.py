"""Random states and steps for tests of laws."""

from __future__ import annotations

import numpy as np

from mpm_nodes.materials.contract import law

PARAMS = {"liquid": {"viscosity": 20.0}, "oldroyd_b": {"relaxation_time": 0.02}}
"""Parameters that switch every term of a law on."""


def random_rotations(random, count):
    """Rotations, shape (count, 3, 3)."""
    q = np.linalg.qr(random.standard_normal((count, 3, 3)))[0]
    return q * np.sign(np.linalg.det(q))[:, None, None]


def random_states(law_id, count, strain=0.3, seed=3):
    """States of a law with stretches exp(strain N(0, 1)) in random directions, turned at random."""
    random = np.random.default_rng(seed)
    stretches = np.exp(strain * random.standard_normal((count, 3)))
    F = random_rotations(random, count) * stretches[:, None, :] @ random_rotations(random, count)
    values = {
        "deformation": F,
        "volume_change": np.prod(stretches, 1) - 1.0,
        "plastic_volume_ratio": random.uniform(0.8, 1.2, count),
        "elastic_strain": (F @ F.transpose(0, 2, 1) / np.prod(stretches, 1)[:, None, None] ** (2 / 3) - np.eye(3))[
            :, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]],
    }
    if law_id == "oldroyd_b":  # the size of the strain means nothing there
        size = random.uniform(0.7, 1.5, (count, 1))
        values["elastic_strain"] = size * values["elastic_strain"] + (size - 1.0) * [1, 0, 0, 1, 0, 1]
    return {name: values[name] for name in law(law_id).state}


def random_matrices(count, size=1.0, seed=4):
    """Gaussian matrices, shape (count, 3, 3)."""
    return size * np.random.default_rng(seed).standard_normal((count, 3, 3))


def flat(values, stride, dtype):
    """Lay an attribute out as the solver does: rows of `stride` elements, shape (rows * stride,)."""
    rows = values.reshape(len(values), -1).T
    out = np.zeros((len(rows), stride), dtype)
    out[:, : rows.shape[1]] = rows
    return out.ravel()


def unflat(array, stride, count, shape):
    """Undo `flat`."""
    return array.reshape(-1, stride)[:, :count].T.reshape(count, *shape)
