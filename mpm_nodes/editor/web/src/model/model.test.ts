/** Round trips and edits of graph files; `MPM_GRAPHS` holds the folders whose graphs are taken, `MPM_SPEC` the specification. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import * as g from "./graph";
import { type JsonObject, parse, print, same } from "./json";
import { columns } from "./layout";
import { Kinds, type Spec } from "./spec";

const spec = JSON.parse(readFileSync(process.env.MPM_SPEC!, "utf-8")) as Spec, kinds = new Kinds(spec);
const folders = process.env.MPM_GRAPHS!.split(":");
const files = folders.flatMap((folder) => readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => `${folder}/${name}`));
const graphs = files.map((path) => [path, readFileSync(path, "utf-8")] as const).filter(([, text]) => JSON.parse(text).format === spec.graph_format.name);
const root = (text: string) => parse(text).root.value as JsonObject;
const look = (graph: JsonObject) => (name: string) => kinds.nodes.get(g.typeOf(g.entryOf(graph, name)));

test("there are graphs", () => assert.ok(graphs.length > 100, String(graphs.length)));

for (const [path, text] of graphs) {
  test(path, () => {
    const source = parse(text), document = source.root.value as JsonObject, names = Object.keys(g.nodesOf(document));
    assert.deepEqual(document, JSON.parse(text));
    assert.equal(print(document, source), text, "what is not edited keeps its bytes");
    assert.equal(print(structuredClone(document), source), text);

    // one knob: one place of the text; taken back: the bytes of before
    const [first] = names, edited = g.setKnob(document, first, "of_another_program", [1.5, { a: "\u2028" }]), written = print(edited, source);
    assert.deepEqual(JSON.parse(written), edited);
    assert.equal(print(g.setKnob(edited, first, "of_another_program", undefined), source), g.entryOf(document, first).knobs ? text : print(g.setKnob(document, first, "x", undefined), source));
    let front = 0, back = 0;
    while (front < text.length && text[front] === written[front]) front++;
    while (back < text.length - front && text.at(-1 - back) === written.at(-1 - back)) back++;
    assert.ok(text.length - front - back <= 4, `only one place is written: ${text.slice(front, text.length - back)}`);

    // a rename and back, with all its wires
    assert.deepEqual(g.renamed(g.renamed(document, first, "quite_another"), "quite_another", first), document);
    assert.deepEqual(JSON.parse(print(g.renamed(document, first, "quite_another"), source)), g.renamed(document, first, "quite_another"));

    // every wire is seen, fits, and can be taken away and put back
    const wires = g.wiresOf(document, look(document));
    const written_ = names.flatMap((name) => Object.values(g.inputsOf(g.entryOf(document, name))).flat());
    assert.equal(wires.length, written_.length);
    for (const wire of wires) {
      const input = look(document)(wire.target)!.inputs.find((each) => each.name === wire.port)!;
      const output = look(document)(wire.source)!.outputs.find((each) => each.name === wire.output);
      assert.equal(g.refusal(output, input, kinds), "");
      assert.equal(g.reaches(wires, wire.target, wire.source), false);
      const cut = g.disconnected(document, wire), again = g.connected(cut, wire.target, input, g.spelled(wire.source, wire.output, look(document)(wire.source)));
      assert.equal(g.wiresOf(cut, look(cut)).length, wires.length - 1);
      assert.equal(g.wiresOf(again, look(again)).length, wires.length);
      assert.deepEqual(JSON.parse(print(cut, source)), cut);
    }

    // everything is copied and pasted; everything is removed
    const all = new Set(names), pasted = g.pasted(document, g.copied(document, all, spec, []), spec, [])!;
    assert.equal(pasted.names.length, names.length);
    assert.equal(g.wiresOf(pasted.graph, look(pasted.graph)).length, 2 * wires.length);
    assert.deepEqual(JSON.parse(print(pasted.graph, source)), pasted.graph);
    assert.deepEqual(g.removed(pasted.graph, new Set(pasted.names)), document);
    assert.deepEqual(g.removed(document, all).nodes, {});
    assert.equal(columns(names, wires, () => 100).size, names.length);

    // presets that are shown can be made one's own
    for (const name of names) {
      const knob = look(document)(name)?.knobs.find((each) => each.kind === "substeps");
      if (!knob) continue;
      const level: g.Level = [name, knob.name], { graph, own } = g.levelOf(document, level, kinds), made = g.madeOwn(document, level, kinds);
      const stages = (each: string) => (each === g.BEGIN ? g.beginKind(kinds) : kinds.stages.get(g.typeOf(g.entryOf(graph, each))));
      for (const wire of g.wiresOf(graph, stages)) assert.ok(stages(wire.source)?.outputs.some((each) => each.name === wire.output), JSON.stringify(wire));
      if (made) assert.deepEqual(g.levelOf(made, level, kinds).graph.nodes, graph.nodes);
      assert.equal(own, g.levelOf(document, level, kinds).own);
    }
  });
}

test("numbers, keys and spaces that are not ours are kept", () => {
  const text = '\n{ "format":"mpm_nodes.graph",\t"version" : 1,\n "nodes": {"a":{"type":"x","knobs":{"seed":12345678901234567890,"e":1.50e-3,"__proto__":{"b":-0.0}}} , "b": {"type": "y"}}}\n\n';
  const source = parse(text), document = source.root.value as JsonObject;
  assert.equal(print(document, source), text);
  const edited = g.setKnob(document, "b", "k", 2);
  assert.equal(print(edited, source), text.replace('{"type": "y"}', '{"type": "y", "knobs": {"k": 2}}'));
  assert.equal(print(g.setKnob(document, "a", "e", 2), source), text.replace("1.50e-3", "2"));
  assert.equal(print(g.removed(document, new Set(["b"])), source), text.replace(/ , "b": \{"type": "y"\}/, ""));
  assert.ok(same(parse(print(g.removed(document, new Set(["a"])), source)).root.value, g.removed(document, new Set(["a"]))));
});

test("any change of any JSON is written as it is", () => {
  let seed = 7;
  const random = (n: number) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n; };
  const value = (depth: number): unknown => [null, true, random(1000) - 500, random(1e6) / 7, `"${random(99)}\\\n{}[],:`, Array.from({ length: random(4) * +(depth > 0) }, () => value(depth - 1)),
    Object.fromEntries(Array.from({ length: random(4) * +(depth > 0) }, () => [`k${random(5)}`, value(depth - 1)]))][random(depth > 0 ? 7 : 5)];
  for (let n = 0; n < 3000; n++) {
    const before = value(4), after = value(4) as JsonObject, text = JSON.stringify(before, null, [0, 1, 2, "\t"][random(4)]);
    assert.deepEqual(JSON.parse(print(after, parse(text))), JSON.parse(JSON.stringify(after)), text);
    assert.equal(print(JSON.parse(text), parse(text)), text);
  }
});

test("old nodes take what is newer, the others keep their bytes", () => {
  const text = '{"format": "mpm_nodes.graph", "version": 1, "nodes": {\n "a": {"type": "emit_sphere", "knobs": {"radius": 0.50}},\n "u": {"type": "of_a_user"},\n "b": {"type": "solve", "version": 1, "knobs": {"old": 1, "time_scale": 2.0}, "inputs": {"sources": "a"}, "editor": {"x": 1}}}}';
  const source = parse(text), document = source.root.value as JsonObject, kind = kinds.nodes.get("solve")!;
  assert.ok(g.isOld(document, kinds.nodes, kinds));
  const defaults = Object.fromEntries(kind.knobs.map((knob) => [knob.name, knob.default]));
  const newer = { ...document, nodes: { a: { type: "emit_sphere", version: 9, knobs: { radius: 7 } }, u: { type: "of_a_user", version: 1 }, b: { type: "solve", version: kind.version, knobs: { ...defaults, time_scale: 2, dt_max: 0.5 }, inputs: { sources: "a" } } } } as JsonObject;
  const found = g.upgraded(document, newer, kinds);
  assert.deepEqual(g.entryOf(found, "b"), { type: "solve", version: kind.version, knobs: { time_scale: 2, dt_max: 0.5 }, inputs: { sources: "a" }, editor: { x: 1 } });
  assert.deepEqual(g.entryOf(found, "u"), { type: "of_a_user" });
  assert.ok(print(found, source).includes('"knobs": {"radius": 0.50}') && print(found, source).includes('"time_scale": 2.0'));
});

test("names", () => {
  const graph = root('{"nodes": {"a": {}, "a_2": {}}}');
  assert.equal(g.freeName(graph, "a"), "a_3");
  assert.equal(g.freeName(graph, "b"), "b");
});

test("of a preset that there is not, the same nothing is looked at each time: a page would draw a new one without end", () => {
  const document = g.setKnob({ nodes: { fall: { type: "solve" } } }, "fall", "substeps", { preset: "nope" }), level: g.Level = ["fall", "substeps"];
  const { graph, own, note } = g.levelOf(document, level, kinds);
  assert.equal(g.levelOf(document, level, kinds).graph, graph);
  assert.deepEqual([own, note], [false, 'There is no preset "nope".']);
});
