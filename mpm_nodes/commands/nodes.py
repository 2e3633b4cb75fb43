"""List the nodes, stages, substep presets and materials that graphs may use, describe one, or explain what a graph fuses."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from mpm_nodes.commands.cook import add_graph_options, load
from mpm_nodes.commands.listing import add_list, listed


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("name", nargs="?", metavar="NAME", help="node or stage to describe; with --list: a topic")
    add_list(command, "everything (also without a name)")
    command.add_argument("--json", action="store_true", help="print declarations as JSON")
    command.add_argument("--markdown", action="store_true", help="print the list as a Markdown table")
    command.add_argument(
        "--explain-fusion",
        type=Path,
        metavar="GRAPH",
        help="print for every substep graph of a graph file which stages run as one loop, and why others do not; with --device "
        "cuda what runs on the GPU, and what is copied",
    )
    command.add_argument(
        "--source",
        nargs="?",
        const="neo_hookean",
        metavar="LAW",
        help="with --explain-fusion: print the source of the loops too, for one constitutive law (default: neo_hookean)",
    )
    add_graph_options(command)


def run(args: argparse.Namespace) -> int:
    """Print the registry, or one declaration."""
    from mpm_nodes.graph.declare import registry

    if args.explain_fusion:
        print(_explained(args))
        return 0
    if args.name and not args.list:
        record = registry.get(args.name).to_json()
        print(json.dumps(record, indent=1, ensure_ascii=False) if args.json else describe(record), file=args.stream)
        return 0
    nodes = [declaration.to_json() for declaration in registry.nodes().values()]
    stages = [declaration.to_json() for declaration in registry.stages().values()]
    if args.json:
        whole = {"nodes": nodes, "stages": stages, "presets": _presets(), "materials": _materials()}
        print(json.dumps(whole, indent=1, ensure_ascii=False), file=args.stream)
        return 0
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in nodes:
        groups.setdefault(record["category"], []).append(record)
    groups["Stages of the substep graph"] = stages
    if args.markdown:
        print("| node | what it does | inputs | outputs |\n|---|---|---|---|")
        for title, records in groups.items():
            print(f"| **{title}** | | | |")
            for record in records:
                print(_row(record))
        return 0
    lines = {title: {record["id"]: summary(record) for record in records} for title, records in groups.items()}
    lines["Presets of the knob solve.substeps"] = {each["name"]: each["doc"] for each in _presets()}
    lines["Materials of material_library"] = {
        each["name"]: f"{each['label']}: {each['law']}, {each['density']:g} kg/m^3 ({each['source']})" for each in _materials()
    }
    print(listed("nodes", lines, [args.name] if args.name else []))
    print("\nmpm-nodes nodes NAME describes one, with its ports and knobs")
    return 0


def _explained(args: argparse.Namespace) -> str:
    """Return what is fused in the substep graphs of a graph file."""
    from mpm_nodes.solver.fusion_report import explained

    graph, found = load(args.explain_fusion, args.overrides), []
    for name, entry in graph.nodes.items():
        declaration = graph.declaration(name)
        for knob in declaration.knobs if declaration is not None else ():
            substeps = entry.knobs.get(knob.name, knob.default)
            if knob.kind == "substeps" and isinstance(substeps, str | dict):
                text = explained(substeps, args.source, entry.knobs.get("device", "cpu"))
                found.append(f"{name}.{knob.name}: {text}")
    return "\n\n".join(found) or f"{args.explain_fusion}: has no substep graph"


def _presets() -> list[dict[str, Any]]:
    """Return name, label and help of the substep presets."""
    from mpm_nodes.graph.declare import registry
    from mpm_nodes.graph.files import strict_json

    files = {name: strict_json.read(path) for name, path in registry.default().presets.items()}
    return [{"name": name, "label": file.get("label", ""), "doc": file.get("doc", "")} for name, file in files.items()]


def _materials() -> list[dict[str, Any]]:
    """Return the entries of the material library with their numbers."""
    from mpm_nodes.materials.library import LIBRARY

    return [{"name": name, **dataclasses.asdict(entry)} for name, entry in LIBRARY.items()]


def summary(record: dict[str, Any]) -> str:
    """Return the first line of a declaration's help."""
    return record["doc"].strip().split("\n")[0]


def _row(record: dict[str, Any]) -> str:
    ports = record.get("ports", record.get("domains", []))
    outputs = [each if isinstance(each, str) else each["name"] for each in record["outputs"]]
    cells = (f"`{record['id']}`", summary(record), ", ".join(port["name"] for port in ports), ", ".join(outputs))
    return f"| {' | '.join(cells)} |"


def describe(record: dict[str, Any]) -> str:
    """Return a declaration as text: help, ports, outputs, knobs with defaults, units and ranges."""
    lines = [f"{record['id']}: {record['label']}, version {record['version']}", "", record["doc"].strip()]
    if record.get("ports"):
        lines += ["", "Inputs"]
        for port in record["ports"]:
            marks = [
                port["type"],
                *(["any number of wires"] if port["many"] else []),
                *(["optional"] if port["optional"] else []),
            ]
            lines.append(f"  {port['name']} ({', '.join(marks)}): {port['doc']}")
    if record.get("domains"):
        lines += ["", "Touches"]
        for domain in record["domains"]:
            lines.append(f"  {domain['name']}: reads {_names(domain['reads'])}; writes {_names(domain['writes'])}")
    outputs = [each if isinstance(each, str) else f"{each['name']} ({each['type']})" for each in record["outputs"]]
    if outputs:
        lines += ["", "Outputs", *(f"  {each}" for each in outputs)]
    if record["knobs"]:
        lines += ["", "Knobs", *(_knob(knob) for knob in record["knobs"])]
    return "\n".join(lines)


def _knob(knob: dict[str, Any]) -> str:
    limits = {key: value for key, value in (knob["range"] or {}).items() if key in ("min", "max")}
    marks = [
        knob["kind"] if not knob["choices"] else " | ".join(map(str, knob["choices"])),
        *([knob["unit"]] if knob["unit"] else []),
        *(f"{key} {value:g}" for key, value in limits.items()),
        "required" if knob["required"] else f"default {json.dumps(knob['default'])}",
    ]
    return f"  {knob['name']} ({', '.join(marks)}): {knob['doc']}"


def _names(names: list[str]) -> str:
    return ", ".join(names) or "nothing"
