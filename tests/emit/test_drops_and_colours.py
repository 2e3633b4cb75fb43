"""Dropped copies of a body, and colours of particles."""

import numpy as np
import pytest

from mpm_nodes.data import GraphSettings, Material, MpmNodesError, Particles
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.nodes import emit
from mpm_nodes.nodes.colours import colour_particles
from mpm_nodes.nodes.drops import emit_drops
from mpm_nodes.solver.emission import Drops
from mpm_nodes.solver.metering import emission_of
from mpm_nodes.solver.run import SubstepSolver

SETTINGS = GraphSettings(cell_size=0.1, fps=24.0, start=5)
JELLY = Material("neo_hookean", {"youngs_modulus": 1e4, "poisson_ratio": 0.3}, 1000.0, "jelly")


def body() -> Particles:
    """Return a box of eight particles about (0, 1, 0)."""
    return emit.emit_box(SETTINGS, JELLY, size=(0.1, 0.1, 0.1))


def test_copies_come_at_their_frames_turned_and_scattered():
    """Times are frames since the start; every copy is a rigid image of the body within the spread."""
    template = body()
    places = {"spread": (0.6, 0.0, 0.2), "turn": (0.0, 360.0, 0.0)}
    made = emit_drops(SETTINGS, template, count=6, start_frame=7, interval=3, **places)
    assert [drop.time for drop in made.drops] == pytest.approx([(2 + 3 * n) / 24 for n in range(6)])
    middle = template["position"].mean(axis=0)
    for drop in made.drops:
        turn = np.array(drop.rotation)
        assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-14) and np.linalg.det(turn) == pytest.approx(1.0)
        moved = turn @ middle + drop.offset - middle
        assert np.abs(moved[0]) <= 0.3 and moved[1] == pytest.approx(0.0, abs=1e-14) and np.abs(moved[2]) <= 0.1
    places = [(np.array(drop.rotation) @ middle + drop.offset)[0] for drop in made.drops]
    thirds = np.floor((np.array(places) + 0.3) / 0.2)
    assert (np.diff(thirds) != 0.0).all()


def test_copies_turn_about_their_own_middle():
    """However far from the origin the body lies, and about whatever axis: their middles scatter by the spread alone."""
    template = emit.emit_box(SETTINGS, JELLY, size=(0.1, 0.2, 0.3), centre=(3.0, 1.0, -2.0))
    middle = template["position"].mean(axis=0)
    for drop in emit_drops(SETTINGS, template, count=6, turn=(360.0, 360.0, 360.0), spread=(0.2, 0.0, 0.0)).drops:
        moved = np.array(drop.rotation) @ middle + drop.offset - middle
        assert abs(moved[0]) <= 0.1 and np.allclose(moved[1:], 0.0, atol=1e-12)


def test_equal_seeds_drop_equally_and_others_do_not():
    """The seed fixes places and turns."""
    a, b, c = (emit_drops(SETTINGS, body(), spread=(1.0, 0.0, 0.0), start_frame=5, seed=seed) for seed in (1, 1, 2))
    assert a.drops == b.drops != c.drops


def test_copies_before_the_shot_are_left_out_and_none_left_is_an_error():
    """Only copies from the shot's first frame on are kept; the error names the frame and the cure."""
    assert len(emit_drops(SETTINGS, body(), count=4, start_frame=1, interval=2).drops) == 2
    with pytest.raises(MpmNodesError, match=r"all 2 copies lie before frame 5.*raise start_frame"):
        emit_drops(SETTINGS, body(), count=2, start_frame=1, interval=1)


def test_a_copy_enters_in_the_substep_of_its_time_wherever_that_ends():
    """Positions are those of free flight to the end of the substep; each copy comes once."""
    made = emit_drops(SETTINGS, body(), count=3, start_frame=5, interval=2.4, velocity=(0.0, -2.0, 0.0))
    drops = emission_of(made, np.zeros(1, np.int32))
    assert isinstance(drops, Drops)
    at_start = drops.between(-np.inf, 0.0)
    assert np.array_equal(at_start["position"], body()["position"])
    seen = [drops.between(begin, begin + 0.03) for begin in 0.03 * np.arange(10)]
    assert [0 if columns is None else len(columns["position"]) for columns in seen] == [0, 0, 0, 8, 0, 0, 8, 0, 0, 0]
    late = body()["position"] + [0.0, -2.0 * (0.12 - 0.1), 0.0]
    assert np.allclose(seen[3]["position"], late, atol=1e-12) and (seen[3]["velocity"] == [0.0, -2.0, 0.0]).all()


def test_copies_from_before_the_initial_state_never_come():
    """A solve that begins three frames into the shot knows nothing of what fell before; what is due on its first frame is there."""
    made = emit_drops(SETTINGS, body(), count=3, start_frame=5, interval=3)
    for origin, counts in ((5, (8, 16)), (8, (8, 8)), (9, (0, 8)), (12, (0, 0))):
        drops = emission_of(made, np.zeros(1, np.int32), Clock.of(SETTINGS, origin, 1.0))
        found = (drops.between(-np.inf, 0.0), drops.between(0.0, 9.0))
        assert tuple(0 if columns is None else len(columns["position"]) for columns in found) == counts


def test_a_solve_takes_the_drops_in():
    """Sources alone first; later the copies as well, with new ids, at their density."""
    made = emit_drops(SETTINGS, body(), count=2, start_frame=6, interval=1, spread=(2.0, 0.0, 0.0))
    solver = SubstepSolver(body(), cell_size=0.1, emitters=[made], gravity=(0.0, 0.0, 0.0))
    assert len(solver.snapshot()) == 8  # the copies are due a frame and two after the initial state
    solver.advance(2.5 / 24)
    state = solver.snapshot()
    assert state["id"].tolist() == list(range(24))
    assert state["mass"].sum(dtype=float) == pytest.approx(3 * 1000.0 * 0.1**3, rel=1e-6)  # float32 state


def test_colours_follow_the_materials():
    """#ffffff is linear 1, #808080 is 0.2159 (sRGB); materials beyond the list begin again; a bad colour is named."""
    particles = Particles({"position": np.zeros((3, 3)), "material": np.array([0, 1, 2], np.int32)}, (JELLY,) * 3)
    colour = colour_particles(particles, colours=("#ffffff", "#808080"))["displayColor"]
    assert colour.dtype == np.float32
    assert np.allclose(colour[:, 0], [1.0, 0.21586, 1.0], atol=1e-5)
    with pytest.raises(MpmNodesError, match='"white" is not a colour; write "#rrggbb"'):
        colour_particles(particles, colours=("white",))


def test_colours_of_an_attribute_run_from_its_low_to_its_high_value():
    """Straight between the colours, level beyond the ends; a single colour begins at black."""
    values = np.array([-1.0, 1.0, 2.0, 3.0, 9.0])
    particles = Particles({"position": np.zeros((5, 3)), "temperature": values}, (JELLY,))
    three = colour_particles(particles, colours=("#ff0000", "#00ff00", "#0000ff"), attribute="temperature", low=1.0, high=3.0)
    np.testing.assert_allclose(three["displayColor"], [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], atol=1e-6)
    one = colour_particles(particles, colours=("#ffffff",), attribute="temperature", low=1.0, high=3.0)
    np.testing.assert_allclose(one["displayColor"][:, 0], [0.0, 0.0, 0.5, 1.0, 1.0], atol=1e-6)
