"""Build graphs and cook them in a terminal: a whole host in one file, for `docs/protocol.md`.

Imports Python's own library alone. What it knows of nodes it reads from the specification; the solver runs in another process.

    python mpm_terminal.py [SCRIPT]        commands from a file, else from the terminal; `help` lists them

MPM_NODES_PROGRAM is the command of the program, mpm-nodes where it is not set.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

WORDS = {
    "again": "use `cook`, or `resume` with a frame",
    "cook": "use `cook`, not `resume`",
    "resume": "use `resume`",
    "folder": " with `out FOLDER`",
    "frames": " with `set start` and `set end`",
    "asked": "frames ",
    "limit": "",
    "start": "",
    "report": "; report it together with the graph file",
}
"""What is said here where the program's messages speak of its command line."""


class HostFault(Exception):
    """Something that the user must be told; the text says what to do."""


def program(arguments):
    """Start the program; Ctrl-C is for this host alone, and settings of this Python (PYTHON...) do not reach the program's."""
    words = shlex.split(os.environ.get("MPM_NODES_PROGRAM", "") or "mpm-nodes")
    safe = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"PYTHONSAFEPATH": "1"}
    try:
        return subprocess.Popen(
            [*words, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=safe
        )
    except OSError as error:
        raise HostFault(f"{words[0]} cannot be started ({error.strerror}); set MPM_NODES_PROGRAM to its command") from error


def answer(arguments):
    """Run the program to its end; return (exit code, stdout, stderr)."""
    process = program(arguments)
    out, error = process.communicate()
    return process.returncode, out, error


class Host:
    """A graph, and what the specification says about nodes.

    Attributes:
        spec: The host specification.
        graph: The document, as it is written to a file.
        path: The graph file; caches lie beside it.
    """

    def __init__(self, spec, say=print):
        self.spec, self.say = spec, say
        self.records = {record["id"]: record for record in spec["nodes"]}
        self.settings = {knob["name"]: knob for knob in spec["settings"]}
        self.path, self.folder = Path("graph.json"), None
        self.new()

    # ---------------------------------------------------------------- the graph
    def new(self):
        """Begin an empty graph."""
        facts = self.spec["graph_format"]
        self.graph = {"format": facts["name"], "version": facts["version"], "settings": {}, "nodes": {}}

    def add(self, kind, name=""):
        """Add a node of a kind, under a name."""
        record, name = self._record(kind), name or kind
        if not re.fullmatch(self.spec["name_pattern"], name) or name in self.graph["nodes"]:
            raise HostFault(f"{name}: is taken, or not a name; letters, digits, _ and - may be in it")
        self.graph["nodes"][name] = {"type": kind, "version": record["version"], "knobs": {}, "inputs": {}}

    def set(self, place, *words):
        """Set NODE.KNOB, or a setting of the whole graph, to a value written as JSON."""
        name, dot, inner = place.partition(".")
        known = self._node(name)[1]["knobs"] if dot else self.settings.values()
        knob = next((each for each in known if each["name"] == (inner if dot else name)), None)
        if knob is None:
            raise HostFault(f"{place}: there is no such knob; there are {', '.join(each['name'] for each in known)}")
        (self.graph["nodes"][name]["knobs"] if dot else self.graph["settings"])[knob["name"]] = value_of(knob, " ".join(words))

    def wire(self, source, target):
        """Wire SOURCE or SOURCE.OUTPUT into NODE.PORT."""
        record = self._node(source.partition(".")[0])[1]
        wanted = source.partition(".")[2]
        outputs = [each for each in record["outputs"] if not each.get("internal")]
        output = next((each for each in outputs if each["name"] == wanted or not wanted), None)
        name, _, port_name = target.partition(".")
        node, taking = self._node(name)
        port = next((each for each in taking["inputs"] if each["name"] == port_name), None)
        if output is None or port is None:
            raise HostFault(f"{source} -> {target}: there is no such output or port; see `show`")
        if output["type"] not in port["accepts"]:
            raise HostFault(f"{target}: takes {' or '.join(port['accepts'])}, {source} gives {output['type']}")
        alone = len(record["outputs"]) == 1
        spelled = source.partition(".")[0] + ("" if alone else f".{output['name']}")
        given = node["inputs"].setdefault(port_name, []) if port["many"] else None
        if given is None:
            node["inputs"][port_name] = spelled
        elif spelled not in given:
            given.append(spelled)

    def remove(self, name):
        """Remove a node with its wires."""
        self._node(name)
        del self.graph["nodes"][name]
        for entry in self.graph["nodes"].values():
            for port, given in list(entry.get("inputs", {}).items()):
                many = isinstance(given, list)
                left = [wire for wire in (given if many else [given]) if wire.partition(".")[0] != name]
                entry["inputs"].pop(port)
                if left:
                    entry["inputs"][port] = left if many else left[0]

    def _record(self, kind):
        if kind not in self.records:
            raise HostFault(f"{kind}: there is no such kind of node; `kinds` lists them")
        return self.records[kind]

    def _node(self, name):
        if name not in self.graph["nodes"]:
            raise HostFault(f"{name}: there is no such node; there are {', '.join(self.graph['nodes']) or 'none'}")
        entry = self.graph["nodes"][name]
        return entry, self._record(entry["type"])

    # ---------------------------------------------------------------- looking
    def kinds(self, text=""):
        """List the kinds of nodes, or those with a text in their name."""
        for record in self.spec["nodes"]:
            if text in record["id"] or text.lower() in record["label"].lower():
                self.say(f"{record['id']:28} {record['category']:10} {record['doc'].splitlines()[0]}")

    def show(self, name=""):
        """Show the graph, or ports and knobs of a node or of a kind of node."""
        if not name:
            for each, entry in self.graph["nodes"].items():
                self.say(f"{each} ({entry['type']}) {json.dumps(entry.get('knobs', {}))} {json.dumps(entry.get('inputs', {}))}")
            return
        entry = self.graph["nodes"].get(name, {})
        record = self._record(entry.get("type", name))
        for port in record["inputs"]:
            self.say(f"  port {port['name']}: {' or '.join(port['accepts'])}{' (many)' if port['many'] else ''}")
        for knob in record["knobs"]:
            value = entry.get("knobs", {}).get(knob["name"], knob["default"])
            self.say(f"  {knob['name']} = {json.dumps(value)}{' ' + knob['unit'] if knob['unit'] else ''}: {knob['doc']}")

    # ---------------------------------------------------------------- files
    def load(self, path):
        """Open a graph file; nodes of older versions are upgraded."""
        code, out, error = answer([word.format(graph=path) for word in self.spec["cook"]["upgrade"]])
        if code:
            raise HostFault(self.own(error))
        self.graph, self.path = json.loads(out), Path(path)

    def save(self, path=""):
        """Write the graph file; it appears under its name only when it is whole."""
        self.path = Path(path or self.path)
        part = self.path.with_name(f".{self.path.name}.part")
        try:
            part.write_text(json.dumps(self.graph, indent=1) + "\n", encoding="utf-8")
            os.replace(part, self.path)
        except OSError as error:
            raise HostFault(f"{self.path}: cannot be written ({error.strerror}); save under another name") from error

    def out(self, folder):
        """Choose the folder of the caches."""
        self.folder = Path(folder)

    # ---------------------------------------------------------------- the program
    def check(self):
        """List everything that is wrong with the graph, and what a cook needs."""
        self.save()
        code, out, error = answer([word.format(graph=self.path) for word in self.spec["cook"]["needs"]])
        try:
            found = json.loads(out)
        except ValueError:
            raise HostFault(self.own(error)) from None
        for problem in [*found["problems"], *found.get("warnings", ())]:
            given = "" if problem.get("value") is None else f" {json.dumps(problem['value'])}"
            rest = "".join(f"; {problem[key]}" for key in ("allowed", "cure") if problem.get(key))
            self.say(self.own(f"{problem['place']}:{given} {problem['message']}{rest}"))
        if code:
            raise HostFault(f"{len(found['problems'])} problems")
        self.say(f"valid; {', '.join(f'{name} {count}' for name, count in found['needs'].items())}")

    def cook(self, *more):
        """Cook the graph: one line a frame. Ctrl-C stops after the substep; whole frames stay."""
        self.save()
        out = self.folder or self.path.with_name(f"{self.path.stem}_cache")
        facts = self.spec["cook"]
        process = program([word.format(graph=self.path, out=out) for word in facts["cook"]] + list(more))
        before = signal.signal(signal.SIGINT, lambda *_: process.send_signal(getattr(signal, facts["cancel"]["signal"])))
        try:
            for line in process.stdout:
                with contextlib.suppress(ValueError, AttributeError, KeyError, TypeError):  # what others print in between
                    self._tell(json.loads(line))
            error = process.stderr.read()
            code = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        meaning = next((each for each in facts["exit_codes"] if each["code"] == code), None)
        if code:
            raise HostFault(self.own(f"{error.strip()}\n{meaning['doc'] if meaning else f'ended with code {code}'}"))
        self.say("done")

    def resume(self, frame=""):
        """Go on after the last whole frame of the newest cook; with a FRAME, cook the graph as it is now again from there."""
        again = [word.format(frame=frame, revision="") for word in self.spec["cook"]["again"]]
        self.cook(*(again if frame else self.spec["cook"]["resume"]))

    def _tell(self, event):
        kind = event.get("event")
        if kind == "plan":
            self.say(f"frames {event['frames'][0]} to {event['frames'][1]} into {event['out']}")
        elif kind == "frame_done":
            self.say(f"frame {event['frame']}: {event.get('particles', 0)} particles, {event['seconds']:.1f} s")
        elif kind in ("warning", "note", "cancelled", "error", "compiling"):
            self.say(event["message"] if kind == "compiling" else self.own(f"{kind}: {event['message']}"))

    def own(self, text):
        """Return a message of the program in the words of this host."""
        for phrase in self.spec["cook"]["wording"]:
            text = text.replace(phrase["says"], WORDS[phrase["action"]])
        return text

    # ---------------------------------------------------------------- commands
    def do(self, line):
        """Carry out a line; return False when it ends the session."""
        words = shlex.split(line, comments=True)
        if not words:
            return True
        if words[0] in ("quit", "exit"):
            return False
        if words[0] not in COMMANDS:
            raise HostFault(f"{words[0]}: there is no such command; there are {', '.join(COMMANDS)}, help, quit")
        try:
            getattr(self, words[0])(*words[1:])
        except TypeError:
            raise HostFault(f"{words[0]}: {getattr(Host, words[0]).__doc__.splitlines()[0]}") from None
        return True

    def help(self):
        """List the commands."""
        for name in COMMANDS:
            self.say(f"{name:8} {getattr(Host, name).__doc__.splitlines()[0]}")


COMMANDS = ("help", "new", "kinds", "show", "add", "set", "wire", "remove", "load", "save", "out", "check", "cook", "resume")


def value_of(knob, text):
    """Return a knob's value from text: JSON, or plain words where the knob holds text."""
    try:
        return json.loads(text)
    except ValueError:
        if knob["kind"] in ("str", "path", "output_path", "enum", "substeps"):
            return text
        raise HostFault(f"{knob['name']}: {text!r} is not JSON; write 0.5, [0, 1, 0] or true") from None


def main(arguments):
    """Carry out a script, or what is typed; return the exit code."""
    code, out, error = answer(["host", "spec"])
    if code:
        print(error, file=sys.stderr)
        return code
    host, typed = Host(json.loads(out)), not arguments
    lines = sys.stdin if typed else Path(arguments[0]).read_text(encoding="utf-8").splitlines()
    if typed and sys.stdin.isatty():
        print("mpm-nodes in a terminal; `help` lists the commands")
    for line in lines:
        try:
            if not host.do(line):
                break
        except HostFault as fault:
            print(fault, file=sys.stderr)
            if not typed:
                return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except HostFault as fault:
        sys.exit(str(fault))
