"""Checks Houdini assets, expanded or packed, against the rules that hundreds of public ones follow; it needs no Houdini.

An error is what no shipped asset has. What shipped ones have, and load with, is a warning: carriage returns, sections that are left
out, conditions on parameters that are gone, words of other tables, Python 2.

What Houdini itself makes of an asset that passes is not known here: nobody has loaded ours yet.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
import xml.etree.ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mpm_nodes.data import InputError
from mpm_nodes.hosts.houdini.sections import TYPE_PROPERTIES, encoded
from tests.houdini_assets import dialog_script, reading

ENDINGS = (".hda", ".otl")
MARKER = "houdini.hdalibrary"
INDEX_KEYS = (
    "Operator",
    "Label",
    "Path",
    "Icon",
    "Table",
    "License",
    "Extra",
    "User",
    "Inputs",
    "Subnet",
    "Python",
    "Empty",
    "Modified",
)
TABLES = ("Sop", "Object", "Driver", "Top", "Lop", "Cop2", "Dop", "Vop", "Shop")
PYTHON_FILES = ("PythonCook", "PythonModule", "OnCreated", "OnLoaded", "OnUpdated", "OnDeleted", "OnInputChanged", "OnNameChanged")
ALWAYS = ("DialogScript", "CreateScript", "TypePropertiesOptions", "Help", "Tools.shelf", "ExtraFileOptions")
LEFT_OUT = ("Help", "Tools.shelf", "ExtraFileOptions")
"""Sections that shipped assets do without."""
TEXTS = (*ALWAYS, *PYTHON_FILES, "INDEX__SECTION", "Sections.list", "FunctionName", "IconSVG", "Version")
PYTHON_2 = ("multiple exception types must be parenthesized", "Missing parentheses in call to", "leading zeros in decimal integer")
NETWORK = ("Contents.gz", "Contents.dir")


@dataclass(frozen=True)
class AssetFault:
    """Something that is wrong with an asset.

    Attributes:
        place: File.
        message: What is wrong and what is expected.
        is_error: False for what is known to load all the same.
    """

    place: str
    message: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.place}: {'' if self.is_error else 'warning: '}{self.message}"


def check_folder(folder: Path) -> tuple[list[Path], list[AssetFault]]:
    """Check every asset in a folder, or the folder or packed file itself; return the assets and what is wrong with them.

    Raises:
        InputError: There is no asset, or a packed one is damaged.
    """
    alone = folder.suffix in ENDINGS and folder.exists()
    assets = [folder] if alone else sorted(path for ending in ENDINGS for path in folder.rglob(f"*{ending}"))
    if not assets:
        raise InputError(f"{folder}: holds no asset; give a folder or a file NAME.hda, or a folder with such in it")
    return assets, [finding for asset in assets for finding in (check_asset if asset.is_dir() else check_packed)(asset)]


def check_packed(asset: Path) -> list[AssetFault]:
    """Return everything that is wrong with one packed asset: it is expanded into a folder that is thrown away.

    Raises:
        InputError: It is damaged.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for path, raw in reading.expand(asset.read_bytes(), str(asset)).items():
            target = Path(scratch) / path
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(raw)
        return [replace(found, place=found.place.replace(scratch, str(asset), 1)) for found in check_asset(Path(scratch))]


def check_asset(asset: Path) -> list[AssetFault]:
    """Return everything that is wrong with one expanded asset."""
    findings = list(_text_problems(asset))
    marker = asset / MARKER
    if not marker.is_file() or marker.stat().st_size:
        findings.append(AssetFault(str(marker), "must be there and be empty"))
    records, problems = _index(asset / "INDEX__SECTION")
    findings += problems
    expected = {"INDEX__SECTION": "INDEX_SECTION", MARKER: MARKER, **{encoded(_type_of(r)): _type_of(r) for r in records}}
    findings += _listed(asset, expected)
    for record in records:
        folder = asset / encoded(_type_of(record))
        if folder.is_dir():
            findings += _operator(folder, record)
        else:
            findings.append(AssetFault(str(folder), f"is missing; the index names {_type_of(record)}"))
    return findings


