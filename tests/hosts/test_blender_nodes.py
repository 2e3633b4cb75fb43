"""How nodes look in Blender's editor: sliders with ends, whole labels, a colour for each category, search, settings as fields."""

from __future__ import annotations

import pytest
from blender_process import in_blender

NODES = """
answer["sliders"] = []
for cls in [*nodes.NODE_CLASSES.values(), *nodes.STAGE_CLASSES.values()]:
    for knob in cls.record["knobs"]:
        one = cls.bl_rna.properties.get(knobs.prop(knob["name"]))
        if one is not None and one.type in ("FLOAT", "INT"):
            answer["sliders"].append([cls.record["id"], knob["name"], one.soft_min, one.soft_max])
tree = trees.new_tree(trees.GRAPH_TREE, "shot")
tree.folder = given["folder"]
inner = trees.new_tree(trees.SUBSTEP_TREE, "stages")
made = [tree.nodes.new(cls.bl_idname) for cls in nodes.NODE_CLASSES.values()]
made += [inner.nodes.new(cls.bl_idname) for cls in nodes.STAGE_CLASSES.values()]
answer["colours"] = {}
for node in made:
    assert node.use_custom_color
    answer["colours"].setdefault(node.record["category"], []).append([round(part, 3) for part in node.color])
answer["widths"] = {node.record["id"]: node.width for node in made}
class Layout:
    enabled = True
    def prop(self, owner, name, index=-1, text=None, **how):
        if text and index >= 0:
            answer["axes"].setdefault(f"{owner.record['id']}.{name[2:]}", []).append([index, text])
    def label(self, text="", **how):
        answer["labels"].append(text)
    def operator(self, *given, **how):
        return self
    def template_curve_mapping(self, *given):
        pass
    def inside(self, **how):
        return Layout()
    row = column = split = box = inside
answer["axes"], answer["labels"] = {}, []
for node in made:
    for knob in node.record["knobs"]:
        if knob["kind"] != "table":
            nodes.draw_knob(node, Layout(), knob)
answer["cut"] = []
for node in made:
    for knob in node.record["knobs"]:
        if knob["kind"] in nodes.BESIDE:
            letters = len(knobs.title(knob))
            room = node.width * (letters + 1) / (letters + 1 + nodes.BESIDE[knob["kind"]])
            if room < nodes.LETTER * letters:
                answer["cut"].append([node.record["id"], knob["name"]])
class Rows(Layout):
    def prop(self, owner, name, **how):
        answer["rows"].append(name)
    def inside(self, **how):
        return self
    row = column = split = box = inside
answer["rows"] = []
solve = next(node for node in made if node.record["id"] == "solve")
solve.draw_buttons(bpy.context, Rows())
answer["folded"], answer["rows"] = answer["rows"], []
solve.advanced = True
solve.draw_buttons(bpy.context, Rows())
shown = next(node for node in made if node.record["id"] == "material_neo_hookean").bl_rna.properties["k_youngs_modulus"]
answer["words"] = [shown.name, shown.description]
answer["searched"] = {kind: [item[1] for item in items] for kind, items in interface.SEARCHED.items()}
from types import SimpleNamespace
class Entry:
    pass
answer["menus"] = {}
for menu in interface.MENUS:
    entries = []
    def operator(name, text):
        entries.append(text)
        return Entry()
    menu.draw(SimpleNamespace(layout=SimpleNamespace(operator=operator)), None)
    answer["menus"][menu.bl_label] = entries
added = SimpleNamespace(kind="MpmNode_emit_sphere")
space = SimpleNamespace(edit_tree=tree, cursor_location=(120.0, -80.0))
count = len(tree.nodes)
answer["did"] = sorted(interface.MPM_OT_search_node.execute(added, SimpleNamespace(space_data=space)))
answer["new"] = [len(tree.nodes) - count, tree.nodes.active.bl_idname, list(tree.nodes.active.location)]
"""

SETTINGS = """
tree = trees.new_tree(trees.GRAPH_TREE, "shot")
fall = add(tree, "solve", "fall")
def saved():
    return graph_file.save(tree)["nodes"]["fall"]["knobs"]["substeps"]
def field(name, preset="explicit_apic"):
    return knobs.prop(preset_settings.fields("substeps", preset)[name]["name"])
answer["plain"] = saved()
answer["fields"] = list(preset_settings.fields("substeps", "melting"))
setattr(fall, field("transfer"), "flip")
setattr(fall, field("cfl"), 0.3)
answer["set"] = saved()
fall.k_substeps = "implicit_apic"
answer["other"] = saved()
fall.k_substeps = "explicit_apic"
fall.set_substeps = '{"rasterize.kernel": "cubic", "cfl": 0.9}'
answer["both"] = saved()
fall.set_substeps = "no JSON"
answer["broken"] = saved()
given_value = {"preset": "explicit_apic", "edits": [{"remove": "x"}],
               "set": {"flip_fraction": 0.123456789012345, "kernel": "cubic", "transfer": "no such",
                       "cfl": {"keys": [[1, 0.3, "linear"]]}}}
knob = specification.knob(fall.record, "substeps")
knobs.set_value(fall, knob, given_value)
answer["loaded"] = [saved() == given_value, getattr(fall, field("kernel")), fall.set_substeps, fall.is_property_set(field("cfl"))]
setattr(fall, field("kernel"), "quadratic")
answer["changed"] = saved()
knobs.set_value(fall, knob, {"preset": "explicit_apic", "set": {"transfer": "flip", "cfl": 0.25}})
before = saved()
looked = substep_operators.opened_substeps(fall, "substeps")
looked.nodes["Substep Begins"].location = (-900.0, 0.0)
answer["looked"] = [saved() == before, fall.k_substeps, list(graph_file.save_substeps(looked)["nodes"])]
again = substep_operators.opened_substeps(fall, "substeps")
answer["trees"] = sum(each.bl_idname == trees.SUBSTEP_TREE for each in bpy.data.node_groups)
again.nodes.remove(next(node for node in again.nodes if node.record))
changed = saved()
answer["touched"] = [fall.k_substeps, isinstance(changed, dict) and len(changed["nodes"]), len(answer["looked"][2])]
knobs.set_value(fall, knob, {"preset": "explicit_apic", "set": {"transfer": "flip", "cfl": 0.25}})
made = substep_operators.own_substeps(fall, "substeps")
answer["own"] = graph_file.save_substeps(made).get("set")
older = add(tree, "solve", "older")
older.set_substeps = '{"transfer": "flip", "rasterize.kernel": "cubic"}'
nodes.complete(older)
answer["older"] = [getattr(older, field("transfer")), older.set_substeps]
answer["same"] = graph_file.save(tree)["nodes"]["older"]["knobs"]["substeps"]
"""


