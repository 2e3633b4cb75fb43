"""Write the generated pages of the site: nodes, stages, presets, materials, attributes, the command line and the Python API.

`docs/conf.py` calls it; nothing that it writes is kept in the repository.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
SAMPLE_PAGES = ("basics", "directing", "foam", "viscoelastic", "heat", "surface_tension", "bodies")
TOP_PAGES = {
    "project/changelog": "CHANGELOG.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/security": "SECURITY.md",
    "samples/index": "samples/README.md",
    **{f"samples/{name}": f"samples/{name}.md" for name in SAMPLE_PAGES},
}
"""Pages of the repository outside docs/, by their place on the site."""

SCHEMA = "reference/graph.schema.json"
SCHEMA_PAGE = """# Graph schema

<a href="../graph.schema.json">graph.schema.json</a> is the JSON Schema (draft 2020-12) of graph files: every node with its inputs
and knobs, their ranges, units and help. Text editors complete and check by it what is typed, and a pipeline can refuse a file
without running ours. `mpm-nodes host schema` prints it with your own nodes. In Visual Studio Code:

```json
{"json.schemas": [{"fileMatch": ["shots/*.json"], "url": "./graph.schema.json"}]}
```

Every packaged graph fits it, which a test holds. It does not know which types of wires fit, circles, and what presets take;
`mpm-nodes validate` does. Nodes of older versions are upgraded as they are loaded, and may not fit.
"""


def pages() -> dict[str, str]:
    """Return the text of every generated page by its path on the site."""
    from mpm_nodes.graph.declare import registry
    from mpm_nodes.hosts.schema import graph_schema
    from mpm_nodes.hosts.spec import host_spec

    spec = host_spec(registry.load(path="", entry_points=False))
    return {
        "reference/nodes.md": declarations(
            "Nodes",
            "What a shot graph is made of. `mpm-nodes nodes NAME` prints the same. Each node has an example that cooks in seconds: "
            "`mpm-nodes cook docs/examples/NODE.json --out look`, then `mpm-nodes render look`.",
            spec["nodes"],
            lambda record: record["category"],
            example,
        ),
        "reference/stages.md": declarations(
            "Stages",
            "What a substep graph is made of. Sources are papers of the [bibliography](../bibliography.md).\n\n"
            + equations()["Equations of the stages"],
            spec["stages"],
            lambda record: "Stages",
            lambda name: ["Equations:", "", equations()[name], ""],
        ),
        "reference/presets.md": presets(spec["presets"]),
        "reference/materials.md": materials(spec["materials"]),
        "reference/attributes.md": attributes(spec["attributes"]),
        "reference/cli.md": command_line(),
        "reference/schema.md": SCHEMA_PAGE,
        SCHEMA: json.dumps(graph_schema(registry.load(path="", entry_points=False)), indent=1, ensure_ascii=False) + "\n",
        "reference/api.md": python_api(),
        **{f"{name}.md": top_page(ROOT / path) for name, path in TOP_PAGES.items()},
    }


def write(folder: Path) -> list[Path]:
    """Write the pages below a folder, those that changed; return all their paths."""
    written = []
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


# ---------------------------------------------------------------- nodes, stages, materials
def declarations(
    title: str,
    lead: str,
    records: Sequence[dict[str, Any]],
    group: Callable[[dict[str, Any]], str],
    more: Callable[[str], list[str]],
) -> str:
    """Return the page of nodes or of stages: help, ports and knobs of each, and what `more` says of its name."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(group(record), []).append(record)
    lines = [f"# {title}", "", lead, ""]
    for name, members in sorted(groups.items()):
        if len(groups) > 1:
            lines += [f"## {name}", ""]
        for record in sorted(members, key=lambda each: each["id"]):
            lines += [f"{'###' if len(groups) > 1 else '##'} {record['id']}", "", *described(record), *more(record["id"])]
    return "\n".join(lines)


def described(record: dict[str, Any]) -> list[str]:
    """Return the lines of one node or stage."""
    lines = [f"*{record['label']}*, version {record['version']}. {prose(record['doc'])}", ""]
    if record["inputs"]:
        rows = [
            (f"`{port['name']}`", port["type"] + ", ".join([""] + marks(port)), prose(port["doc"])) for port in record["inputs"]
        ]
        lines += table(("input", "type", "what it is"), rows)
    if record["outputs"]:
        lines += ["Outputs: " + ", ".join(f"`{port['name']}` ({port['type']})" for port in record["outputs"]) + ".", ""]
    if record["knobs"]:
        rows = [
            (f"`{knob['name']}`", kind(knob), knob["unit"] or "", default(knob), prose(knob["doc"])) for knob in record["knobs"]
        ]
        lines += table(("knob", "kind", "unit", "default", "what it does"), rows)
    return lines


