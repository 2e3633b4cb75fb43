"""Reads DialogScripts: the grammar as public expanded assets use it, no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

GROUPS = ("group", "groupsimple", "groupcollapsible", "groupradio", "multiparm", "multiscroll", "multiswitcher")
MULTIPARMS = ("multiparm", "multiscroll", "multiswitcher")
MENUS = ("menu", "menureplace", "menutoggle", "menumini")
FLAGS = ("nolabel", "joinnext", "invisible")
TYPES: dict[str, int | None] = {
    **dict.fromkeys(
        (
            "toggle",
            "ordinal",
            "separator",
            "button",
            "label",
            "image",
            "oppath",
            "file",
            "ramp_flt",
            "directory",
            "angle",
            "oplist",
            "ramp_rgb",
            "log",
            "intlog",
            "data",
            "geometry",
            "buttonstrip",
            "iconstrip",
        ),
        1,
    ),
    **dict.fromkeys(("vector2", "intvector2", "int_minmax", "float_minmax"), 2),
    **dict.fromkeys(("vector", "color", "direction", "intvector"), 3),
    **dict.fromkeys(("color4", "vector4"), 4),
    **dict.fromkeys(("float", "integer", "string"), None),
}
"""Known types with their number of components; None where any number is allowed."""

_TOKEN = re.compile(r'\s+|#[^\n]*|"(?P<text>(?:[^"\\]|\\.)*)"|(?P<mark>[{}\[\]])|(?P<word>[^\s{}\[\]"]+)', re.DOTALL)
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?!?")
_TERM = re.compile(r"\S+\s+(==|!=|<=|>=|<|>|=~|!~)\s+\S+")


class DialogScriptError(Exception):
    """A DialogScript does not follow the grammar; the message holds the line."""


@dataclass
class ParsedParm:
    """A parameter: what a checker and a host in tests need of it."""

    name: str
    label: str
    type: str
    flags: set[str] = field(default_factory=set)
    size: int = 1
    defaults: list[tuple[str, str]] = field(default_factory=list)
    help: str = ""
    conditions: dict[str, str] = field(default_factory=dict)
    range: tuple[str, str] | None = None
    menu: list[tuple[str, str]] | None = None
    menu_is_code: bool = False
    tags: dict[str, str] = field(default_factory=dict)
    inside: str = ""


@dataclass
class ParsedGroup:
    """A tab or folder."""

    kind: str
    name: str
    label: str
    conditions: dict[str, str] = field(default_factory=dict)


@dataclass
class ParsedDialog:
    """A whole DialogScript; parameters are listed flat, `inside` names the multiparm that holds one."""

    name: str = ""
    script: str = ""
    label: str = ""
    input_labels: dict[int, str] = field(default_factory=dict)
    output_labels: dict[int, str] = field(default_factory=dict)
    parms: list[ParsedParm] = field(default_factory=list)
    groups: list[ParsedGroup] = field(default_factory=list)


def names_of(condition: str) -> set[str]:
    """Return the parameter names in a hide or disable condition."""
    terms = re.findall(r"(\S+)\s+(?:==|!=|<=|>=|<|>|=~|!~)", condition)
    return {term.strip("{}") for term in terms if not re.search(r"\(.*\)", term)}


def parse(text: str) -> ParsedDialog:
    """Parse a DialogScript.

    Raises:
        DialogScriptError: At the first thing that the grammar does not know.
    """
    return _Parser(text).dialog()


def is_balanced(text: str) -> bool:
    """Return whether every quoted text of a DialogScript ends and every { has its }, without which no reader can go on."""
    depth = 0
    try:
        for kind, value, _ in _Parser(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)).tokens:
            depth += {"{": 1, "}": -1}.get(value, 0) if kind == "mark" else 0
            if depth < 0:
                return False
    except DialogScriptError:
        return False
    return depth == 0


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = list(self._tokens(text))
        self.at = 0
        self.result = ParsedDialog()

    @staticmethod
    def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            line = text.count("\n", 0, position) + 1
            if match is None:
                raise DialogScriptError(f"line {line}: a quoted text does not end")
            position = match.end()
            if match["text"] is not None:
                unescaped = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], match["text"], flags=re.DOTALL)
                yield "text", unescaped, line
            elif match["mark"] or match["word"]:
                yield "mark" if match["mark"] else "word", match["mark"] or match["word"], line

    # ------------------------------------------------------------ tokens
    def fail(self, message: str) -> None:
        line = self.tokens[min(self.at, len(self.tokens) - 1)][2] if self.tokens else 1
        raise DialogScriptError(f"line {line}: {message}")

    def peek(self) -> str:
        """Return the next token when it is a word or a mark, else ""."""
        return self.tokens[self.at][1] if self.at < len(self.tokens) and self.tokens[self.at][0] != "text" else ""

    def take(self, *expected: str) -> str:
        if self.at >= len(self.tokens):
            self.fail("the script ends too early; a } is missing")
        kind, value, _ = self.tokens[self.at]
        if expected and (kind == "text" or value not in expected):
            self.fail(f"{value!r} stands where {' or '.join(expected)} belongs")
        self.at += 1
        return value

    def value(self) -> str:
        """Take a quoted text or a bare word."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "mark":
            self.fail(f"{self.tokens[self.at][1]!r} stands where a text belongs")
        return self.take()

    def number(self) -> int:
        text = self.value()
        if not text.isdigit():
            self.fail(f"{text!r} is not a whole number")
        return int(text)

    def block(self) -> list[str]:
        """Take a { ... } of texts."""
        self.take("{")
        values = []
        while self.peek() != "}":
            values.append(self.value())
        self.take("}")
        return values

    # ------------------------------------------------------------ grammar
    def dialog(self) -> ParsedDialog:
        self.take("{")
        for key in ("name", "script", "label"):
            self.take(key)
            setattr(self.result, key, self.value())
        if self.peek() == "help":
            self.take()
            self.block()
        while self.peek() != "}":
            self.item("")
        self.take("}")
        if self.at < len(self.tokens):
            self.fail("something follows the last }")
        return self.result

    def item(self, inside: str) -> None:
        keyword = self.take()
        if keyword == "parm":
            self.parm(inside)
        elif keyword in GROUPS:
            self.group(keyword, inside)
        elif keyword in ("inputlabel", "outputlabel") and not inside:
            labels = self.result.input_labels if keyword == "inputlabel" else self.result.output_labels
            number = self.number()
            labels[number] = self.value()
        elif keyword == "parmtag":
            self.pair()
        elif keyword == "bindhandle":
            for _ in range(5):
                self.value()
        else:
            self.at -= 1
            self.fail(f"{keyword!r} is unknown here")

    def pair(self) -> tuple[str, str]:
        values = self.block()
        if len(values) != 2:
            self.fail("a tag has a name and a value")
        return values[0], values[1]

    def head(self, *keys: str) -> list[str]:
        values = []
        for key in keys:
            self.take(key)
            values.append(self.value())
        return values

    def group(self, kind: str, inside: str) -> None:
        self.take("{")
        group = ParsedGroup(kind, *self.head("name", "label"))
        self.result.groups.append(group)
        holder = group.name if kind in MULTIPARMS else inside
        while self.peek() != "}":
            keyword = self.peek()
            if keyword in ("hidewhen", "disablewhen", "hidewhentab", "disablewhentab"):
                self.take()
                group.conditions[keyword] = self.condition()
            elif keyword in ("invisibletab", "tabbreak"):
                self.take()
            elif keyword == "grouptag":
                self.take()
                self.pair()
            elif keyword == "default" and kind in MULTIPARMS:
                self.take()
                self.number()
            else:
                self.item(holder)
        self.take("}")

    def condition(self) -> str:
        text = self.value()
        blocks = re.fullmatch(r"\s*(\{[^{}]*\}\s*)+", text)
        terms = [term for part in re.findall(r"\{([^{}]*)\}", text) for term in part.split("  ") if term.strip()]
        if blocks is None or not all(re.fullmatch(rf"\s*({_TERM.pattern}\s*)+", term) for term in terms):
            self.fail(f"{text!r} is not a condition")
        return text

    def parm(self, inside: str) -> None:
        self.take("{")
        parm = ParsedParm(*self.head("name", "label", "type"), inside=inside)
        if parm.type not in TYPES:
            self.fail(f"{parm.name}: type {parm.type!r} is unknown")
        while self.peek() != "}":
            self.property(parm, self.take())
        self.take("}")
        self.result.parms.append(parm)

    def property(self, parm: ParsedParm, keyword: str) -> None:
        if keyword in FLAGS:
            parm.flags.add(keyword)
        elif keyword == "size":
            parm.size = self.number()
        elif keyword == "default":
            parm.defaults = self.defaults()
        elif keyword == "help":
            parm.help = self.value()
        elif keyword in ("hidewhen", "disablewhen"):
            parm.conditions[keyword] = self.condition()
        elif keyword == "range":
            ends = self.block()
            if len(ends) != 2 or not all(_NUMBER.fullmatch(end) for end in ends):
                self.fail(f"{parm.name}: a range has two numbers")
            parm.range = (ends[0], ends[1])
        elif keyword in MENUS:
            self.menu(parm)
        elif keyword == "export":
            self.value()
        elif keyword == "parmtag":
            name, value = self.pair()
            parm.tags[name] = value
        else:
            self.at -= 1
            self.fail(f"{parm.name}: {keyword!r} is unknown here")

    def defaults(self) -> list[tuple[str, str]]:
        """Take defaults: (value, "") or (expression, its language)."""
        self.take("{")
        values = []
        while self.peek() != "}":
            if self.peek() == "[":
                self.take()
                values.append((self.value(), self.take("python", "hscript-expr")))
                self.take("]")
            else:
                values.append((self.value(), ""))
        self.take("}")
        return values

    def menu(self, parm: ParsedParm) -> None:
        if self.peek() == "usetokenvalue":
            self.take()
        self.take("{")
        items: list[str] = []
        while self.peek() != "}":
            if self.peek() == "[":
                parm.menu_is_code = True
                self.take()
                self.value()
                self.take("]")
            elif self.peek() == "language":
                self.take()
                self.value()
            else:
                items.append(self.value())
        self.take("}")
        if len(items) % 2:
            self.fail(f"{parm.name}: a menu has pairs of token and label")
        parm.menu = list(zip(items[::2], items[1::2], strict=True))
