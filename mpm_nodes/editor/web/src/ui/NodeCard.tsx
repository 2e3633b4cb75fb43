import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import type { Problem } from "../api";
import { colourOf } from "../model/annotations";
import * as g from "../model/graph";
import { type JsonObject, same } from "../model/json";
import type { Kind, Kinds } from "../model/spec";
import { dive, goTo, problemsOf, type State } from "../store";
import { Icon } from "./Icon";

export type CardData = {
  name: string; kind: Kind | undefined; typeName: string; kinds: Kinds; bypass: boolean; problems: Problem[]; errors: number; seconds: number;
  cooking: boolean; substeps: string; comment: string; colour: string;
};
export type CardNode = Node<CardData, "card">;

export const ROW = 22, HEAD = 42, WIDTH = 190;
/** Of nodes whose type is not known here. */
const UNKNOWN = "#7a2f2f";

/** Return what a card shows; `before` where it shows the same, so that it is not drawn again. */
export function cardOf(s: State, graph: JsonObject, name: string, kind: Kind | undefined, before?: CardData): CardData {
  const entry = g.entryOf(graph, name), kinds = s.kinds!, problems = problemsOf(s, name), here = !s.level.length && s.cook.path === s.path;
  const found: CardData = {
    name, kind, typeName: g.typeOf(entry), kinds, bypass: entry.bypass === true, problems, errors: problems.filter((problem) => s.checked.problems.includes(problem)).length,
    substeps: s.level.length ? "" : kind?.knobs.find((knob) => knob.kind === "substeps")?.name ?? "", comment: typeof entry.comment === "string" ? entry.comment : "",
    seconds: here ? s.cook.seconds.get(name) ?? 0 : 0, cooking: here && s.cook.running && s.cook.now === name, colour: colourOf(entry) || (kind ? kinds.categoryColour(kind.category) : UNKNOWN),
  };
  const keys = Object.keys(found) as (keyof CardData)[];
  return before && keys.every((key) => before[key] === found[key] || (key === "problems" && same(problems as never, before.problems as never))) ? before : found;
}

/** Return how tall a node is drawn. */
export function cardHeight(kind: Kind | undefined): number {
  return HEAD + ROW * Math.max(1, (kind?.inputs.length ?? 0) + (kind?.outputs.filter((each) => !each.internal).length ?? 0)) + 10;
}

export const NodeCard = memo(function NodeCard({ data, selected }: NodeProps<CardNode>) {
  const { kind, kinds, name, problems } = data, outputs = kind?.outputs.filter((each) => !each.internal) ?? [];
  const classes = ["card", selected && "selected", data.bypass && "bypassed", data.errors > 0 && "failing", data.cooking && "cooking"].filter(Boolean).join(" ");
  return (
    <div className={classes}>
      <div className="card-head" style={{ background: data.colour }} title={kind?.doc.split("\n")[0] ?? "This type is not known here; it is kept as it is."}>
        <b>{name || kind?.label}</b>
        <small>{kind ? (name ? kind.label : "") : `unknown: ${data.typeName}`}{data.bypass ? " · bypassed" : ""}</small>
        {data.substeps && <button className="dive nodrag" title={`Show the substeps of ${name}`} aria-label={`Show the substeps of ${name}`} onClick={(event) => { event.stopPropagation(); dive([name, data.substeps]); }}><Icon d="M3 4v4q0 2 2 2h8M10 7l3 3-3 3" /></button>}
      </div>
      {outputs.map((output) => (
        <div className="port out" key={`o-${output.name}`} title={kinds.typeLabel(output.type)}>
          {output.label}<Handle type="source" id={output.name} position={Position.Right} style={{ background: kinds.typeColour(output.type) }} />
        </div>
      ))}
      {kind?.inputs.map((input) => (
        <div className="port in" key={`i-${input.name}`} title={`${kinds.typeLabel(input.type)}${input.many ? ", any number of wires" : ""}${input.optional ? "" : ", needed"}. ${input.doc}`}>
          <Handle type="target" id={input.name} position={Position.Left} className={input.many ? "many" : ""} style={{ background: kinds.typeColour(input.type.split(" | ")[0]) }} />
          {input.label}{input.optional ? "" : <span className="needed" aria-label="needed"> *</span>}
        </div>
      ))}
      {data.comment && <p className="comment">{data.comment}</p>}
      {data.seconds > 0 && <span className="seconds" title="Seconds in the newest cook">{data.seconds < 10 ? data.seconds.toFixed(2) : data.seconds.toFixed(0)} s</span>}
      {problems.length > 0 && (
        <button className={`badge nodrag ${data.errors ? "error" : "warning"}`} onClick={(event) => { event.stopPropagation(); goTo(problems[0]); }}
          title={problems.map((problem) => `${problem.place}: ${problem.message}${problem.cure ? `; ${problem.cure}` : ""}`).join("\n")}
          aria-label={`${problems.length} problems of ${name}`}>{data.errors ? "!" : "i"} {problems.length}</button>
      )}
    </div>
  );
});
