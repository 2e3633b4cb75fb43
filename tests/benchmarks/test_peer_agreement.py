"""Agreement of two solvers: equal states and rounding pass, anything larger does not."""

import agreement
import numpy as np
import pytest

STEPS = 60
ROUNDING = STEPS * 2.0**-24


def state(count: int = 2000) -> dict[str, np.ndarray]:
    """Return a strained, moving cloud below 1 m."""
    rng = np.random.default_rng(5)
    strain = 0.02 * rng.normal(size=(count, 3, 3))
    return {
        "position": rng.uniform(0.2, 0.8, (count, 3)),
        "velocity": rng.normal(size=(count, 3)) + [0.0, -1.0, 0.0],
        "deformation": np.eye(3) + strain,
    }


def changed(name: str) -> dict[str, np.ndarray]:
    """Return `state()` with one figure moved by three times what it may differ by."""
    new, limit = state(), 3.0 * agreement.tolerances("same", STEPS)[name]
    strain = new["deformation"] - np.eye(3)
    if name == "mean_square_velocity":
        new["velocity"] = new["velocity"] * [1.0, 1.0, 1.0 + limit / 2.0]
    elif name == "mean_square_strain":
        new["deformation"] = np.eye(3) + strain * (1.0 + limit / 2.0)
    elif name == "mean_volume_change":
        new["deformation"] = new["deformation"] * (1.0 + limit / 3.0)
    elif name == "centre_of_mass":
        new["position"] = new["position"] + [0.0, limit, 0.0]
    else:
        new["position"] = new["position"] + limit * np.where(np.arange(len(new["position"])) % 2, 1.0, -1.0)[:, None]
    return new


@pytest.mark.parametrize("form", ["same", "mls"])
def test_equal_states_agree(form):
    """A state agrees with itself in every figure, with no difference."""
    found = agreement.compare(state(), state(), STEPS, form)
    assert found["agree"] and found["steps"] == STEPS
    assert all(row["difference"] == 0.0 and row["agrees"] for row in found["figures"].values())


def test_float32_rounding_agrees():
    """Rounding every number to float32 once per step, in random directions, is within the tolerances."""
    rng, new = np.random.default_rng(6), state()
    for _ in range(STEPS):
        new = {name: column + 2.0**-25 * rng.uniform(-1.0, 1.0, column.shape) for name, column in new.items()}
    assert agreement.compare(state(), new, STEPS, "same")["agree"]


@pytest.mark.parametrize("name", agreement.tolerances("same", STEPS))
def test_each_figure_refuses_what_exceeds_it(name):
    """A difference three times the tolerance of one figure is found by that figure."""
    found = agreement.compare(state(), changed(name), STEPS, "same")
    assert not found["figures"][name]["agrees"]
    assert not found["agree"]


def test_exchanged_particles_disagree():
    """Averages cannot see that particles changed places; the distance of twins does."""
    new = {name: column[::-1] for name, column in state().items()}
    found = agreement.compare(state(), new, STEPS, "same")
    assert [name for name, row in found["figures"].items() if not row["agrees"]] == ["distance_of_twins"]


@pytest.mark.parametrize("form", ["same", "mls"])
@pytest.mark.parametrize("name", ["position", "velocity", "deformation"])
def test_not_a_number_disagrees(form, name):
    """A single NaN is enough to refuse a peer."""
    new = state()
    new[name][7] = np.nan
    assert not agreement.compare(state(), new, STEPS, form)["agree"]


def test_another_number_of_particles_disagrees():
    """A peer that lost particles does not agree, whatever its averages."""
    assert not agreement.compare(state(2000), state(1999), STEPS, "mls")["agree"]


def test_mls_must_come_near():
    """The other discretisation may differ by half a per cent of energy, not by two."""
    near, far = ({**state(), "velocity": state()["velocity"] * np.sqrt(1.0 + by)} for by in (0.005, 0.02))
    assert agreement.compare(state(), near, STEPS, "mls")["agree"]
    assert not agreement.compare(state(), near, STEPS, "same")["agree"]
    assert not agreement.compare(state(), far, STEPS, "mls")["agree"]
