"""Stock matter does what its name says: a cube of 10 cm on a floor, six cells high, let go for 0.6 s."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.materials.stock import STOCK
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import OPEN, STICKY, block, walled

EDGE, CELLS = 0.1, 6
STANDS = {"wet_sand", "soil", "clay", "dough", "butter", "chocolate", "wax", "cream", "ice_cream", "foam_rubber", "soft_metal"}
SLUMPS = {"sand", "mud", "molten_chocolate", "caramel", "jam"}
SINKS = {"slime"}
"""What goes on sinking, slowly."""


@functools.cache
def shape(name: str, seconds: float) -> tuple[float, float, float]:
    """Return height and width of a cube that is let go, of its edge, and its fastest particle [m/s]."""
    matter, h, half = named_material(name, EDGE), EDGE / CELLS, 0.5 * EDGE
    start = block(matter, (-half, 0, -half), (half, EDGE, half), h)
    walls = walled((-4 * EDGE, 0, -4 * EDGE), (4 * EDGE, 4 * EDGE, 4 * EDGE), OPEN, OPEN, STICKY, OPEN, OPEN, OPEN)
    solver = SubstepSolver(start, cell_size=h, walls=walls)
    solver.advance(seconds)
    place = solver.snapshot()["position"]
    fastest = float(np.abs(solver.particles.unpack("velocity")).max())
    return float(place[:, 1].max() / EDGE) + 0.04, float(2.0 * np.abs(place[:, [0, 2]]).max() / EDGE) + 0.04, fastest


def test_every_entry_is_told_to_stand_or_to_flow():
    """No entry is left out, each says where its numbers come from and what it does not do."""
    assert STANDS | SLUMPS | SINKS == set(STOCK)
    assert all(entry.limits and entry.source and LIBRARY[name] is entry for name, entry in STOCK.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
def test_stock_stands_or_flows(name):
    """What stands keeps nine tenths of its height, and its width; what flows loses a third and spreads; nothing flies about."""
    height, width, fastest = shape(name, 0.6)
    assert fastest < 0.2
    if name in STANDS:
        assert height > 0.9 and width < 1.1
    elif name in SLUMPS:
        assert height < 0.65 and width > 1.3
    else:
        assert 0.6 < height < 0.9 and height < shape(name, 0.3)[0]


@pytest.mark.slow
def test_mud_flows_less_far_than_water_and_farther_than_clay():
    """Widths after 0.6 s."""
    water, mud, clay = (shape(name, 0.6)[1] for name in ("water", "mud", "clay"))
    assert water > 1.5 * mud > 1.5**2 * clay


@pytest.mark.parametrize("name", [name for name, entry in STOCK.items() if entry.law == "herschel_bulkley"])
def test_pastes_carry_what_rheometers_measure(name):
    """The conversion of the table: yield stress / sqrt 3 + consistency 2^(-(1 + n) / 2) g^n is tau + K g^n at 1/s."""
    params = STOCK[name].params
    index = params["flow_index"]
    printed = {"mud": 90.0, "molten_chocolate": 13.0, "jam": 60.0, "ice_cream": 400.0, "dough": 450.0, "cream": 310.0}
    stress = params["yield_stress"] / math.sqrt(3.0) + params["consistency"] * 2.0 ** (-(1.0 + index) / 2.0)
    if name in printed:
        assert stress == pytest.approx(printed[name])
    assert params["yield_stress"] / (3.0 * params["shear_modulus"]) < 0.1  # yields at small strains


@pytest.mark.parametrize("name", [name for name, entry in STOCK.items() if entry.scale_with_depth])
def test_shallow_scenes_take_fewer_substeps(name):
    """A quarter of the depth halves the speed of waves, to what shear adds to it."""

    def waves(depth):
        matter = named_material(name, depth)
        return float(call_law(matter.law, "wave_speed", params=dict(matter.params), density=matter.density)[0])

    ratio = waves(1.0) / waves(0.25)
    assert 1.0 < ratio <= 2.0 + 1e-9 and (ratio == pytest.approx(2.0) or STOCK[name].law in ("herschel_bulkley", "oldroyd_b"))