def _text_problems(asset: Path) -> Iterator[AssetFault]:
    for path in sorted(asset.rglob("*")):
        if path.is_file() and (path.name in TEXTS or path.suffix == ".svg"):
            raw = path.read_bytes()
            if b"\r" in raw:
                yield AssetFault(str(path), "has carriage returns; lines end with a line feed alone", is_error=False)
            try:
                raw.decode("utf-8")
            except UnicodeDecodeError:
                yield AssetFault(str(path), "is not UTF-8")


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""


# ---------------------------------------------------------------- index and lists
def _type_of(record: dict[str, str]) -> str:
    """Return the operator with its table: "a::b::1.0" becomes "a::Sop/b::1.0"."""
    parts = record.get("Operator", "").split("::")
    versioned = len(parts) > 1 and re.fullmatch(r"[\d.]+", parts[-1]) is not None
    at = len(parts) - (2 if versioned else 1)
    return "::".join([*parts[:at], f"{record.get('Table', '')}/{parts[at]}", *parts[at + 1 :]])


def _index(path: Path) -> tuple[list[dict[str, str]], list[AssetFault]]:
    text = _text(path)
    if not text:
        return [], [AssetFault(str(path), "is missing or empty")]
    findings, records = [], []
    if not text.endswith("\n\n"):
        findings.append(AssetFault(str(path), "must end each record with a blank line"))
    for block in re.split(r"\n\n+", text.strip("\n")):
        record = {}
        for line in block.split("\n"):
            key, colon, value = line.partition(":")
            if not colon or (len(line) < 14 and value.strip()) or line[:14] != f"{key + ':':14}"[: len(line)]:
                findings.append(AssetFault(str(path), f"line {line!r} is not a key padded to 14 characters and a value"))
            record[key] = value.strip()
        findings += [AssetFault(str(path), message, "of another operator" not in message) for message in _record_problems(record)]
        records.append(record)
    return records, findings


def _record_problems(record: dict[str, str]) -> Iterator[str]:
    keys = [key for key in record if key != "Outputs"]
    if keys != list(INDEX_KEYS):
        yield f"keys are {', '.join(keys)}; they must be {', '.join(INDEX_KEYS)}"
        return
    operator, kind = record["Operator"], _type_of(record)
    if not re.fullmatch(r"(?:[\w.]+::)?\w[\w.]*(?:::\d[\d.]*)?", operator):
        yield f"Operator {operator} is not [namespace::]name[::version]; a version has digits and dots only"
    if record["Path"] != f"oplib:/{kind}?{kind}":
        yield f"Path is {record['Path']}; it must be oplib:/{kind}?{kind}"
    if record["Table"] not in TABLES:
        yield f"Table {record['Table']} is unknown; known are {', '.join(TABLES)}"
    span = re.fullmatch(r"(\d+) to (\d+)", record["Inputs"])
    if span is None or int(span[1]) > int(span[2]):
        yield f"Inputs are {record['Inputs']}; write MIN to MAX"
    for key in ("Subnet", "Python", "Empty"):
        if record[key] not in ("true", "false"):
            yield f"{key} is {record[key]}; it must be true or false"
    if record["Python"] == "true" == record["Subnet"]:
        yield "Subnet must be false: a Python asset has no network"
    if record["Empty"] != "false":
        yield "Empty must be false"
    if record["Icon"].startswith("opdef:") and not record["Icon"].startswith(f"opdef:/{kind}?"):
        yield f"Icon {record['Icon']} is of another operator; write opdef:/{kind}?SECTION"


def _listed(folder: Path, expected: dict[str, str] | None) -> Iterator[AssetFault]:
    """Check a Sections.list against the files beside it."""
    path = folder / "Sections.list"
    lines = _text(path).split("\n")
    if lines[0] != '""':
        yield AssetFault(str(path), 'must begin with a line ""')
        return
    entries: dict[str, str] = {}
    for line in lines[1:]:
        match = re.fullmatch(r'("[^"]+"|\S+)\t("[^"]+"|\S+)', line)
        if match:
            entries[match[1].strip('"')] = match[2].strip('"')
        elif line:
            yield AssetFault(str(path), f"line {line!r} is not FILE, a tab, SECTION; names with spaces are quoted")
    there = {each.name for each in folder.iterdir()} - {"Sections.list"}
    for name in sorted(there - entries.keys() - set(NETWORK)):
        yield AssetFault(str(path), f"does not list {name}, which lies there", is_error=False)
    for name in sorted(entries.keys() - there - set(NETWORK)):
        yield AssetFault(str(path), f"lists {name}, which is not there")
    for name, section in sorted(entries.items()):
        if name != encoded(section) and name not in NETWORK and name not in ("INDEX__SECTION", MARKER):
            yield AssetFault(str(path), f"calls the file of {section} {name}; its name must be {encoded(section)}")
    if expected is not None:
        for name in sorted(entries.keys() ^ expected.keys()):
            yield AssetFault(str(path), f"{name} {'has no record in the index' if name in entries else 'is not listed'}")


