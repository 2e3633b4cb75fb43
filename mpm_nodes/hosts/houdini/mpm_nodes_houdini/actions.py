"""The buttons of the MPM Cook node."""

from __future__ import annotations

import json
import os

import hou

from . import build as building
from . import cooking, process
from .build import assets_missing, build, unfold
from .collect import collect
from .messages import Trouble, ending, filled, in_own_words, recook, say, told
from .nodes import PROBLEM, facts_of
from .values import read_knob
from .writers import write_geometry

MARKED = "mpm_nodes_marked"
"""User data of a cook node: session ids of the nodes that show a problem."""


# ---------------------------------------------------------------- files
@told
def save_graph(cook):
    """Write the graph file."""
    say(f"wrote {write_graph(cook)[0]}")


@told
def load_graph(cook):
    """Make the nodes of the graph file."""
    path = cook.parm("mpm_graph").evalAsString()
    try:
        with open(path, encoding="utf-8") as file:
            graph = json.load(file)
    except ValueError as error:
        raise Trouble(f"{path}: is not a graph file ({error}); choose another one") from error
    if not isinstance(graph, dict) or graph.get("format") != facts_of(cook)["graph_format"]["name"]:
        raise Trouble(f"{path}: is not a graph file; choose one that mpm-nodes or a host wrote")
    if assets_missing(graph):
        graph = _upgraded(cook, path, graph)
    before = {node.sessionId() for node in cook.parent().children()}
    with hou.undos.group("Load MPM graph"):
        try:
            made = build(graph, cook)
        except Exception:  # half a graph is worse than none
            for node in cook.parent().children():
                if node.sessionId() not in before:
                    node.destroy()
            raise
    say(f"made {len(made)} nodes from {path}")


@told
def unfold_preset(solve):
    """Make the stages of a solve's preset and wire them in."""
    facts = facts_of(solve)
    port = next(port for port in facts["inputs"] if port["kind"] == "substeps")
    index = facts["inputs"].index(port)
    if index < len(solve.inputs()) and solve.inputs()[index] is not None:
        raise Trouble(f"{solve.name()}: stages are wired in already; take the wire off the last input first")
    chosen = read_knob(solve, next(knob for knob in facts["knobs"] if knob["name"] == port["name"]), (1, 1))
    chosen = chosen if isinstance(chosen, dict) else {"preset": chosen, "set": {}}
    if "edits" in chosen:
        raise Trouble(
            f"{solve.name()}: the preset is edited; make the edits with stages after unfolding, and take edits off the list"
        )
    document = facts["presets"].get(chosen["preset"])
    if document is None:
        raise Trouble(f"{solve.name()}: the assets do not know {chosen['preset']}; write them again with mpm-nodes host houdini")
    if "nodes" not in document:
        raise Trouble(
            f"{solve.name()}: {chosen['preset']} has no stages of its own, it chooses from "
            f"{', '.join(document.get('candidates', []))}; take one of these"
        )
    with hou.undos.group("Unfold MPM preset"):
        unfold(solve, port["name"], {**document, "set": {**document.get("set", {}), **chosen.get("set", {})}})


@told
def add_stage(begin):
    """Make the chosen stage."""
    building.add_stage(begin)


def _upgraded(cook, path, graph):
    """Return the graph of a file in the versions of today, as the program gives it; as it is when the program cannot."""
    program = process.command(cook.parm("mpm_program").evalAsString())
    try:
        code, out, _ = process.call([*program, *filled(facts_of(cook)["program"]["upgrade"], graph=path)])
        return json.loads(out) if code == 0 else graph
    except (OSError, ValueError):
        return graph


def write_graph(cook):
    """Write the graph file with the geometry beside it; return its path and what was collected."""
    _clear_problems(cook)
    collected = collect(cook)
    path = os.path.abspath(cook.parm("mpm_graph").evalAsString())
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_geometry(collected, path)
    part = path + ".part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(collected.graph, file, indent=1, ensure_ascii=False)
        file.write("\n")
    os.replace(part, path)
    return path, collected


# ---------------------------------------------------------------- check
@told
def check_graph(cook):
    """List everything that is wrong with the graph; else what will surprise, and what a cook needs."""
    path, collected = write_graph(cook)
    answer = check(cook, path, collected)
    warnings = [(each["place"], in_own_words(cook, f"{each['place']}: {each['message']}")) for each in answer["warnings"]]
    _mark(cook, collected, warnings)
    text = "; ".join(filter(None, [f"{path}: valid", answer["said"], *(f"Warning: {each}" for _, each in warnings)]))
    say(text, hou.severityType.Warning if warnings else None)