def example(name: str) -> list[str]:
    """Return the lines of a node's example: the picture of its first, middle and last frame, and the graph."""
    graph = (DOCS / "examples" / f"{name}.json").read_text(encoding="utf-8").rstrip()
    picture = shown_picture(f"{name}: first, middle and last frame of the example", f"nodes/{name}.jpg")
    shown = [f"<details><summary>docs/examples/{name}.json</summary>", "", "```json", graph, "```", "", "</details>", ""]
    return [*picture, *shown]


def shown_picture(text: str, name: str) -> list[str]:
    """Return the lines that show a picture of `make_pictures.py`; none where it has not been drawn."""
    return [f"![{text}](../pictures/{name})", ""] if (DOCS / "pictures" / name).is_file() else []


@cache
def equations() -> dict[str, str]:
    """Return the text of each section of docs/equations.md by its heading; links lead from the folder of the reference."""
    text = (DOCS / "equations.md").read_text(encoding="utf-8").replace("](bibliography.md)", "](../bibliography.md)")
    sections = re.split(r"^#+ (.*)$", text, flags=re.M)
    return {title: body.strip() for title, body in zip(sections[1::2], sections[2::2], strict=True)}


def marks(port: dict[str, Any]) -> list[str]:
    """Return what is special about a port."""
    return [word for word, said in (("optional", port["optional"]), ("any number of wires", port["many"])) if said]


def kind(knob: dict[str, Any]) -> str:
    """Return a knob's kind with its choices or its range."""
    if knob["choices"]:
        return ", ".join(f"`{choice}`" for choice in knob["choices"])
    limits = knob["range"] or {}
    said = [f"{word} {limits[key]:g}" for key, word in (("min", "from"), ("max", "to")) if limits.get(key) is not None]
    return " ".join([knob["kind"], *said]) + (", keyable" if knob["keyable"] else "")


def default(knob: dict[str, Any]) -> str:
    """Return a knob's default as it stands in a graph file."""
    return "required" if knob["required"] else f"`{json.dumps(knob['default'], ensure_ascii=False)}`"


def presets(records: Iterable[dict[str, Any]]) -> str:
    """Return the page of presets: what each is for, and its stages in their order."""
    lines = ["# Presets", "", "Substep graphs by name, for the knob `substeps` of a solve.", ""]
    for record in records:
        stages = record["document"].get("nodes", {})
        listed = ", ".join(f"[`{entry['type']}`](stages.md#{slug(entry['type'])})" for entry in stages.values())
        lines += [f"## {record['name']}", "", prose(record["doc"]), "", *([f"Stages: {listed}.", ""] if listed else [])]
    return "\n".join(lines)


def materials(records: Iterable[dict[str, Any]]) -> str:
    """Return the page of the material library: a swatch of each to choose by eye, and its numbers."""
    from make_pictures import Stand, stand_of

    usual = Stand()
    lines = [
        "# Materials",
        "",
        "The entries of the node `material_library`, in SI units. Swatches show a ball that falls, a bar that is stretched by "
        "half, and a column that is let go, at three moments. The ball is as wide as the length that stands beside the law. "
        "Foams and pastes are for the scale of a kitchen: larger bodies of them do not bear their weight. "
        "`python docs/make_pictures.py NAME` draws one.",
        "",
    ]
    for entry in records:
        stand = stand_of(entry["name"])
        gravity = "" if stand.gravity == usual.gravity else f", gravity {stand.gravity:g} m/s²"
        numbers = ", ".join(
            f"{name} {value:g}" if isinstance(value, (int, float)) else f"{name} {value}" for name, value in entry["params"].items()
        )
        lines += [
            f"## {entry['name']}",
            "",
            f"*{entry['label']}*: law `{entry['law']}`, {entry['density']:g} kg/m³. Swatch: {100.0 * stand.size:g} cm{gravity}, "
            f"{stand.seconds:.2g} s.",
            "",
            *shown_picture(f"{entry['label']}: drop, stretch and slump", f"materials/{entry['name']}.jpg"),
            f"Parameters: {numbers}." if numbers else "",
            f"Source: {prose(entry['source'])}.",
            *([f"Limits: {prose(entry['limits'])}."] if entry["limits"] else []),
            f"Its waves ask for {_substeps(entry['name'])} explicit substeps a frame of 1/24 s on cells of 1 cm{_growth(entry)}.",
            "",
        ]
    return "\n".join(lines)


def _substeps(name: str) -> str:
    """Return how many explicit substeps waves ask for at 24 fps on cells of 1 cm."""
    from mpm_nodes.materials.library import named_material
    from mpm_nodes.materials.material_point import call_law

    matter = named_material(name)
    speed = float(call_law(matter.law, "wave_speed", params=dict(matter.params), density=matter.density)[0])
    return f"{speed / (24.0 * 0.5 * 0.01):.0f}"