# ---------------------------------------------------------------- one operator
def _operator(folder: Path, record: dict[str, str]) -> Iterator[AssetFault]:
    yield from _listed(folder, None)
    is_python = record.get("Python") == "true"
    there = {each.name for each in folder.iterdir()}
    for name in (*ALWAYS, *(("PythonCook", "FunctionName") if is_python else ())):
        if name not in there:
            yield AssetFault(str(folder / name), "is missing", is_error=name not in LEFT_OUT)
    if is_python and there & set(NETWORK):
        yield AssetFault(str(folder), "holds Contents; a Python asset has no network")
    function = folder / "FunctionName"
    if is_python and function.is_file() and _text(function) != record["Operator"]:
        yield AssetFault(str(function), f"must hold {record['Operator']} and no line feed", is_error=False)
    yield from _dialog(folder / "DialogScript", record)
    yield from _properties(folder / "TypePropertiesOptions")
    yield from _options(folder / "ExtraFileOptions", there)
    yield from _shelf(folder / "Tools.shelf")
    yield from _create_script(folder / "CreateScript")
    icon = record.get("Icon", "")
    if icon.startswith("opdef:") and encoded(icon.partition("?")[2]) not in there:
        yield AssetFault(str(folder), f"has no section {icon.partition('?')[2]}, which the index names as its icon", is_error=False)
    for path in [folder / "IconSVG", *sorted(folder.glob("*.svg"))]:
        yield from _xml(path)
    for name in PYTHON_FILES:
        if name in there:
            yield from _python(folder / name)


def _dialog(path: Path, record: dict[str, str]) -> Iterator[AssetFault]:
    if not path.is_file():
        return
    try:
        dialog = dialog_script.parse(_text(path))
    except dialog_script.DialogScriptError as error:
        said = f"{error}; the rest of it is not checked"
        yield AssetFault(str(path), said, is_error=not dialog_script.is_balanced(_text(path)))
        return
    if dialog.name != record["Operator"]:
        yield AssetFault(str(path), f"is named {dialog.name}, the operator {record['Operator']}", is_error=False)
    most = re.fullmatch(r"\d+ to (\d+)", record.get("Inputs", ""))
    for number in dialog.input_labels:
        if most and not 1 <= number <= int(most[1]):
            yield AssetFault(str(path), f"labels input {number}; the index allows {most[1]}", is_error=False)
    names = [name for parm in dialog.parms for name in component_names(parm)]
    known = {*names, *(parm.name for parm in dialog.parms), *(group.name for group in dialog.groups)}
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield AssetFault(str(path), f"has two parameters {name}")
    for parm in dialog.parms:
        for message, is_error in _parm_problems(parm):
            yield AssetFault(str(path), f"{parm.name}: {message}", is_error)
    for owner in (*dialog.parms, *dialog.groups):
        for keyword, condition in owner.conditions.items():
            for name in sorted(dialog_script.names_of(condition) - known):
                yield AssetFault(str(path), f"{owner.name}: {keyword} names {name}, which is not a parameter", is_error=False)


def component_names(parm: dialog_script.ParsedParm) -> list[str]:
    """Return the names of a parameter's components: x, y, z, w for vectors, numbers else."""
    if parm.size == 1:
        return [parm.name]
    ends = {"color": "rgba", "color4": "rgba", "intvector2": "xy"}.get(parm.type, "xyzw" if parm.type.startswith("vec") else "")
    return [parm.name + (ends[k] if ends else str(k + 1)) for k in range(parm.size)]


