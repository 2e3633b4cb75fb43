"""The buttons of the MPM Cook node."""

from __future__ import annotations

import json
import os
import re

import hou

from . import process
from .build import assets_missing, build, unfold
from .collect import collect
from .nodes import PROBLEM, facts_of, put
from .values import read_knob
from .writers import write_geometry

WORDS = {
    "cook": "press Cook, not Continue",
    "resume": "press Continue",
    "folder": " (Cache Folder, tab Files)",
    "frames": " (Start and End)",
    "asked": "frames ",
    "limit": "",
    "start": "",
    "report": "; report it together with the graph file",
}
"""What a window says where the program's messages speak of its command line."""

MARKED = "mpm_nodes_marked"
"""User data of a cook node: session ids of the nodes that show a problem."""


class Trouble(Exception):
    """Something that the artist must be told; the text says what to do."""


def _told(action):
    """Make a button of a function: troubles become a message window, without a window an error."""

    def button(cook):
        try:
            action(cook)
        except (Trouble, hou.Error, OSError) as error:
            text = error.instanceMessage() if isinstance(error, hou.Error) else str(error)
            cook.setUserData(PROBLEM, text)
            _recook(cook)
            if not hou.isUIAvailable():
                raise hou.NodeError(text) from error
            hou.ui.displayMessage(text, severity=hou.severityType.Error, title="MPM Nodes")

    button.__doc__ = action.__doc__
    return button


# ---------------------------------------------------------------- files
@_told
def save_graph(cook):
    """Write the graph file."""
    _say(f"wrote {_write_graph(cook)[0]}")


@_told
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
    _say(f"made {len(made)} nodes from {path}")


@_told
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


def _upgraded(cook, path, graph):
    """Return the graph of a file in the versions of today, as the program gives it; as it is when the program cannot."""
    program = process.command(cook.parm("mpm_program").evalAsString())
    try:
        code, out, _ = process.call([*program, *_filled(facts_of(cook)["program"]["upgrade"], graph=path)])
        return json.loads(out) if code == 0 else graph
    except (OSError, ValueError):
        return graph


def _write_graph(cook):
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
@_told
def check_graph(cook):
    """List everything that is wrong with the graph."""
    path, collected = _write_graph(cook)
    _check(cook, path, collected)
    _say(f"{path}: valid")


def _check(cook, path, collected):
    """Have the program check a graph file; problems appear on their nodes.

    Raises:
        Trouble: The graph is invalid, or the program cannot be run.
    """
    program = process.command(cook.parm("mpm_program").evalAsString())
    try:
        code, out, text = process.call([*program, *_filled(facts_of(cook)["program"]["validate"], graph=path)])
    except OSError as error:
        raise Trouble(
            f"{program[0]}: cannot be started ({error.strerror or error}); give the command of mpm-nodes as Program, or "
            'install it: in the folder of mpm-nodes, python3 -m pip install ".[all]"'
        ) from error
    if code == 0:
        return
    try:
        problems = json.loads(out)
    except ValueError:
        raise Trouble(_ending(cook, code, text)) from None
    lines = []
    marked = {}
    for problem in problems:
        line = _in_own_words(cook, _sentence(problem))
        lines.append(line)
        node = collected.nodes.get(problem["place"].partition(".")[0])
        if node is not None:
            marked.setdefault(node.sessionId(), []).append(line)
    for node_id, texts in marked.items():
        node = hou.nodeBySessionId(node_id)
        node.setUserData(PROBLEM, "\n".join(texts))
        _recook(node)
    cook.setUserData(MARKED, json.dumps(list(marked)))
    raise Trouble("\n".join(lines) or _ending(cook, code, text))


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
            _recook(node)
    for name in (MARKED, PROBLEM):
        if cook.userData(name):
            cook.destroyUserData(name)
    _recook(cook)
    if cook.errors():
        raise Trouble("\n".join(cook.errors()))


def _recook(node):
    """Cook a node again, so that it shows or loses its warning; what is wrong with it is asked for elsewhere."""
    try:
        node.cook(force=True)
    except hou.OperationFailed:
        pass


# ---------------------------------------------------------------- cook
@_told
def cook_graph(cook):
    """Write the graph file, cook it, bring the cache in."""
    _cook(cook, [])


