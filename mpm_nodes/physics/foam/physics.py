"""The declaration of foam."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.physics.contract import MaterialNumber, Physics, StagesOfPlan

_CURE = "if it should, take the preset continuum_foam or wire"
_FUNCTIONS = {"project": "never flows", "left_strain": "has no elastic strain"}
_NEEDS = ("material_tearing", _FUNCTIONS, "a law that flows, as herschel_bulkley does")


def check_strength(columns: Mapping[str, np.ndarray], materials: Sequence[Material]) -> None:
    """Refuse factors on the tear threshold that are out of range.

    Raises:
        MpmNodesError: One is not finite or not above 0.
    """
    strength = np.asarray(columns.get("tear_scale", 1.0))
    wrong = strength[~(np.isfinite(strength) & (strength > 0.0))]
    if wrong.size:
        raise MpmNodesError(f"solve: particle tear_scale must be finite and > 0; one is {wrong.flat[0]:g}")


def _cream(named: Callable[[str], Material]) -> tuple[Material, ...]:
    return (named("shaving_cream"),)


def _warnings_on_ranks(plans: Sequence[StagesOfPlan]) -> Iterator[str]:
    if any(part.declaration.id == "avoid_a_void" for plan in plans for part in plan.parts):
        yield (
            "avoid_a_void resamples on every rank with the particles of all: each needs memory for all of them for that moment, "
            "and the time of one rank"
        )


PHYSICS = Physics(
    __package__,
    optional_columns={"tear_scale": "tear_scale"},
    complete=check_strength,
    material_numbers={
        "tear_threshold": MaterialNumber("a tear threshold", "never tears", f"{_CURE} detect_tears", *_NEEDS),
        "recovery_time": MaterialNumber("a recovery time", "never forgets how it flowed", f"{_CURE} recover_plasticity", *_NEEDS),
    },
    kinds=("detect_tears",),
    compiled_for={"continuum_foam": _cream},
    warnings_on_ranks=_warnings_on_ranks,
)
