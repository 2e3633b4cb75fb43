"""docs/houdini.md: its network is built, wired and cooked as written there."""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "houdini.md"


def rows():
    """Return the cells of the tutorial's table."""
    table = DOCS.read_text(encoding="utf-8").partition("<!-- network: tested -->\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_tutorials_network_cooks(houdini, tmp_path):
    """Every node is found by its TAB menu entry, every wire by its input's label, every parameter by name; two frames cook."""
    kinds = {}
    for kind in houdini.types.values():
        if kind._sections:
            menu = re.search(r"<toolSubmenu>MPM Nodes/(.*)</toolSubmenu>", kind._sections["Tools.shelf"])
            if menu:  # stages are in none
                kinds[f"{menu[1]} > {kind._dialog.label}"] = kind
    for entry, name, wires, parms in rows():
        kind = kinds[entry]
        node = houdini.work.createNode(kind.name(), name)
        labels = [port["label"].split(" (")[0] for port in json.loads(kind._sections["NodeSpec"])["inputs"]]
        for source, label in re.findall(r"(\w+) into (\w+)", wires):
            node.setInput(labels.index(label), houdini.work.node(source))
        for parm, value in re.findall(r"(\w+) = ([\w.]+)", parms):
            node.parm(parm).deleteAllKeyframes()
            node.parm(parm).set(value if value.isalpha() else float(value))
    shot = houdini.work.node("shot")
    shot.parm("end").set(2)
    shot.parm("cell_size").set(0.1)
    shot.parm("mpm_check").pressButton()
    shot.parm("mpm_cook").pressButton()
    assert Path(houdini.work.node("shot_cache").parm("filepath1").eval()) == tmp_path / "mpm" / "shot" / "r001" / "cache.usda"
    assert all(node.warnings() == () and node.errors() == () for node in houdini.work.children())
