"""Problems of a graph on the nodes that have them."""

import json
import re
from pathlib import Path

from . import environment, figures, graph_file, knobs, steps
from .nodes import MpmNode
from .trees import GRAPH_TREE

PLACE = re.compile(r"^([^\W\d][\w-]*)((?:\.[\w-]+)*)(?:, frame -?\d+)?:")
"""How a line of an error begins: "node.knob:" or "node, frame 7:"."""


def clear(tree):
    """Forget the problems of a tree and of the substep trees in it."""
    for each in (tree, *substep_trees(tree).values()):
        for node in each.nodes:
            if isinstance(node, MpmNode):
                node.problem = node.notice = ""


def substep_trees(tree):
    """Return the substep trees that a graph uses, by (node name, knob name)."""
    found = {}
    for node in tree.nodes:
        for knob in node.record["knobs"] if getattr(node, "record", None) else ():
            if knob["kind"] == "substeps" and getattr(node, knobs.prop(knob["name"])) == knobs.OWN:
                inner = getattr(node, knobs.tree_prop(knob["name"]))
                if inner is not None:
                    found[node.name, knob["name"]] = inner
    return found


def show(tree, place, text, bad=True):
    """Put a problem, or news that are not bad, on the node that the place names; return the node, or None when it names none.

    `place` is "node.knob", or "node.substeps.stage.knob", which is shown on the stage as well.
    """
    by_file = {name: tree.nodes[own] for own, name in graph_file.names_in_file(tree).items()}
    name, _, rest = place.partition(".")
    node = by_file.get(name)
    if node is None:
        return None
    add(node, f"{rest}: {text}" if rest else text, bad)
    knob, _, inner = rest.partition(".")
    substeps = substep_trees(tree).get((node.name, knob))
    if substeps is not None and inner:
        stage, _, left = inner.partition(".")
        names = {file_name: own for own, file_name in graph_file.names_in_file(substeps).items()}
        if stage in names:
            add(substeps.nodes[names[stage]], f"{left}: {text}" if left else text, bad)
    return node


def add(node, text, bad=True):
    """Add a problem to a node, which is shown in red; or news that are not bad: a warning, the end of a cancelled cook."""
    kind = "problem" if bad else "notice"
    said = getattr(node, kind)
    if text not in said.splitlines():
        setattr(node, kind, f"{said}\n{text}".strip())


def show_text(tree, text, bad=True):
    """Put each line of an error's text on the node that it begins with; return the lines that name none."""
    rest = []
    for line in environment.in_own_words(text).splitlines():
        line = re.sub(r"^mpm-nodes: (error: )?", "", line).strip()
        found = PLACE.match(line)
        if not line:
            continue
        if found is None or show(tree, found[1] + found[2], line[found.end() :].strip(" :"), bad) is None:
            rest.append(line)
    return rest


def warn(tree, warnings):
    """Put warnings on the nodes that they are of.

    Args:
        tree: The graph.
        warnings: (place, text) of each, "" as the place of one that begins with its place, or has none.

    Returns: lines for the panel: those that no node shows, else the first; "" without any.
    """
    rest = []
    for place, text in warnings:
        if not place or show(tree, place, environment.in_own_words(text), bad=False) is None:
            rest += show_text(tree, text, bad=False)
    said = rest or [environment.in_own_words(text) for _, text in warnings][:1]
    more = f" ({len(warnings) - 1} more on the nodes)" if not rest and len(warnings) > 1 else ""
    return "\n".join(f"Warning: {line}" for line in said) + more


def validate(tree, path):
    """Validate a written graph and show its problems; return how many there are.

    Raises:
        environment.EnvironmentFault: The program cannot be run.
    """
    return steps.finish(validate_steps(tree, path))


def validate_steps(tree, path):
    """Do as `validate`, in steps.

    Raises:
        environment.EnvironmentFault: The program cannot be run.
    """
    clear(tree)
    code, out, error = yield from environment.run_steps(environment.command("needs", graph=str(path)))
    try:
        answer = json.loads(out)
        found = answer["problems"]
    except ValueError:
        rest = show_text(tree, error or out)
        report(tree, "\n".join(rest) or "see the nodes in red", code != 0)
        return max(1, len(rest)) if code else 0
    found += missing_files(tree, path)
    rest = []
    for problem in found:
        text = sentence(problem)
        if show(tree, problem["place"], text) is None:
            rest.append(f"{problem['place']}: {text}")
    if found:
        count = f"{len(found)} problem{'s' if len(found) > 1 else ''}"
        report(tree, "\n".join([f"{count}; see the nodes in red", *rest] if len(rest) < len(found) else rest), True)
    else:
        warned = warn(tree, [(each["place"], each["message"]) for each in answer.get("warnings", ())])
        said = f"The graph is valid: {_needs(tree, answer['needs'])}"
        report(tree, "\n".join(filter(None, [said, warned])), False)
    return len(found)


def _needs(tree, needs):
    """Return what a cook of a graph needs: particles, memory, disk, and time where an earlier cook says how long a frame takes."""
    frames = max(1, tree.k_end - tree.k_start + 1)
    time = (
        f"about {figures.duration_in_words(frames * tree.seconds_a_frame)} at the last cook's pace" if tree.seconds_a_frame else ""
    )
    return ", ".join(filter(None, [figures.needs_in_words(needs), time])) + f" for {frames} frames"


def missing_files(tree, path):
    """Return a problem for every input file of a written graph that is not there."""
    found = []
    entries = graph_file.read(path)["nodes"]
    for own, name in graph_file.names_in_file(tree).items():
        for knob in tree.nodes[own].record["knobs"] if tree.nodes[own].record else ():
            value = entries[name].get("knobs", {}).get(knob["name"])
            if knob["kind"] == "path" and isinstance(value, str) and value and not (Path(path).parent / value).is_file():
                place = f"{name}.{knob['name']}"
                message = "names a file that is not there"
                found.append({"place": place, "message": message, "value": value, "cure": "choose another"})
    return found


def sentence(problem):
    """Return a problem's text without its place."""
    value = "" if problem.get("value") is None else f"{_short(json.dumps(problem['value']))} "
    allowed = f"; allowed: {problem['allowed']}" if problem.get("allowed") else ""
    text = f"{value}{problem['message']}{allowed}" + (f"; {problem['cure']}" if problem.get("cure") else "")
    return environment.in_own_words(text)


def _short(text):
    """Return a value's text, and of a long one its beginning and its end, where a file's name is."""
    return text if len(text) <= 120 else f"{text[:56]} ... {text[-56:]}"


def report(tree, text, failed):
    """Show a text in the tree's panel."""
    tree.status, tree.failed = environment.in_own_words(text), failed


def graph_trees(bpy_data):
    """Return all graph trees of the file."""
    return [tree for tree in bpy_data.node_groups if tree.bl_idname == GRAPH_TREE]
