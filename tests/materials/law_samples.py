"""Random states and steps for tests of laws."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from mpm_nodes.materials import contract, fixed_corotated, neo_hookean
from mpm_nodes.materials.contract import law, register_law
from mpm_nodes.materials.elastic import hencky, split_neo_hookean
from mpm_nodes.materials.return_maps import drucker_prager, herschel_bulkley, stretch_clamp

PARAMS = {"liquid": {"viscosity": 20.0}, "oldroyd_b": {"relaxation_time": 0.02}}
"""Parameters that switch every term of a law on."""


ELASTIC = {"neo_hookean": neo_hookean, "fixed_corotated": fixed_corotated, "hencky": hencky, "split_neo_hookean": split_neo_hookean}
RETURN_MAPS = {"stretch_clamp": stretch_clamp, "herschel_bulkley": herschel_bulkley, "drucker_prager": drucker_prager}
BUILT_IN = {("fixed_corotated", "stretch_clamp"), ("split_neo_hookean", "herschel_bulkley"), ("hencky", "drucker_prager")}


COMBINED = {
    f"{elastic}_{flow}": (ELASTIC[elastic], RETURN_MAPS[flow])
    for elastic in ELASTIC
    for flow in RETURN_MAPS
    if (elastic, flow) not in BUILT_IN
}
"""Every combination of an elastic part and a return map that is not a law of its own, by the id that `combined_laws` gives it."""


@pytest.fixture(scope="module")
def combined_laws():
    """Register the combinations, and forget them afterwards."""
    for name, parts in COMBINED.items():
        register_law(_combined(name, *parts))
    yield
    for name in COMBINED:
        del contract._LAWS[name]


def _combined(name, elastic, flow):
    @dataclass(frozen=True)
    class Params(Combined):
        __doc__ = Combined.__doc__
        law: ClassVar[str] = name

    module = ModuleType(f"tests_{name}")
    module.Params, module.ELASTIC, module.RETURN_MAP = Params, elastic, flow
    sys.modules[module.__name__] = module
    return module


@dataclass(frozen=True)
class Combined:
    """Knobs of every elastic part and return map.

    Attributes:
        youngs_modulus: See Snow.
        poisson_ratio: See Snow.
        bulk_modulus: See HerschelBulkley.
        shear_modulus: See HerschelBulkley.
        critical_compression: See Snow.
        critical_stretch: See Snow.
        hardening: See Snow.
        preserve_volume: See Snow.
        yield_stress: See HerschelBulkley.
        consistency: See HerschelBulkley.
        flow_index: See HerschelBulkley.
        friction_angle: See DruckerPrager.
        cohesion: See DruckerPrager.
    """

    label: ClassVar[str] = "Combined"
    source: ClassVar[str] = "test"
    density: ClassVar[float] = 1000.0
    youngs_modulus: float = 1e5
    poisson_ratio: float = 0.3
    bulk_modulus: float = 1e5
    shear_modulus: float = 4e4
    critical_compression: float = 0.03
    critical_stretch: float = 0.02
    hardening: float = 4.0
    preserve_volume: bool = False
    yield_stress: float = 1e3
    consistency: float = 30.0
    flow_index: float = 0.5
    friction_angle: float = 30.0
    cohesion: float = 500.0


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
            :, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]
        ],
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
