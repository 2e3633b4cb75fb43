"""The node specification that lies beside this file (`spec.json`): what the package's registry says about every node and stage."""

import json
import re
from pathlib import Path

SPEC = json.loads((Path(__file__).parent / "spec.json").read_text(encoding="utf-8"))

NODES = {record["id"]: record for record in SPEC["nodes"]}
STAGES = {record["id"]: {**record, "knobs": [{**knob, "in_metres": True} for knob in record["knobs"]]} for record in SPEC["stages"]}
"""Stages stay in metres, as the settings of presets do: a new Unit Scale must not change stages that were opened to look at."""
TYPES = {record["id"]: record for record in SPEC["types"]}
PRESETS = {record["name"]: record for record in SPEC["presets"]}
SETTINGS = {record["name"]: {**record, "in_metres": True} for record in SPEC["settings"]}
CATEGORIES = {record["name"]: record["colour"] for record in SPEC["categories"]}
DOMAINS = tuple(SPEC["reserved_names"])
GRAPH_FORMAT = SPEC["graph_format"]
SUBSTEPS_FORMAT = SPEC["substeps_format"]
NAME = re.compile(SPEC["name_pattern"])


def categories():
    """Return the outer nodes by category, in the order in which the specification names them first."""
    found = {}
    for record in SPEC["nodes"]:
        found.setdefault(record["category"], []).append(record)
    return found


def outputs(record):
    """Return the outputs of a node or stage that wires may start from."""
    return [output for output in record["outputs"] if not output.get("internal")]


def knob(record, name):
    """Return a knob of a node or stage by name, or None."""
    return next((each for each in record["knobs"] if each["name"] == name), None)