def _parm_problems(parm: dialog_script.ParsedParm) -> Iterator[tuple[str, bool]]:
    """Yield (what is wrong, whether it is an error)."""
    name = parm.name.replace("#", "") if parm.inside else parm.name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        yield "a name has letters, digits and _ only, and begins with no digit", True
    if parm.inside and "#" not in parm.name:
        yield f"stands in multiparm {parm.inside}, so that its name must hold a #", True
    size = dialog_script.TYPES[parm.type]
    if size is not None and parm.size != size:
        yield f"has size {parm.size}; a {parm.type} has {size}", parm.type != "label"
    if parm.defaults and len(parm.defaults) != parm.size and parm.type != "separator":
        yield f"has {len(parm.defaults)} defaults and size {parm.size}", True
    if parm.type == "ordinal" and parm.menu is None:
        yield "is an ordinal without a menu", True
    if parm.menu and parm.type == "ordinal" and not parm.menu_is_code:
        tokens = [token for token, _ in parm.menu]
        for value, language in parm.defaults:
            if not language and value not in tokens and not (value.isdigit() and int(value) < len(tokens)):
                yield f"has default {value}, which its menu does not hold", False
    if parm.range:
        low, high = (float(end.rstrip("!")) for end in parm.range)
        if low > high:
            yield f"has range {parm.range[0]} to {parm.range[1]}", True
    callback = parm.tags.get("script_callback", "")
    if callback and parm.tags.get("script_callback_language") == "python":
        yield from ((f"script_callback: {message}", is_error) for message, is_error in _syntax(callback))


def _properties(path: Path) -> Iterator[AssetFault]:
    if not path.is_file():
        return
    lines = [line for line in _text(path).split("\n") if line]
    keys = [match[1] for line in lines if (match := re.fullmatch(r"(\w+) := [01];", line))]
    if len(keys) != len(lines) or sorted(keys) != sorted(TYPE_PROPERTIES):
        yield AssetFault(
            str(path), f"must hold KEY := 0; or 1; for these {len(TYPE_PROPERTIES)} keys: {', '.join(TYPE_PROPERTIES)}"
        )


def _options(path: Path, there: set[str]) -> Iterator[AssetFault]:
    if not path.is_file():
        return
    kinds = {"bool": bool, "string": str, "intarray": list}
    try:
        options = json.loads(_text(path))
    except ValueError as error:
        yield AssetFault(str(path), f"is no JSON: {error}")
        return
    for key, option in options.items() if isinstance(options, dict) else [("", None)]:
        right = isinstance(option, dict) and option.keys() == {"type", "value"} and option["type"] in kinds
        if "/" not in key or not right or not isinstance(option["value"], kinds[option["type"]]):
            yield AssetFault(str(path), f'{key}: write "SECTION/OPTION": {{"type": "bool" | "string" | "intarray", "value": ...}}')
    python = (
        {key.partition("/")[0] for key, option in options.items() if key.endswith("/IsPython") and option.get("value") is True}
        if isinstance(options, dict)
        else set()
    )
    for name in sorted(set(PYTHON_FILES) & there - {"PythonCook"} - python):
        yield AssetFault(str(path), f"does not say that {name} is Python")


def _shelf(path: Path) -> Iterator[AssetFault]:
    problems = list(_xml(path))
    yield from problems
    if not path.is_file() or problems:
        return
    shelf = xml.etree.ElementTree.fromstring(_text(path))
    hidden = shelf.find("tool") is not None and shelf.find("tool/toolMenuContext") is None  # meant for no menu
    if not hidden and shelf.find("tool/toolSubmenu") is None:
        yield AssetFault(str(path), "has no tool with a toolSubmenu: the TAB menu would not show it", is_error=False)


def _xml(path: Path) -> Iterator[AssetFault]:
    try:
        if path.is_file():
            xml.etree.ElementTree.fromstring(_text(path))
    except xml.etree.ElementTree.ParseError as error:
        yield AssetFault(str(path), f"is no XML: {error}")


def _create_script(path: Path) -> Iterator[AssetFault]:
    text = _text(path)
    for wanted in ('"$arg1" == ""', "opexprlanguage -s hscript $arg1", "___Version___"):
        if path.is_file() and wanted not in text:
            yield AssetFault(str(path), f"has no {wanted}")


def _python(path: Path) -> Iterator[AssetFault]:
    for message, is_error in _syntax(_text(path)):
        yield AssetFault(str(path), message, is_error)


def _syntax(code: str) -> Iterator[tuple[str, bool]]:
    """Yield (what is wrong, whether it is an error); what only Python 2 takes is a warning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "section", "exec")
    except (SyntaxError, ValueError) as error:
        yield f"does not compile: {error}", not any(sign in str(error) for sign in PYTHON_2)
