"""What of a substep graph runs as one loop, why the rest does not, and the source of the loops."""

from __future__ import annotations

from typing import Any

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.graph.document.substep_document import Substeps
from mpm_nodes.graph.plan.fusion import fragments_of, runs_of
from mpm_nodes.graph.plan.substeps import plan_substeps, resolve
from mpm_nodes.kernels.composition.fragments import OwnLoops
from mpm_nodes.materials.contract import law as law_named
from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.solver.device.report import on_device, refusal
from mpm_nodes.solver.program import program_of
from mpm_nodes.solver.shared_loops import shared_loop

__all__ = ["explained"]


def explained(substeps: Any, law: str | None = None, device: str = "cpu") -> str:
    """Return the runs of a substep graph as text, one line for each stage or shared loop.

    Args:
        substeps: As for `plan_substeps`; presets with candidates are explained one by one.
        law: Constitutive law for which the source of the loops is added, or None for none.
        device: `solve.device`; if it is not "cpu", what runs on a GPU and what is copied is added, for this law or neo_hookean.

    Raises:
        GraphError: The substep graph has problems.
        LawError: The law is unknown.
    """
    found = resolve(substeps)
    candidates = (found, *found.others)
    texts = [_one(candidate, law) for candidate in candidates]
    if device == "cpu":
        return "\n\n".join(texts)
    of = law_named(law or "neo_hookean")
    refused = refusal((program_of(each, of.state, True) for each in candidates), of)
    if refused:
        return "\n\n".join([*texts, f"with device {device}: {refused}"])
    for candidate, text in zip(candidates, texts, strict=True):
        head = f"with device {device}, for the law {of.id}; what is copied is the most that there can be:"
        lines = [head, *on_device(plan_substeps(candidate, of.state), of)]
        texts[texts.index(text)] = "\n".join([text, *lines])
    return "\n\n".join(texts)


def _one(substeps: Substeps, law_id: str | None) -> str:
    law = law_named(law_id) if law_id else None
    plan = plan_substeps(substeps, law.state if law else ())
    recipe = substeps.recipe
    name = recipe if isinstance(recipe, str) else recipe.get("preset", "a substep graph of its own")
    lines, sources = [name], []
    for run in runs_of(plan):
        if not run.is_shared:
            stage = run.members[0].id
            because = run.ending.removeprefix(f"{stage} ")
            lines.append(f"  {stage}: alone, since it {because}" if because != run.ending else f"  {stage}: alone, since {because}")
            for name, fragments in (each for f in fragments_of(run.members[0]) if isinstance(f, OwnLoops) for each in f.lists):
                lines.append(f"    has a loop of its own on request: {name}")
                sources += [law_loops(law.id).composed(fragments).source.text] if law is not None else []
            continue
        loop = shared_loop(run, plan)
        lines.append(f"  {' + '.join(member.id for member in run.members)}: one loop")
        lines.append(f"    ends there, since {run.ending}")
        if run.omits:
            lines.append(f"    does without {', '.join(f'{domain}.{array}' for domain, array in sorted(run.omits))}")
        if loop.measured is not None:
            lines.append(f"    measures on the way what {loop.measured.stage.id} asks for in the next substep")
        for array, readers in loop.readers.items():
            kept = ", ".join(reader.id for reader in readers)
            lines.append(f"    {array} stays in the loop" + (f" unless {kept} needs it" if kept else ""))
        if law is not None:
            table = {**ATTRIBUTES, **(law.fields if law else {}), **plan.own_fields.get("particles", {})}
            sources.append(loop.source(law, table).text)
    return "\n".join([*lines, *(["", *sources] if sources else [])])
