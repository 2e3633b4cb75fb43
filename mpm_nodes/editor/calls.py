"""What the page may ask for: each public name of `CALLS` is a call with a JSON object, which it answers with JSON or bytes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.editor import program
from mpm_nodes.editor.curves import CurveReader
from mpm_nodes.editor.drafts import Drafts
from mpm_nodes.editor.frames import FrameReader
from mpm_nodes.editor.previews import PREFIX, preview, preview_of, previews
from mpm_nodes.editor.project import Project, check_graph, samples
from mpm_nodes.editor.quick import FOLDER, quick_graph, quick_setups
from mpm_nodes.editor.times import keep_times, kept_times, times_of
from mpm_nodes.graph.document.entries import pretty
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.records import read_manifest
from mpm_nodes.graph.revisions.revision import list_revisions
from mpm_nodes.packaged_samples import samples_folder

__all__ = ["CALLS", "Calls", "Refused"]

LONGEST_WAIT = 20.0
"""Seconds that a call for events waits for one."""
MOST_POINTS = 5_000_000
COOK_MODES = ("new", "resume", "again")


class Refused(Exception):
    """A call that is not carried out.

    Attributes:
        status: The status of HTTP that says why.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise Refused(400, f"{name}: is a text")
    return value


def _is_draft(given: Any) -> bool:
    if not isinstance(given, dict) or not all(isinstance(given.get(name), str) for name in ("text", "digest")):
        return False
    made = given.get("time", 0)
    return given["text"] != "" and isinstance(made, int | float) and 0 <= made < 2**53


def _whole(given: dict[str, Any], name: str, least: int, most: int) -> int:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(400, f"{name}: is a whole number from {least} to {most}")
    return value