@_told
def continue_graph(cook):
    """Go on after the last whole frame."""
    _cook(cook, facts_of(cook)["program"]["resume"])


def _cook(cook, more):
    path, collected = _write_graph(cook)
    _check(cook, path, collected)
    facts = facts_of(cook)["program"]
    out = os.path.abspath(cook.parm("mpm_out").evalAsString())
    arguments = [*process.command(cook.parm("mpm_program").evalAsString()), *_filled(facts["cook"], graph=path, out=out), *more]
    if cook.parm("mpm_threads").eval() > 0:
        arguments += ["--threads", str(cook.parm("mpm_threads").eval())]
    running = process.Process(arguments)
    stages, stopped = [], False
    try:
        with hou.InterruptableOperation("Cooking MPM", "Frames", open_interrupt_dialog=True) as operation:
            _watch(cook, running, operation, stages)
    except hou.OperationInterrupted:
        stopped = True
        _say("stopping after this substep")
        running.stop()
    except BaseException:
        running.stop()
        raise
    code, text = running.finish()
    for stage in stages:
        _bring_in(cook, stage)
    if stopped:
        raise Trouble("Stopped. Whole frames are kept; press Continue to go on.")
    if code != 0:
        raise Trouble(_ending(cook, code, text))
    _say(f"cooked into {out}")


def _watch(cook, running, operation, stages):
    """Show a cook's progress until it ends, and add the USD stages that it writes to `stages`."""
    first, last, frame, status = 1, 1, 1, "starting"
    for event in running.events():
        kind = event["event"] if event else ""
        if kind == "plan":
            first, last = event["frames"]
        elif kind in ("frame_start", "substep"):
            frame = event["frame"]
            status = _status(frame, last, event)
        elif kind == "wrote" and _is_stage(event["path"]) and event["path"] not in stages:
            stages.append(event["path"])
        elif kind == "note":
            status = _in_own_words(cook, event["message"])
        elif kind == "warning":
            _say(_in_own_words(cook, event["message"]), hou.severityType.Warning)
        elif kind == "frame_done":
            status = _status(frame, last, event)
            frame += 1
        operation.updateLongProgress((frame - first) / max(last - first + 1, 1), status)


def _is_stage(path):
    """Return whether a written file is the stage of the whole cache: it lies in the revision folder itself."""
    folder = os.path.basename(os.path.dirname(path))
    return path.endswith((".usd", ".usda", ".usdc")) and folder[:1] == "r" and folder[1:].isdigit()


def _status(frame, last, event):
    parts = [f"frame {frame} of {last}"]
    if event.get("particles") is not None:
        parts.append(f"{event['particles']:,} particles")
    if event.get("seconds_left") is not None:
        left = round(event["seconds_left"])
        parts.append(f"{left // 60}:{left % 60:02d} left")
    return ", ".join(parts)


def _bring_in(cook, stage):
    """Show a cache by Houdini's own USD import; its node is made once and then pointed at the newest cook."""
    way = cook.parm("mpm_import").evalAsString()
    if way == "none":
        return
    parent, kind = (cook.parent(), "usdimport") if way == "sop" else (hou.node("/stage"), "sublayer")
    name = f"{cook.name()}_{os.path.splitext(os.path.basename(stage))[0]}"
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    node = parent.node(name) or parent.createNode(kind, name)
    put(node, "filepath1", stage)
    if way == "sop":
        x, y = cook.position()
        node.setPosition(hou.Vector2((x, y - 1.0)))
        node.setDisplayFlag(True)


def _filled(arguments, **values):
    return [values[text[1:-1]] if text.startswith("{") and text.endswith("}") else text for text in arguments]


def _ending(cook, code, text):
    """Return what an exit code means, with what the program said."""
    codes = facts_of(cook)["program"]["exit_codes"]
    meaning = next((each["doc"] for each in codes if each["code"] == code), f"The program ended with code {code}.")
    return _in_own_words(cook, f"{text}\n{meaning}".strip())


def _in_own_words(cook, text):
    """Return a message of the program as it is said in a window."""
    for phrase in facts_of(cook)["program"]["wording"]:
        text = text.replace(phrase["says"], WORDS[phrase["action"]])
    return text


def _say(text, severity=None):
    if hou.isUIAvailable():
        hou.ui.setStatusMessage(text, severity=severity or hou.severityType.Message)
    else:
        print(text)