def _growth(entry: dict[str, Any]) -> str:
    """Return what `depth` does to them."""
    return f", with the root of `depth` through {entry['scale_with_depth']}" if entry["scale_with_depth"] else ""


def attributes(records: Iterable[dict[str, Any]]) -> str:
    """Return the page of particle attributes, with their names in USD and Houdini."""
    lines = ["# Attributes", "", "What particles carry, and how caches name it.", ""]
    rows = [
        (
            f"`{each['name']}`",
            prose(each["doc"]),
            each["unit"],
            "×".join(map(str, each["shape"])) or "1",
            f"`{each['usd']}`",
            f"`{each['houdini']}`",
        )
        for each in records
    ]
    return "\n".join([*lines, *table(("attribute", "what it is", "unit", "shape", "USD", "Houdini"), rows)])


# ---------------------------------------------------------------- programs
def command_line() -> str:
    """Return the page of the command line: the help of every command."""
    from mpm_nodes.cli import parser

    top = parser()
    lines = ["# Command line", "", "```text", helped(top), "```", ""]
    commands = next(action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        lines += [f"## mpm-nodes {name}", "", "```text", helped(command), "```", ""]
    return "\n".join(lines)


def helped(parser: argparse.ArgumentParser) -> str:
    """Return a parser's help, as wide on every terminal."""
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=100)  # type: ignore[assignment]
    return parser.format_help().rstrip()


def python_api() -> str:
    """Return the page of the public names of `mpm_nodes`, from their signatures and docstrings."""
    import mpm_nodes

    lines = ["# Python", "", "The public names of `mpm_nodes`. [From Python](../python.md) shows them at work.", ""]
    for name in mpm_nodes.__all__:
        if name.startswith("__"):
            continue
        thing = getattr(mpm_nodes, name)
        lines += [f"## {name}", "", *documented(thing, name)]
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for method, function in inspect.getmembers(thing, inspect.isfunction):
                if not method.startswith("_") and function.__doc__:
                    lines += [f"### {name}.{method}", "", *documented(function, method)]
    return "\n".join(lines)


def documented(thing: Any, name: str) -> list[str]:
    """Return signature and docstring of a class or function."""
    try:
        signature = re.sub(r"<class '([\w.]+)'>", r"\1", str(inspect.signature(thing)))
        signature = re.sub(r"<[^<>]*>", "...", signature)
    except (TypeError, ValueError):
        signature = ""
    summary, _, rest = (inspect.getdoc(thing) or "").partition("\n\n")
    lines = ["```python", f"{name}{signature}", "```", "", prose(summary), ""]
    return [*lines, "```text", rest.rstrip(), "```", ""] if rest.strip() else lines


def top_page(path: Path) -> str:
    """Return a page from outside docs/ with links as on the site, and with the tables that it leads to on GitHub, folded."""
    here = path.parent

    def turned(found: re.Match[str]) -> str:
        target, _, anchor = found[1].partition("#")
        if "://" in target or not target:
            return found[0]
        whole = (here / target).resolve()
        for name, top in TOP_PAGES.items():
            if whole == ROOT / top:
                return f"](../{name}.md{'#' + anchor if anchor else ''})"
        if whole.is_relative_to(ROOT / "docs"):
            return f"](../{whole.relative_to(ROOT / 'docs')}{'#' + anchor if anchor else ''})"
        return f"]({Path('../..') / whole.relative_to(ROOT)})"

    def shown(found: re.Match[str]) -> str:
        tables = (here / found[2]).read_text(encoding="utf-8")
        heading = next(title for title in re.findall(r"^## (.*)$", tables, re.M) if slug(title) == found[3])
        rows = tables.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].strip()
        return f"<details><summary>{found[1]}</summary>\n\n{rows}\n\n</details>"

    text = re.sub(r"^\[([\w ]+)\]\((figures/\w+\.md)#([\w-]+)\)$", shown, path.read_text(encoding="utf-8"), flags=re.M)
    return re.sub(r"\]\(([^)\s]+)\)", turned, text)


# ---------------------------------------------------------------- text
def prose(text: str) -> str:
    """Return help as one paragraph of Markdown: what would be read as HTML, emphasis or mathematics stays as it is."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>\[\]|$^~#\\])", r"\\\1", part) for part in parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table with an empty line behind it."""
    cells = [head, ["---"] * len(head), *rows]
    return [*("| " + " | ".join(cell.replace("\n", " ").replace(" | ", " \\| ") for cell in row) + " |" for row in cells), ""]


def slug(name: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w-]", "", name.lower().replace(" ", "-"))
