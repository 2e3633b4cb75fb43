"""One digital asset: what it shows to artists and to the code in Houdini, and its files, expanded and packed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpm_nodes.hosts.houdini import sections
from mpm_nodes.hosts.houdini.packed import IndexRecord, library
from mpm_nodes.hosts.houdini.parameters import Parm, ParmFolder, dialog_script

NAMESPACE = "mpm_nodes"
MENU = "MPM Nodes"
COOK, BEGIN, POINTS, SOURCE, GUIDES = "cook_graph", "substep_begin", "cached_points", "source", "guides"
"""Assets that no node of the registry stands behind."""


@dataclass(frozen=True)
class Asset:
    """One digital asset.

    Attributes:
        id: Name of the node type, without namespace and version.
        label: Name that artists see.
        version: "1.0"; the first number is the declaration's version.
        category: Submenu of the TAB menu; it also picks the icon.
        doc: First paragraph of the help.
        colour: RGB of icon and node.
        folders: Tabs of parameters.
        facts: What the code inside Houdini needs to know, as plain JSON: inputs, outputs, knobs.
    """

    id: str
    label: str
    version: str
    category: str
    doc: str
    colour: tuple[float, ...]
    folders: tuple[ParmFolder, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """Full name of the operator, as new nodes are created by."""
        return f"{NAMESPACE}::{self.id}::{self.version}"

    @property
    def type_path(self) -> str:
        """The operator with its table."""
        return f"{NAMESPACE}::Sop/{self.id}::{self.version}"

    @property
    def input_span(self) -> tuple[int, int]:
        """Least and greatest number of wired inputs."""
        inputs = self.facts["inputs"]
        return next((number for number, each in enumerate(inputs) if each["optional"]), len(inputs)), len(inputs)

    @property
    def icon(self) -> str:
        """Where Houdini finds the icon: a section of the asset itself."""
        return f"opdef:/{self.type_path}?IconSVG"

    def sections(self) -> dict[str, str]:
        """Return what the asset consists of, expanded or packed: text by section, in their order."""
        return {
            "DialogScript": dialog_script(
                self.operator,
                self.id,
                self.label,
                [each["label"] for each in self.facts["inputs"]],
                "Graph" if self.id == COOK else self.label,
                self.folders,
            ),
            "CreateScript": sections.create_script(self.operator, self.type_path, self.version),
            "TypePropertiesOptions": sections.type_properties(),
            "Help": self._help(),
            "Tools.shelf": sections.tools_shelf("" if self.facts["scope"] == "substeps" else f"{MENU}/{self.category}"),
            "PythonCook": "import hou, mpm_nodes_houdini\nmpm_nodes_houdini.cook_node(hou.pwd())\n",
            "OnCreated": "import mpm_nodes_houdini\nmpm_nodes_houdini.node_created(kwargs['node'])\n",
            "FunctionName": self.operator,
            "IconSVG": sections.icon_svg(self.category, self.colour),
            "NodeSpec": json.dumps(self.facts, indent=1, ensure_ascii=False) + "\n",
            "Version": self.version,
        }

    def expanded(self) -> dict[str, str]:
        """Return the files of the expanded asset: text by path below its .hda folder."""
        texts = self.sections()
        texts["ExtraFileOptions"] = sections.extra_file_options(list(texts))
        folder = sections.encoded(self.type_path)
        listed = {sections.encoded(name): name for name in texts}
        top = {"INDEX__SECTION": "INDEX_SECTION", "houdini.hdalibrary": "houdini.hdalibrary", folder: self.type_path}
        return {
            "houdini.hdalibrary": "",
            "Sections.list": sections.sections_list(top),
            "INDEX__SECTION": sections.index_section(self.operator, self.type_path, self.label, self.input_span, self.icon),
            f"{folder}/Sections.list": sections.sections_list(listed),
            **{f"{folder}/{sections.encoded(name)}": text for name, text in texts.items()},
        }

    def packed(self) -> bytes:
        """Return the packed library: the same sections in one file."""
        texts = self.sections()
        record = IndexRecord(self.operator, self.label, self.type_path, self.icon, self.input_span)
        return library(record, {name: text.encode() for name, text in texts.items()}, sections.python_options(list(texts)))

    def _help(self) -> str:
        """Return the help page in Houdini's wiki markup."""
        lines = [
            f"= {self.label} =",
            "",
            "#type: node",
            "#context: sop",
            f"#internal: {self.operator}",
            f"#icon: {self.icon}",
            "",
            f'"""{self.doc}"""',
            "",
        ]
        if self.facts["inputs"]:
            lines += ["@inputs", ""]
            for each in self.facts["inputs"]:
                lines += [f"{each['label']}:", f"    {each['doc']}", ""]
        lines += ["@parameters", ""]
        for folder in self.folders:
            lines += [f"== {folder.label} ==", ""]
            for parm in flat(folder.parms):
                lines += [f"{parm.label}:", f"    #id: {parm.name}", f"    {parm.help or parm.label}", ""]
        return "\n".join(lines).rstrip() + "\n"


def flat(parms: Iterable[Parm | ParmFolder]) -> Iterable[Parm]:
    """Yield the parameters of tabs and blocks, in order."""
    for item in parms:
        if isinstance(item, ParmFolder):
            yield from flat(item.parms)
        else:
            yield item
