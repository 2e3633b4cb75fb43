"""The command line in children: answers, and one cook at a time, whose events are kept for the pages that look."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes import children
from mpm_nodes.data import InputError, MpmNodesError

__all__ = ["WORDS", "Cook", "answer", "own_words"]

LONGEST_ANSWER = 120.0
"""Seconds that a command without a cook may take."""
PATIENCE = 5.0
"""Seconds from a stop until the child is ended: whole frames stay either way."""
MOST_EVENTS = 20_000
"""Events of a cook that are kept; of more, the oldest go."""
LAST_WORDS = 4_000
_numbers = itertools.count(1)

WORDS = {
    "again": "cook again with `Cook`",
    "cook": "press `Cook`",
    "resume": "press `Resume`",
    "folder": "",
    "frames": " with the first and last frame of the graph",
    "asked": "frames ",
    "limit": "",
    "start": "",
    "report": "; report it together with the graph file",
}
"""What the page says where the program's messages speak of its command line."""


def own_words(text: str, wording: Sequence[Mapping[str, str]]) -> str:
    """Return a message of the program in the words of the page."""
    for phrase in wording:
        text = text.replace(phrase["says"], WORDS[phrase["action"]])
    return text


def answer(words: Sequence[str], entry: str = "mpm_nodes.cli:work", given: str = "") -> str:
    """Run a command in a child and return what it prints.

    Args:
        words: Its arguments.
        entry: What is called with them.
        given: What is written to its standard input, which stays open.

    Raises:
        InputError: It says nothing on standard output; the message is what it said on the other.
    """
    begin = [children.NO_MARK, *words] if entry == "mpm_nodes.cli:work" else [*words]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with tempfile.TemporaryFile() as said, children.start(entry, begin, **streams, stderr=said) as child:
        clock = threading.Timer(LONGEST_ANSWER, child.kill)
        clock.start()
        try:
            assert child.stdin is not None and child.stdout is not None
            if given:
                child.stdin.write(given.encode() + b"\n")
                child.stdin.flush()
            text = child.stdout.read().decode("utf-8", "replace")
            child.wait()
        finally:
            clock.cancel()
        if not text.strip():
            said.seek(0)
            why = said.read()[-LAST_WORDS:].decode("utf-8", "replace").strip().removeprefix("mpm-nodes: error: ")
            raise InputError(why or f"the command ended without a word ({child.returncode})")
    return text


class Cook:
    """One run of the command line, in a thread that starts the child and waits for it: the child ends with that thread.

    Attributes:
        number: Which cook of this server it is, from 1.
        path: The graph's name in the project.
        events: What it has told, each with a number `n` that grows by one.
        ending: Called before it is over.
    """

    def __init__(
        self, path: str, words: Sequence[str], spec: Mapping[str, Any], ending: Callable[[Cook], None] | None = None
    ) -> None:
        self.number = next(_numbers)
        self.ending = ending
        self.path, self.spec, self.words = path, spec, list(words)
        self.events: list[dict[str, Any]] = []
        self.told, self.over = threading.Condition(), False
        self._count, self._child, self._asked = 0, None, 0
        self.thread = threading.Thread(target=self._run, name="cook", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Ask it to stop after its substep; asked again, or after `PATIENCE` seconds, it is ended."""
        self._asked += 1
        if self._asked > 1:
            self._signal(signal.SIGKILL)
            return
        self._signal(signal.SIGTERM)
        clock = threading.Timer(PATIENCE, self._signal, [signal.SIGKILL])
        clock.daemon = True
        clock.start()

    def end(self) -> None:
        """Stop it, and wait until it is over.

        Raises:
            InputError: It does not end.
        """
        self.stop()
        self.thread.join(2.0 * PATIENCE)
        if self.thread.is_alive():
            raise InputError(f"{self.path} does not stop; try again")

    def memory(self) -> int | None:
        """Return the memory that it holds now [bytes], None where that is not told (outside Linux)."""
        child = self._child
        if child is None or child.returncode is not None:
            return None
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return None

    def since(self, number: int, wait: float) -> list[dict[str, Any]]:
        """Return the events from a number on; where there are none yet, wait for some for `wait` seconds at most."""
        end = time.monotonic() + wait
        with self.told:
            while self._count <= number and not self.over and time.monotonic() < end:
                self.told.wait(end - time.monotonic())
            return [event for event in self.events if event["n"] >= number]

    def _run(self) -> None:
        code, last = None, ""
        streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        try:
            with tempfile.TemporaryFile() as said:
                begin = [children.NO_MARK, *self.words]
                with children.start("mpm_nodes.cli:work", begin, **streams, stderr=said, process_group=0) as child:
                    self._child = child
                    if self._asked:
                        self._signal(signal.SIGTERM)
                    for line in child.stdout or ():
                        with contextlib.suppress(ValueError, RecursionError):  # what others print in between
                            self._tell(json.loads(line))
                    code = child.wait()
                said.seek(0)
                last = said.read()[-LAST_WORDS:].decode("utf-8", "replace").strip()
        except OSError as error:
            last = f"the program cannot be started ({error.strerror or error})"
        finally:
            self._end(code, last)

    def _end(self, code: int | None, last: str) -> None:
        meant = None if code is None else children.meant(code)
        if meant is None and self._asked:
            meant = 3
        known = {each["code"]: each for each in self.spec["cook"]["exit_codes"]}
        meaning = known.get(meant, {"name": "defect", "doc": "The program was ended from outside."})
        if self.ending is not None:
            with contextlib.suppress(OSError, MpmNodesError):  # times that cannot be kept spoil no cook
                self.ending(self)
        self.over = True
        self._tell(
            {
                "event": "ended",
                "name": meaning["name"],
                "message": meaning["doc"].replace("on stderr", "in its messages"),
                "said": last if meant else "",
            }
        )

    def _tell(self, event: Any) -> None:
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            return
        for key in ("message", "said"):
            if isinstance(event.get(key), str):
                event[key] = own_words(event[key], self.spec["cook"]["wording"])
        with self.told:
            event["n"] = self._count
            self._count += 1
            self.events.append(event)
            del self.events[:-MOST_EVENTS]
            self.told.notify_all()

    def _signal(self, number: int) -> None:
        child = self._child
        if child is not None and child.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number) if number == signal.SIGKILL else child.send_signal(number)
