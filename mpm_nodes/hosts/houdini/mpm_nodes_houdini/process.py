"""The mpm-nodes program in a process of its own. Knows nothing of Houdini."""

from __future__ import annotations

import errno
import json
import os
import queue
import shlex
import signal
import subprocess
import threading

FOREIGN = ("PXR_PLUGINPATH_NAME", "LD_LIBRARY_PATH", "LD_PRELOAD")
"""Variables of Houdini's process that would put its libraries into the program's."""

PATIENCE = 30.0
"""Seconds that a stopped cook gets to end its substep before it is stopped hard."""


def command(text):
    """Return the program as an argument list: the given command, else MPM_NODES_PROGRAM, else mpm-nodes.

    The path of a file is taken whole, spaces included; else words are split at spaces outside quotes, and backslashes stay.
    """
    text = (text or os.environ.get("MPM_NODES_PROGRAM", "") or "mpm-nodes").strip()
    if os.path.isfile(text):
        return [text]
    words = shlex.shlex(text, posix=True)
    words.whitespace_split, words.commenters, words.escape = True, "", ""
    return list(words)


def installed(name):
    """Return the path of a program on the PATH; what lies in the working folder, where the scene lies, is not taken.

    Raises:
        FileNotFoundError: There is none.
    """
    if os.path.dirname(name):
        return name
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for ending in ("", ".exe") if os.name == "nt" else ("",):
            path = os.path.join(folder, name + ending)
            if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def environment():
    """Return the variables that the program gets: none of Houdini's libraries, and no settings of its Python (PYTHON...).

    It does not look for modules in the folder that it is started in.
    """
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN and not name.startswith("PYTHON")}
    return {**kept, "PYTHONSAFEPATH": "1"}


def call(arguments, timeout=120.0):
    """Run the program to its end; return (exit code, stdout, stderr).

    Raises:
        OSError: It cannot be started, or does not answer in time.
    """
    try:
        done = subprocess.run(
            [installed(arguments[0]), *arguments[1:]],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(errno.ETIMEDOUT, f"it did not answer within {timeout:g} seconds", arguments[0]) from error
    return done.returncode, done.stdout, done.stderr


def event_of(line):
    """Return the event that a line of the program's stdout holds, None where it holds something else."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


class Process:
    """A running cook: events from its stdout, text from its stderr."""

    def __init__(self, arguments):
        self.child = subprocess.Popen(
            [installed(arguments[0]), *arguments[1:]],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines = []
        self._events = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_text, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_events(self):
        for line in self.child.stdout:
            event = event_of(line)
            if event is None:
                self.lines.append(line.rstrip())
            else:
                self._events.put(event)
        self._events.put(None)

    def _read_text(self):
        for line in self.child.stderr:
            self.lines.append(line.rstrip())

    def events(self, interval=0.1):
        """Yield events as they come, and None every `interval` seconds without one; end with the process."""
        while True:
            try:
                event = self._events.get(timeout=interval)
            except queue.Empty:
                yield None
                continue
            if event is None:
                return
            yield event

    def pending(self):
        """Return the events that have come since the last call, without waiting."""
        found = []
        while not self._events.empty():
            event = self._events.get()
            found += [] if event is None else [event]
        return found

    def is_over(self):
        """Return whether the program has ended and all that it wrote has been read."""
        return self.child.poll() is not None and not any(reader.is_alive() for reader in self._readers)

    def ask_to_stop(self):
        """Ask the cook to stop after its substep, without waiting for that."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)

    def kill(self):
        """End the program at once."""
        if self.child.poll() is None:
            self.child.kill()

    def stop(self):
        """Ask the cook to stop after its substep; stop it hard when it does not."""
        if self.child.poll() is None:
            self.ask_to_stop()
            try:
                self.child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.child.kill()

    def finish(self):
        """Wait for the end; return (exit code, text that it printed for people)."""
        code = self.child.wait()
        for reader in self._readers:
            reader.join(5.0)
        for stream in (self.child.stdout, self.child.stderr):
            stream.close()
        return code, "\n".join(line for line in self.lines if line)
