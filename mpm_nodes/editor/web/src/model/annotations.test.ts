/** Frames, notes, colours and dots: they stand beside what others keep, follow their nodes, and leave nothing behind. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as a from "./annotations";
import * as g from "./graph";
import { type JsonObject, parse, print } from "./json";
import { aligned } from "./layout";
import { Kinds, type Spec } from "./spec";

const spec = JSON.parse(readFileSync(process.env.MPM_SPEC!, "utf-8")) as Spec, kinds = new Kinds(spec);
const TEXT = '{"format": "mpm_nodes.graph", "version": 1, "editor": {"blender": {"file": "x"}}, "nodes": {\n "a": {"type": "emit_sphere", "editor": {"blender": {"object": "o"}}},\n "s": {"type": "solve", "inputs": {"sources": ["a"]}}}}';
const source = parse(TEXT), graph = source.root.value as JsonObject;
const look = (of: JsonObject) => (name: string) => kinds.nodes.get(g.typeOf(g.entryOf(of, name)));
const wire = g.wiresOf(graph, look(graph))[0];

test("a frame and a note are put in and taken away, and the file has its bytes again", () => {
  const one = a.withBox(graph, "frame", { position: [0, 10], text: "T" }), two = a.withBox(one.graph, "note", { position: [5, 5], size: [90, 70] });
  assert.deepEqual(a.boxesOf(two.graph).map((each) => [each.id, each.text, each.position, each.size]), [["frame:0", "T", [0, 10], [320, 200]], ["note:0", "", [5, 5], [90, 70]]]);
  const changed = a.changedBox(two.graph, "note:0", { text: "n", colour: "#112233" });
  assert.equal(a.boxesOf(changed)[1].colour, "#112233");
  assert.deepEqual((changed.editor as JsonObject).blender, { file: "x" });
  assert.equal(print(a.withoutBoxes(changed, new Set(["frame:0", "note:0"])), source), TEXT);
  assert.equal(a.changedBox(graph, "frame:3", { text: "" }), graph);
});

test("what is malformed is passed over and kept", () => {
  const odd = { ...graph, editor: { page: { frames: [3, { text: 1, position: ["a", 0] }, { position: [1, 2], colour: "url(x)", other: 1 }], notes: 5 } } };
  assert.deepEqual(a.boxesOf(odd).map((each) => each.id), ["frame:2"]);
  assert.equal(a.boxesOf(odd)[0].colour[0], "#");
  const lists = (((a.changedBox(odd, "frame:2", { text: "t" }).editor as JsonObject).page as JsonObject).frames as JsonObject[]);
  assert.deepEqual([lists[0], lists[2].other, lists[2].text], [3, 1, "t"]);
});

test("colours", () => {
  const red = g.setColour(graph, ["a"], "#aa0000");
  assert.equal(a.colourOf(g.entryOf(red, "a")), "#aa0000");
  assert.equal(a.colourOf(g.entryOf(g.setColour(graph, ["a"], "red; x"), "a")), "");
  assert.equal(print(g.setColour(red, ["a", "gone"], ""), source), TEXT);
});

test("dots follow the names of their wire, its copies and its end", () => {
  const dotted = g.dotted(graph, wire, [[1, 2], [3, 4]]), of = (found: JsonObject, node: string, text: string) => a.dotsOf(g.entryOf(found, node), "sources", text);
  assert.deepEqual(of(dotted, "s", "a"), [[1, 2], [3, 4]]);
  assert.deepEqual(g.wiresOf(dotted, look(dotted)), [wire]);
  const renamed = g.renamed(g.renamed(dotted, "a", "b"), "s", "t");
  assert.deepEqual(of(renamed, "t", "b"), [[1, 2], [3, 4]]);
  assert.deepEqual(of(renamed, "t", "a"), []);
  assert.equal(g.entryOf(g.removed(dotted, new Set(["a"])), "s").editor, undefined);
  assert.equal(g.entryOf(g.disconnected(dotted, wire), "s").editor, undefined);
  const pasted = g.pasted(dotted, g.copied(dotted, new Set(["a", "s"]), spec, []), spec, [])!;
  assert.deepEqual(of(pasted.graph, "s_2", "a_2"), [[41, -38], [43, -36]]);
  assert.deepEqual(of(g.movedDots(dotted, [wire], new Set(["a", "s"]), 10, 0), "s", "a"), [[11, 2], [13, 4]]);
  assert.deepEqual(of(g.movedDots(dotted, [wire], new Set(["s"]), 10, 0), "s", "a"), [[1, 2], [3, 4]]);
  assert.equal(print(g.dotted(dotted, wire, []), source), TEXT);
});

test("frames are copied with what is copied", () => {
  const made = a.withBox(graph, "frame", { position: [0, 0], text: "T" }), text = g.copied(made.graph, new Set(["a", made.id]), spec, []);
  const pasted = g.pasted(graph, text, spec, [])!;
  assert.deepEqual(pasted.names, ["a_2", "frame:0"]);
  assert.deepEqual(a.boxesOf(pasted.graph)[0].position, [40, -40]);
});

test("a node is put into the place of a wire among others", () => {
  const kind = kinds.nodes.get("set_attribute")!, more = g.addNode(g.addNode(graph, kinds.nodes.get("emit_sphere")!, "z", [0, 0]), kind, "m", [0, 0]);
  const port = kinds.nodes.get("solve")!.inputs.find((each) => each.name === "sources")!, two = g.connected(more, "s", port, "z");
  const found = g.inserted(two, wire, "m", kind, look(two), kinds);
  assert.deepEqual(g.inputsOf(g.entryOf(found, "s")).sources, ["m", "z"]);
  assert.equal(g.inputsOf(g.entryOf(found, "m")).particles, "a");
  assert.equal(g.fitsInto(wire, kinds.nodes.get("collide_plane"), look(two), kinds), null);
  assert.equal(g.inserted(two, wire, "m", kinds.nodes.get("collide_plane")!, look(two), kinds), two);
});

test("edges are aligned, gaps are even", () => {
  const places = new Map<string, [number, number]>([["a", [0, 0]], ["b", [50, 90]], ["c", [500, 10]]]), size = (): [number, number] => [100, 40];
  assert.deepEqual([...aligned(places, "left", size).values()], [[0, 0], [0, 90], [0, 10]]);
  assert.deepEqual([...aligned(places, "top", size).values()], [[0, 90], [50, 90], [500, 90]]);
  assert.deepEqual(aligned(places, "across", size).get("b"), [250, 90]);
  assert.deepEqual(aligned(places, "across", size).get("c"), [500, 10]);
});

test("numbers that a double cannot hold keep their digits wherever they go", () => {
  const text = '{"format": "mpm_nodes.graph", "version": 1, "nodes": {"a": {"type": "x", "knobs": {"seeds": [9007199254740993, 12345678901234567890]}}}}';
  const read = parse(text), document = read.root.value as JsonObject, seeds = g.knobsOf(g.entryOf(document, "a")).seeds as bigint[];
  assert.ok(print(g.setKnob(document, "a", "seeds", [seeds[1]]), read).includes("[12345678901234567890]"));
  assert.ok(print(g.renamed(document, "a", "b"), read).includes("9007199254740993"));
  const pasted = g.pasted(document, g.copied(document, new Set(["a"]), spec, []), spec, [])!;
  assert.deepEqual(g.knobsOf(g.entryOf(pasted.graph, "a_2")).seeds, [9007199254740993n, 12345678901234567890n]);
});
