/** Makes the shot of the hosts' contract by what the editor's page edits with: a JSON line of steps in, texts of files out. */
import { readFileSync } from "node:fs";
import * as g from "../../mpm_nodes/editor/web/src/model/graph";
import { type Json, type JsonObject, parse, pretty, print } from "../../mpm_nodes/editor/web/src/model/json";
import { Kinds, type Spec } from "../../mpm_nodes/editor/web/src/model/spec";

const given = JSON.parse(readFileSync(0, "utf-8")) as {
  spec: Spec; nodes: Record<string, [string, JsonObject]>; wires: [string, string, string, string][]; settings: Record<string, Json>;
};
const kinds = new Kinds(given.spec), kindOf = (name: string) => kinds.nodes.get(given.nodes[name][0])!;
const port = (name: string, wanted: string) => kindOf(name).inputs.find((each) => each.name === wanted);
const output = (name: string, wanted: string) => kindOf(name).outputs.find((each) => each.name === wanted);

let document = g.newGraph(given.spec);
for (const [name, value] of Object.entries(given.settings)) document = g.setSetting(document, name, value);
Object.entries(given.nodes).forEach(([name, [, knobs]], n) => {
  document = g.addNode(document, kindOf(name), name, [240 * n, 10]);
  for (const [knob, value] of Object.entries(knobs)) document = g.setKnob(document, name, knob, value);
});
for (const [source, out, target, wanted] of given.wires) {
  const refused = g.refusal(output(source, out), port(target, wanted), kinds);
  if (refused) throw new Error(refused);
  document = g.connected(document, target, port(target, wanted)!, g.spelled(source, out, kindOf(source)));
}
const text = `${pretty(document)}\n`, source = parse(text), read = source.root.value as JsonObject;
console.log(JSON.stringify({
  text, copy: print(read, source), wrong: print(g.setKnob(read, "ball", "radius", 0), source), longer: print(g.setSetting(read, "end", 3), source),
  refused: g.refusal(output("ground", "collider"), port("ball", "material"), kinds),
}));
