"""What buttons say: troubles with their cure, news in the status line, messages of the program in words of a window."""

from __future__ import annotations

import hou

from .nodes import PROBLEM, facts_of

WORDS = {
    "again": "press Cook or Cook Again from This Frame, not Continue",
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


class Trouble(Exception):
    """Something that the artist must be told; the text says what to do."""


def told(action):
    """Make a button of a function: troubles become a message window, without a window an error."""

    def button(cook):
        try:
            action(cook)
        except (Trouble, hou.Error, OSError) as error:
            text = error.instanceMessage() if isinstance(error, hou.Error) else str(error)
            try:
                trouble_of(cook, text)
            except hou.NodeError as shown:
                raise shown from error

    button.__doc__ = action.__doc__
    return button


def trouble_of(cook, text):
    """Show a trouble on its node and in a message window; without a window raise it.

    Raises:
        hou.NodeError: There are no windows.
    """
    cook.setUserData(PROBLEM, text)
    recook(cook)
    if not hou.isUIAvailable():
        raise hou.NodeError(text)
    hou.ui.displayMessage(text, severity=hou.severityType.Error, title="MPM Nodes")


def recook(node):
    """Cook a node again, so that it shows or loses its warning; what is wrong with it is asked for elsewhere."""
    try:
        node.cook(force=True)
    except hou.OperationFailed:
        pass


def filled(arguments, **values):
    """Return arguments of the program with their {placeholders} filled in."""
    return [values[text[1:-1]] if text.startswith("{") and text.endswith("}") else text for text in arguments]


def ending(cook, code, text):
    """Return what an exit code means, with what the program said."""
    codes = facts_of(cook)["program"]["exit_codes"]
    meaning = next((each["doc"] for each in codes if each["code"] == code), f"The program ended with code {code}.")
    return in_own_words(cook, f"{text}\n{meaning}".strip())


def in_own_words(cook, text):
    """Return a message of the program as it is said in a window."""
    for phrase in facts_of(cook)["program"]["wording"]:
        text = text.replace(phrase["says"], WORDS[phrase["action"]])
    return text


def say(text, severity=None):
    """Show news in the status line; without windows print them."""
    if hou.isUIAvailable():
        hou.ui.setStatusMessage(text, severity=severity or hou.severityType.Message)
    else:
        print(text)
