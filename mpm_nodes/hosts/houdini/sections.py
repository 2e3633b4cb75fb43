"""The fixed files of an expanded digital asset: index, section lists, options, scripts, icon."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

MODIFIED = "Thu Jan  1 00:00:00 2026"
"""Written into every index: a real date would make equal assets differ."""

PYTHON_SECTIONS = ("OnCreated",)
"""Sections that Houdini must be told are Python; PythonCook is known to be."""

Option = bool | str | list[int]

TYPE_PROPERTIES: dict[str, int] = {
    "CheckExternal": 1,
    "ContentsCompressionType": 1,
    "ForbidOutsideParms": 1,
    "GzipContents": 1,
    "LockContents": 1,
    "MakeDefault": 1,
    "ParmsFromVfl": 0,
    "PrefixDroppedParmLabel": 0,
    "PrefixDroppedParmName": 0,
    "SaveCachedCode": 0,
    "SaveIcon": 1,
    "SaveSpareParms": 0,
    "UnlockOnCreate": 0,
    "UseDSParms": 1,
}


def encoded(name: str) -> str:
    """Return a section's or operator's name as its file is called: "_" doubled, "/" as "_1", ":" as "_8"."""
    return name.replace("_", "__").replace("/", "_1").replace(":", "_8")


def sections_list(entries: Mapping[str, str]) -> str:
    """Return a Sections.list of {file: section}; names with spaces are quoted."""

    def name(text: str) -> str:
        return f'"{text}"' if " " in text else text

    return "\n".join(['""', *(f"{name(file)}\t{name(section)}" for file, section in entries.items()), ""])


def index_section(operator: str, type_path: str, label: str, inputs: tuple[int, int], icon: str) -> str:
    """Return the INDEX__SECTION of one Python asset."""
    record = {
        "Operator": operator,
        "Label": label,
        "Path": f"oplib:/{type_path}?{type_path}",
        "Icon": icon,
        "Table": "Sop",
        "License": "",
        "Extra": "",
        "User": "",
        "Inputs": f"{inputs[0]} to {inputs[1]}",
        "Subnet": "false",
        "Python": "true",
        "Empty": "false",
        "Modified": MODIFIED,
    }
    return index_text(record)


def index_text(record: Mapping[str, str]) -> str:
    """Return one record of an INDEX__SECTION."""
    return "".join(f"{key + ':':14}{value}\n" for key, value in record.items()) + "\n"


def type_properties() -> str:
    """Return TypePropertiesOptions."""
    return "".join(f"{key} := {value};\n" for key, value in TYPE_PROPERTIES.items())


def python_options(sections: Sequence[str]) -> dict[str, Option]:
    """Return the options that say which of the sections are Python: value by "SECTION/OPTION"."""
    options: dict[str, Option] = {}
    for section in sections:
        if section in PYTHON_SECTIONS:
            options[f"{section}/Cursor"] = [1, 1]
            options[f"{section}/IsExpr"] = False
            options[f"{section}/IsPython"] = True
            options[f"{section}/IsScript"] = True
            options[f"{section}/Source"] = ""
    return options


def extra_file_options(sections: Sequence[str]) -> str:
    """Return ExtraFileOptions of an expanded asset: `python_options` as JSON with their types."""
    return options_text(python_options(sections))


def options_text(options: Mapping[str, Option]) -> str:
    """Return options as the JSON of an expanded asset."""
    kinds = {bool: "bool", str: "string", list: "intarray"}
    return json.dumps({name: {"type": kinds[type(each)], "value": each} for name, each in options.items()}, indent="\t") + "\n"


def create_script(operator: str, type_path: str, version: str) -> str:
    """Return the HScript that Houdini runs on a new node."""
    return f"""# Automatically generated script
\\set noalias = 1
#
#  Creation script for {operator} operator
#

if ( "$arg1" == "" ) then
    echo This script is intended as a creation script
    exit
endif