def check(cook, path, collected):
    """Have the program check a graph file, and return its answer; problems appear on their nodes.

    Raises:
        Trouble: The graph is invalid, or the program cannot be run.
    """
    program = process.command(cook.parm("mpm_program").evalAsString())
    try:
        code, out, text = process.call([*program, *filled(facts_of(cook)["program"]["needs"], graph=path)])
    except OSError as error:
        raise Trouble(
            f"{program[0]}: cannot be started ({error.strerror or error}); give the command of mpm-nodes as Program, or "
            'install it: in the folder of mpm-nodes, python3 -m pip install ".[all]"'
        ) from error
    try:
        answer = json.loads(out)
    except ValueError:
        raise Trouble(ending(cook, code, text)) from None
    if code == 0:
        return answer
    problems = [(each["place"], in_own_words(cook, _sentence(each))) for each in answer["problems"]]
    _mark(cook, collected, problems)
    raise Trouble("\n".join(line for _, line in problems) or ending(cook, code, text))


def _mark(cook, collected, said):
    """Show texts on the nodes of their places, until the next check or cook."""
    marked = {}
    for place, text in said:
        node = collected.nodes.get(place.partition(".")[0])
        if node is not None:
            marked.setdefault(node.sessionId(), []).append(text)
    for node_id, texts in marked.items():
        node = hou.nodeBySessionId(node_id)
        node.setUserData(PROBLEM, "\n".join(texts))
        recook(node)
    cook.setUserData(MARKED, json.dumps(list(marked)))


def _sentence(problem):
    given = "" if problem.get("value") is None else f" {json.dumps(problem['value'])}"
    parts = [f"{problem['place']}:{given} {problem['message']}"]
    parts += [f"allowed: {problem['allowed']}"] if problem.get("allowed") else []
    return "; ".join([*parts, *([problem["cure"]] if problem.get("cure") else [])])


def _clear_problems(cook):
    """Take the marks of the last check or cook away, so that they are not in the way of the next."""
    for node_id in json.loads(cook.userData(MARKED) or "[]"):
        node = hou.nodeBySessionId(node_id)
        if node is not None and node.userData(PROBLEM):
            node.destroyUserData(PROBLEM)
            recook(node)
    for name in (MARKED, PROBLEM):
        if cook.userData(name):
            cook.destroyUserData(name)
    recook(cook)
    if cook.errors():
        raise Trouble("\n".join(cook.errors()))


# ---------------------------------------------------------------- cook
@told
def cook_graph(cook):
    """Write the graph file, cook it, bring the cache in."""
    _cook(cook, [])


@told
def continue_graph(cook):
    """Go on after the last whole frame."""
    _cook(cook, facts_of(cook)["program"]["resume"])


@told
def cook_again(cook):
    """Cook the changed graph again from the current frame on; the first frame takes nothing over."""
    frame = round(hou.frame())
    more = filled(facts_of(cook)["program"]["again"], frame=str(frame), revision="")
    _cook(cook, more if frame > cook.parm("start").eval() else [])


@told
def cancel_cook(cook):
    """Stop a cook that runs beside the interface after its substep; pressed again, at once."""
    job = cooking.RUNNING.get(cook.sessionId())
    if job is None:
        raise Trouble(f"{cook.name()}: is not cooking")
    job.stop()
    say(f"{cook.name()}: stopping after this substep; press Cancel again to stop at once")


def _cook(cook, more):
    if cook.sessionId() in cooking.RUNNING:
        raise Trouble(f"{cook.name()}: is cooking already; press Cancel first")
    path, collected = write_graph(cook)
    check(cook, path, collected)
    facts = facts_of(cook)["program"]
    out = os.path.abspath(cook.parm("mpm_out").evalAsString())
    arguments = [*process.command(cook.parm("mpm_program").evalAsString()), *filled(facts["cook"], graph=path, out=out), *more]
    if cook.parm("mpm_threads").eval() > 0:
        arguments += ["--threads", str(cook.parm("mpm_threads").eval())]
    cooking.cook(cook, arguments, out)