class Calls:
    """The calls on one project; several pages may call at once.

    Attributes:
        project: The files.
        graph: The graph that the pages open first, "" for none.
    """

    def __init__(self, root: Path, graph: str) -> None:
        self.project, self.graph = Project(root), graph
        self.reader, self.curve_reader, self.drafts = FrameReader(), CurveReader(), Drafts(self.project)
        self._cook: program.Cook | None = None
        self._starting = threading.Lock()

    @functools.cached_property
    def known(self) -> dict[str, Any]:
        """The specification, as the command line prints it."""
        return json.loads(program.answer(["host", "spec"]))

    @functools.cached_property
    def told_samples(self) -> list[dict[str, str]]:
        """Name, line and topic of the packaged samples."""
        return json.loads(program.answer([], "mpm_nodes.commands.sample:tell_samples"))

    def answer(self, name: str, given: dict[str, Any]) -> Any:
        """Carry out a call.

        Raises:
            Refused: There is no such call, or it is malformed.
            MpmNodesError: It cannot be done; the message says why.
        """
        if name not in CALLS:
            raise Refused(404, "there is no such call")
        return getattr(self, name)(given)

    def warm(self) -> None:
        """Begin what the page will ask first, while the browser starts."""

        def begun(work: Callable[[], Any]) -> None:
            with contextlib.suppress(MpmNodesError, OSError):  # told when it is asked for
                work()

        for work in (lambda: self.known, lambda: self.told_samples, lambda: self.reader.ask(what="warm")):
            threading.Thread(target=begun, args=[work], name="warm", daemon=True).start()

    def close(self) -> None:
        """End the cook and the reader of frames."""
        if self._cook is not None and not self._cook.over:
            self._cook.end()
        self.reader.close()
        self.curve_reader.close()

    # ---------------------------------------------------------------- what there is
    def hello(self, given: dict[str, Any]) -> Any:
        """Return the folder, its graph files, the graph to open first, and the packaged samples with a line on each."""
        here = samples()
        drawn = {path.stem for path in samples_folder().glob("pictures/*.jpg")}
        demo = {"name": "demo", "doc": "Melted cheese drapes over a trivet: the demo shot.", "topic": "begin here"}
        offered = [
            {**each, "picture": each["name"] in drawn, "cooked": each["name"] in previews()}
            for each in (demo, *self.told_samples)
            if each["name"] in here
        ]
        return {
            "root": str(self.project.root),
            "graph": self.graph,
            "graphs": self.project.graphs(),
            "others": self.project.others(),
            "samples": offered,
            "quick": quick_setups(),
            "drafts": self.drafts.lost(),
        }

    def spec(self, given: dict[str, Any]) -> Any:
        """Return the specification."""
        return self.known

    def picture(self, given: dict[str, Any]) -> bytes:
        """Return the picture of a packaged sample, or with `of` "quick" of a quick setup."""
        name, quick = _text(given, "name"), given.get("of") == "quick"
        path = (FOLDER if quick else samples_folder() / "pictures") / f"{name}.jpg"
        if name not in ({each["name"] for each in quick_setups()} if quick else samples()) or not path.is_file():
            raise Refused(404, "there is no such picture")
        return path.read_bytes()

    # ---------------------------------------------------------------- files
    def open(self, given: dict[str, Any]) -> Any:
        """Return name, text and digest of a graph file."""
        path = self.project.name(_text(given, "path"))
        text, digest = self.project.read(path)
        return {"path": path, "text": text, "digest": digest}

    def sample(self, given: dict[str, Any]) -> Any:
        """Copy a sample into the project, where it is not there yet, and open it."""
        return self.open({"path": self.project.take_sample(_text(given, "name"))})

    def quick(self, given: dict[str, Any]) -> Any:
        """Write a quick setup into the project, under a name that is free, and open it."""
        name = _text(given, "name")
        text = pretty(quick_graph(name)) + "\n"
        free = next(each for each in self._names_like(name) if not self.project.taken(each))
        self.project.save(free, text, "")
        return self.open({"path": free})

    @staticmethod
    def _names_like(name: str) -> Iterator[str]:
        yield f"{name}.json"
        yield from (f"{name}_{number}.json" for number in itertools.count(2))

    def digest(self, given: dict[str, Any]) -> Any:
        """Return the digest of a file as it is now."""
        return {"digest": self.project.digest(_text(given, "path"))}

    def save(self, given: dict[str, Any]) -> Any:
        """Write a graph file that is still as it was read."""
        return {"digest": self.project.save(_text(given, "path"), _text(given, "text"), _text(given, "digest"))}

    def draft(self, given: dict[str, Any]) -> Any:
        """Keep `drafts` of edits that are not saved in place of those that are there. Without them, return those."""
        path, drafts = _text(given, "path"), given.get("drafts")
        if drafts is None:
            return {"drafts": self.drafts.read(path)}
        if not isinstance(drafts, list) or not all(map(_is_draft, drafts)):
            raise Refused(400, "drafts: each is an object with a text and a digest, and may have a time")
        self.drafts.keep(path, drafts)
        return {}

    # ---------------------------------------------------------------- the command line
    def check(self, given: dict[str, Any]) -> Any:
        """Return problems, warnings and needs of a text that need not be saved."""
        path = self.project.name(_text(given, "path"))
        document = check_graph(_text(given, "text"), path)
        folder = str((self.project.root / path).parent)
        found = json.loads(program.answer([folder], "mpm_nodes.commands.validate:check_here", json.dumps(document)))
        for each in (*found["problems"], *found.get("warnings", ())):
            for key in ("message", "cure", "allowed"):
                if isinstance(each.get(key), str):
                    each[key] = program.own_words(each[key], self.known["cook"]["wording"])
        return found

    def upgrade(self, given: dict[str, Any]) -> Any:
        """Return the document of a file with every node in its newest version, as the command line prints it."""
        path = self.project.name(_text(given, "path"))
        self.project.read(path)
        return {"document": json.loads(program.answer(["upgrade", str(self.project.root / path)]))}

    def cook(self, given: dict[str, Any]) -> Any:
        """Start a cook of a graph file as it is on disk; with `replace` in place of the one that runs, which is stopped first."""
        path, mode = self.project.name(_text(given, "path")), given.get("mode", "new")
        if mode not in COOK_MODES:
            raise Refused(400, f"mode: is one of {', '.join(COOK_MODES)}")
        self.project.read(path)
        out, words = self.project.cache(path), self.known["cook"]
        filled = {"graph": str(self.project.root / path), "out": str(out), "revision": _text({"of": "", **given}, "of")}
        if filled["revision"] and self.project.revision(path, filled["revision"]).parent != out:
            raise InputError(f"{path}: a farm has cooked this wedge; cook it here before you go on from one of its frames")
        wanted = [*words["cook"], *(words["resume"] if mode == "resume" else ())]
        if given.get("to") is not None:
            filled["node"] = _text(given, "to")
            if not re.fullmatch(self.known["name_pattern"], filled["node"]):
                raise Refused(400, "to: is the name of a node")
            wanted += words["to"]
        if mode == "again":
            wanted += words["again"]
            frame = _whole(given, "frame", -1_000_000, 10_000_000)
            filled |= {"frame": str(frame), "revision": self.project.holder(path, filled["revision"], frame)}
        with self._starting:
            if self._cook is not None and not self._cook.over:
                if given.get("replace") is not True:
                    raise Refused(409, f"{self._cook.path} is cooking; stop it first")
                self._cook.end()
            self._cook = program.Cook(path, [word.format(**filled) for word in wanted], self.known, self._keep_times)
        return {"cooking": path}

    def _keep_times(self, cook: program.Cook) -> None:
        planned = next((each for each in cook.events if each["event"] == "plan" and each.get("out")), None)
        if planned is not None:
            keep_times(Folder(self.project.cache(cook.path)), Path(planned["out"]).name, times_of(cook.events))

    def stop(self, given: dict[str, Any]) -> Any:
        """Ask the cook to stop; asked twice it is ended."""
        if self._cook is not None and not self._cook.over:
            self._cook.stop()
        return {}

    def events(self, given: dict[str, Any]) -> Any:
        """Return the events of the newest cook from a number on; wait for the next one where `wait` is true."""
        number, cook = _whole(given, "since", 0, 2**53), self._cook
        if cook is None:
            return {"cook": 0, "path": "", "over": True, "memory": None, "events": []}
        same = given.get("cook") == cook.number
        found = cook.since(number if same else 0, LONGEST_WAIT if same and given.get("wait") is True else 0.0)
        return {"cook": cook.number, "path": cook.path, "over": cook.over, "memory": cook.memory(), "events": found}

    # ---------------------------------------------------------------- caches
    def revisions(self, given: dict[str, Any]) -> Any:
        """Return the names of the cooks of a graph file, oldest first, and after them that of its packaged preview."""
        path = _text(given, "path")
        own = [folder.name for folder in list_revisions(self.project.cooks(path))]
        with contextlib.suppress(MpmNodesError):  # a file that was removed still has its cooks
            own += preview_of(json.loads(self.project.read(path)[0]))
        return {"revisions": own}

    def cooked(self, given: dict[str, Any]) -> Any:
        """Return the graph that a revision was cooked from, every knob written out; null where its cook has not begun to write."""
        if _text(given, "revision").startswith(PREFIX):
            return {"graph": None}
        manifest = read_manifest(Folder(self._folder(given)))
        return {"graph": None if manifest is None else manifest["graph"]}

    def times(self, given: dict[str, Any]) -> Any:
        """Return the seconds that nodes and stages of a revision took, where this server's cooks have kept them."""
        folder = self._folder(given)
        return kept_times(Folder(folder.parent), folder.name)

    def curves(self, given: dict[str, Any]) -> Any:
        """Return the panels of a revision from a frame on; see `curves` for their form."""
        folder = self._folder(given)
        first = _whole({"first": -1_000_000, **given}, "first", -1_000_000, 10_000_000)
        return self.curve_reader.curves(folder, first)

    def frame(self, given: dict[str, Any]) -> bytes:
        """Return a frame of a revision, the last one without `frame`; see `frames` for its form."""
        number = None if given.get("frame") is None else self._frame_number(given)
        most = _whole({"most": 400_000, **given}, "most", 1, MOST_POINTS)
        layers = given.get("layers")
        if layers is not None and not (isinstance(layers, list) and all(isinstance(each, str) for each in layers)):
            raise Refused(400, "layers: is a list of texts")
        attribute = _text({"attribute": "", **given}, "attribute")[:100]
        if _text(given, "revision").startswith(PREFIX):
            return preview(given["revision"]).frame(number, layers, attribute)
        return self.reader.ask(
            what="frame", folder=self._revision(given), frame=number, layers=layers, attribute=attribute, most=most
        )

    def particle(self, given: dict[str, Any]) -> Any:
        """Return all values of one point that a frame was sent with."""
        layer, path, index = _text(given, "layer"), _text(given, "prim"), _whole(given, "index", 0, 2**31)
        found = {"layer": layer, "path": path, "index": index, "frame": self._frame_number(given)}
        return self.reader.json(what="particle", folder=self._revision(given), **found)

    def history(self, given: dict[str, Any]) -> Any:
        """Return place and value of a particle from a frame on, as far as is read in a moment, and where to go on."""
        found = {"layer": _text(given, "layer"), "path": _text(given, "prim"), "attribute": _text(given, "attribute")[:100]}
        ident, begin = _whole(given, "id", 0, 2**53), _whole(given, "begin", -1_000_000, 10_000_000)
        return self.reader.json(what="history", folder=self._revision(given), ident=ident, begin=begin, **found)

    def _folder(self, given: dict[str, Any]) -> Path:
        if _text(given, "revision").startswith(PREFIX):
            raise InputError("a packaged preview holds neither particles nor curves; cook the graph for them")
        return self.project.revision(_text(given, "path"), given["revision"])

    def _revision(self, given: dict[str, Any]) -> str:
        return str(self._folder(given))

    def _frame_number(self, given: dict[str, Any]) -> int:
        return _whole(given, "frame", -1_000_000, 10_000_000)


CALLS = frozenset(
    "hello spec picture open sample quick digest save draft check upgrade cook stop events".split()
    + "revisions cooked times curves frame particle history".split()
)
"""Names of calls; nothing else of `Calls` can be reached from outside."""
