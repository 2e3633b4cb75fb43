"""What is painted on meshes of the scene, as numbers: vertex groups, colour attributes, and attributes of Geometry Nodes.

A colour counts by its luminance and a vector by the mean of its parts, as where Blender turns one into a number.
"""

import hashlib
import re
from array import array

LUMINANCE = (0.2126, 0.7152, 0.0722)
INTERPOLATIONS = {"POINT": "vertex", "CORNER": "faceVarying", "FACE": "uniform"}
"""What USD calls the domains that count."""
MEMBERS = {"FLOAT": "value", "INT": "value", "INT8": "value", "BOOLEAN": "value", "FLOAT_VECTOR": "vector", "FLOAT2": "vector",
           "FLOAT_COLOR": "color", "BYTE_COLOR": "color"}  # fmt: skip
PARTS = {"FLOAT_VECTOR": 3, "FLOAT2": 2, "FLOAT_COLOR": 4, "BYTE_COLOR": 4}
BUILT_IN = ("position", "sharp_face", "sharp_edge", "material_index")


def read(thing, mesh, name):
    """Return (interpolation, numbers, whether it is a vertex group) of what an evaluated object's mesh has of a name; else None."""
    group = thing.vertex_groups.get(name)
    if group is not None:
        numbers, own = array("f", bytes(4 * len(mesh.vertices))), group.index
        for place, vertex in enumerate(mesh.vertices):
            for each in vertex.groups:
                if each.group == own:
                    numbers[place] = each.weight
        return "vertex", numbers, True
    attribute = mesh.attributes.get(name)
    if attribute is None or not _counts(attribute):
        return None
    parts = PARTS.get(attribute.data_type, 1)
    values = [0.0 if attribute.data_type.startswith("FLOAT") or parts > 1 else 0] * (parts * len(attribute.data))
    attribute.data.foreach_get(MEMBERS[attribute.data_type], values)
    if parts == 4:
        values = [sum(map(float.__mul__, LUMINANCE, values[at : at + 3])) for at in range(0, len(values), 4)]
    elif parts > 1:
        values = [sum(values[at : at + parts]) / parts for at in range(0, len(values), parts)]
    return INTERPOLATIONS[attribute.domain], array("f", values), False


def names(thing, mesh):
    """Return the names of what an evaluated object's mesh has to be read, vertex groups first."""
    groups = [group.name for group in thing.vertex_groups]
    others = [each.name for each in mesh.attributes if _counts(each) and each.name not in BUILT_IN and each.name[0] != "."]
    return list(dict.fromkeys(groups + others))


def unfit(mesh):
    """Return by name, in words, why an attribute of a mesh cannot be read; those that can are left out."""
    return {
        each.name: f"is on {each.domain.lower()}s" if each.domain not in INTERPOLATIONS else "is of a type that holds no numbers"
        for each in mesh.attributes
        if not _counts(each) and each.name not in BUILT_IN and each.name[0] != "."
    }


def _counts(attribute):
    return attribute.domain in INTERPOLATIONS and attribute.data_type in MEMBERS


def usd_name(name):
    """Return the name of a primvar that stands for a name of Blender's."""
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    plain = re.sub("[^A-Za-z0-9_]", "_", name)
    return f"p_{plain}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