# Node $arg1 ({type_path})
opexprlanguage -s hscript $arg1
opuserdata -n '___Version___' -v '{version}' $arg1
"""


def tools_shelf(menu: str) -> str:
    """Return Tools.shelf: the asset's entry in the TAB menu, in the given submenu; one without a submenu is in no menu."""
    places = f"""    <toolMenuContext name="viewer">
      <contextNetType>SOP</contextNetType>
    </toolMenuContext>
    <toolMenuContext name="network">
      <contextOpType>$HDA_TABLE_AND_NAME</contextOpType>
    </toolMenuContext>
    <toolSubmenu>{escape(menu)}</toolSubmenu>
"""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<shelfDocument>
  <tool name="$HDA_DEFAULT_TOOL" label="$HDA_LABEL" icon="$HDA_ICON">
{places if menu else ""}    <script scriptType="python"><![CDATA[import soptoolutils

soptoolutils.genericTool(kwargs, '$HDA_NAME')]]></script>
  </tool>
</shelfDocument>
"""


@dataclass(frozen=True)
class ShelfTool:
    """A tool of the shelf, in the TAB menu as well.

    Attributes:
        name: Its name without `mpm_nodes_`.
        label: What it is called.
        doc: Its help.
        call: What runs, of `mpm_nodes_houdini`.
        submenu: Its place in the TAB menu.
        networks: Types of the networks in whose TAB menu it stands.
    """

    name: str
    label: str
    doc: str
    call: str
    submenu: str
    networks: tuple[str, ...] = ("SOP",)


def shelf(tools: Sequence[ShelfTool]) -> str:
    """Return the shelf with its tools."""
    texts = "".join(_tool(tool) for tool in tools)
    members = "".join(f'    <memberTool name="mpm_nodes_{tool.name}"/>\n' for tool in tools)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<shelfDocument>
  <toolshelf name="mpm_nodes" label="MPM Nodes">
{members}  </toolshelf>
{texts}</shelfDocument>
"""


def _tool(tool: ShelfTool) -> str:
    networks = "".join(f"      <contextNetType>{network}</contextNetType>\n" for network in tool.networks)
    return f"""  <tool name="mpm_nodes_{tool.name}" label={quoteattr(tool.label)} icon="SOP_particlefluidsurface">
    <helpText><![CDATA[{tool.doc}]]></helpText>
    <toolMenuContext name="network">
{networks}    </toolMenuContext>
    <toolSubmenu>{escape(tool.submenu)}</toolSubmenu>
    <script scriptType="python"><![CDATA[import mpm_nodes_houdini

mpm_nodes_houdini.{tool.call}]]></script>
  </tool>
"""


_SHAPES = {
    "Emit": '<circle cx="12" cy="12" r="6"/><circle cx="22" cy="14" r="4"/><circle cx="15" cy="23" r="5"/>',
    "Collide": '<path d="M4 22 L16 16 L28 22 L16 28 Z"/><circle cx="16" cy="9" r="5"/>',
    "Material": '<path d="M16 4 L27 10 L27 22 L16 28 L5 22 L5 10 Z"/>',
    "Solve": '<path d="M5 16 A11 11 0 1 1 16 27 L16 22 A6 6 0 1 0 10 16 Z"/><path d="M12 22 L18 18 L18 30 Z"/>',
    "Surface": '<path d="M4 20 C8 8 12 26 16 15 C20 6 24 22 28 12 L28 28 L4 28 Z"/>',
    "Cache": '<path d="M5 6 H24 L28 10 V27 H5 Z"/>',
    "Substep Stages": '<path d="M4 6 H16 L22 16 L16 26 H4 L10 16 Z"/><path d="M20 6 H23 L29 16 L23 26 H20 L26 16 Z"/>',
}


def icon_svg(category: str, colour: Sequence[float]) -> str:
    """Return a small picture: the shape says the category, the colour what the node gives."""
    red, green, blue = (round(255 * value) for value in colour)
    shape = _SHAPES.get(category, '<rect x="5" y="7" width="22" height="18" rx="4"/>')
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32" '
        f'viewBox="0 0 32 32">\n  <g fill="#{red:02x}{green:02x}{blue:02x}" stroke="#202020" stroke-width="1.5" '
        f'stroke-linejoin="round">\n    {shape}\n  </g>\n</svg>\n'
    )