def test_nodes_have_sliders_labels_and_colours_and_are_found(tmp_path, spec):
    """Sliders have ends, every label fits its node, each category has one colour, and search offers all by label."""
    seen = in_blender(NODES, folder=str(tmp_path))
    ends = {(record["id"], knob["name"]): knob["range"] for record in (*spec["nodes"], *spec["stages"]) for knob in record["knobs"]}
    assert len(seen["sliders"]) > 200
    for owner, name, low, high in seen["sliders"]:
        limits = ends[owner, name]
        assert [low, high] == pytest.approx([limits["soft_min"], limits["soft_max"]], rel=1e-5), (owner, name)
        assert abs(low) < 1e13 and abs(high) < 1e13, (owner, name)
    categories = {record["name"]: record["colour"] for record in spec["categories"]}
    for category, colours in seen["colours"].items():
        assert all(colour == pytest.approx(categories[category], abs=1e-3) for colour in colours), category
    assert len({tuple(colour) for colour in categories.values()}) == len(categories)
    assert min(seen["widths"].values()) >= 190 and max(seen["widths"].values()) <= 340
    assert seen["cut"] == []
    vectors = {f"{r['id']}.{k['name']}" for r in (*spec["nodes"], *spec["stages"]) for k in r["knobs"] if k["kind"] == "vector"}
    assert set(seen["axes"]) == vectors and len(vectors) > 40
    for name, parts in seen["axes"].items():
        assert parts == [[index, text] for index, text in enumerate("WXYZ"[-len(parts) :])], name
    walls = {"Wall X Low", "Wall X High", "Wall Z Low", "Wall Z High", "Wall Y Low", "Wall Y High"}
    assert walls == {text for text in seen["labels"] if text.startswith("Wall") and not text.endswith(":")}
    outer, inner = seen["searched"]["MpmGraphTree"], seen["searched"]["MpmSubstepTree"]
    assert sorted(each.partition(":")[0] for each in outer) == sorted(f"{r['label']} ({r['category']})" for r in spec["nodes"])
    assert any(each.startswith("Stream (Emit): pour, ") for each in outer), "what artists call it finds it too"
    emit = seen["menus"]["Emit"]
    assert any(each.startswith("Stream: pour, ") for each in emit), "since 4.2 typing in the menu searches what it says"
    assert "Sphere Emitter" in emit
    assert {record["label"] for record in spec["stages"]} < set(inner)
    assert "k_substeps" not in seen["folded"] and {"k_gravity", "advanced"} < set(seen["folded"])
    assert {"k_substeps", "k_dt_max"} < set(seen["rows"])
    assert seen["words"][0] == "Stiffness [Pa]" and seen["words"][1].startswith("Young's modulus, Pa. Stiffness against stretch")
    assert seen["did"] == ["FINISHED"] and seen["new"] == [1, "MpmNode_emit_sphere", [120.0, -80.0]]


def test_settings_of_a_preset_are_fields():
    """Fields that were set reach the graph, and no others; what no field can hold stays as it was; all comes back as it went in."""
    seen = in_blender(SETTINGS)
    assert seen["plain"] == "explicit_apic" and {"bulk_modulus", "air_temperature", "cfl"} <= set(seen["fields"])
    assert seen["set"] == {"preset": "explicit_apic", "set": {"transfer": "flip", "cfl": 0.3}}
    assert seen["other"] == "implicit_apic", "the fields of a preset are its own"
    assert seen["both"] == {"preset": "explicit_apic", "set": {"rasterize.kernel": "cubic", "transfer": "flip", "cfl": 0.3}}
    assert seen["broken"] == {"preset": "explicit_apic", "set": "no JSON"}, "validation says what is wrong with it"
    whole, kernel, text, has_cfl = seen["loaded"]
    assert whole and kernel == "cubic" and not has_cfl and all(word in text for word in ("keys", "no such", "remove"))
    assert seen["changed"]["set"]["kernel"] == "quadratic" and seen["changed"]["edits"] == [{"remove": "x"}]
    assert seen["changed"]["set"]["cfl"] == {"keys": [[1, 0.3, "linear"]]}
    same, choice, stages = seen["looked"]
    assert same and choice == "explicit_apic" and len(stages) > 3, "to look at stages changes nothing"
    assert seen["trees"] == 1, "looked at twice, there is one of them"
    choice, left, before = seen["touched"]
    assert choice == "OWN_GRAPH" and left == before - 1, "a stage that was taken out is out"
    assert seen["own"] == {"transfer": "flip", "cfl": 0.25}
    assert seen["older"] == ["flip", '{"rasterize.kernel": "cubic"}']
    assert seen["same"] == {"preset": "explicit_apic", "set": {"rasterize.kernel": "cubic", "transfer": "flip"}}
