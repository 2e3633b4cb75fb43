"""Physics checks that any user can run: one class per problem, with its scene, its exact answer and its tolerance.

    from mpm_nodes import verification
    for record in verification.run(["free_fall"]):
        print(record)

`mpm-nodes verify` and pytest run the same classes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from mpm_nodes.data import MpmNodesError
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.physics import all_physics
from mpm_nodes.verification.contract import Curve, Finding, Record, VerificationProblem, registered

__all__ = ["Curve", "Finding", "Record", "VerificationProblem", "problems", "run", "run_law", "topics"]

_MODULES = (
    "transfers",
    "conservation",
    "forces",
    "moving_axes",
    "goals",
    "passive",
    "attachments",
    "invariance",
    "resolutions",
    "laws",
    "elasticity",
    "painted",
    "plasticity",
    "viscoplasticity",
    "viscoelasticity",
    "liquids",
    "viscosity",
    "sheared_layer",
    "yield_stress_flows",
    "granular",
    "poured_sand",
    "contact",
    "adhesion",
    "landing",
    "held_balls",
    "implicit",
    "implicit_contact",
    "implicit_flow",
    "implicit_stability",
    "implicit_damping",
    "seeding",
    "moving_liquid",
    "emission",
    "slabs",
    "pressure_solves",
)


def problems() -> dict[str, type[VerificationProblem]]:
    """Return every problem by name, in the order in which they run."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in _MODULES]
    for physics in all_physics():
        modules += physics.modules("problems")
    # what is imported registers itself, also before this, and by those that build on it
    places = {module.__name__: n for n, module in enumerate(modules)}
    ordered = sorted(registered(), key=lambda problem: places.get(problem.__module__, len(places)))
    return {problem.name: problem for problem in ordered}


def topics() -> dict[str, list[type[VerificationProblem]]]:
    """Return the problems by topic, in the order in which they run."""
    found: dict[str, list[type[VerificationProblem]]] = {}
    for problem in problems().values():
        found.setdefault(problem.__module__.rpartition(".")[2].replace("_", " "), []).append(problem)
    return found


def run(
    names: Sequence[str] | None = None,
    fast: bool | None = None,
    all: bool | None = None,
    progress: Callable[[Record], None] | None = None,
    finished: Callable[[VerificationProblem, list[Record]], None] | None = None,
) -> list[Record]:
    """Run problems and return their records, one per number checked.

    Args:
        names: Problems to run, slow ones too; None or empty for the fast ones.
        fast: Leave the slow ones out, also those that are named.
        all: Run everything.
        progress: Called with each record as soon as it is there.
        finished: Called with each problem and its records when it has run.

    Raises:
        MpmNodesError: A name is unknown.
    """
    known = problems()
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise MpmNodesError(f"verify: there is no problem '{unknown[0]}'; {nearest(unknown[0], known, 'mpm-nodes verify --list')}")
    chosen = [known[name] for name in names] if names else list(known.values())
    if fast or not (names or all):
        chosen = [problem for problem in chosen if not problem.slow]
    records = []
    for kind in chosen:
        problem, begin = kind(), len(records)
        for record in problem.records():
            records.append(record)
            if progress is not None:
                progress(record)
        if finished is not None:
            finished(problem, records[begin:])
    return records


def run_law(name: str, progress: Callable[[Record], None] | None = None) -> list[Record]:
    """Check a constitutive law, built in or a user's, function by function against finite differences of its energy.

    Args:
        name: Id of a law, or a Python file that defines one.
        progress: Called with each record as soon as it is there.

    Raises:
        MpmNodesError: There is no such law, or its module breaks the contract.
    """
    from mpm_nodes.verification.law_contract import LawContract, law_named

    records = []
    for record in LawContract(law_named(name)).records():
        records.append(record)
        if progress is not None:
            progress(record)
    return records
