import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import type { Problem } from "../api";
import { colourOf } from "../model/annotations";
import * as g from "../model/graph";
import { type JsonObject, same } from "../model/json";
import type { Kind, Kinds } from "../model/spec";
import { bytes, changedNodes, heat, nodeTimes, seconds, type Spent, stageTimes } from "../model/status";
import { cook, dive, goTo, problemsOf, shownGraph, type State, timesOf } from "../store";
import { Icon } from "./Icon";
import { plain } from "./Prose";

export type CardData = {
  name: string; kind: Kind | undefined; typeName: string; kinds: Kinds; bypass: boolean; problems: Problem[]; errors: number; seconds: number;
  status: Status; substeps: string; comment: string; colour: string; memory: number; spent: Spent | null; readOnly: boolean;
};
/** What a node is in the shown revision: "" where nothing is cooked. */
export type Status = "" | "cooked" | "changed" | "cooking" | "failed";
const SIGNS: Record<Status, string> = { "": "", cooked: "M3 8.5 6.5 12 13 4.5", changed: "M8 2.5v6M8 13v.1", cooking: "M4 2.5 13 8l-9 5.5z", failed: "M4 4l8 8M12 4l-8 8" };
const SAID: Record<Status, string> = { "": "", cooked: "As in the shown cook", changed: "Changed since the shown cook, or what it takes from is", cooking: "Cooking", failed: "The cook failed here" };
export type CardNode = Node<CardData, "card">;

export const ROW = 22, HEAD = 42, WIDTH = 190;
/** How tall two lines of a comment are. */
const COMMENT = 34;
/** Of nodes whose type is not known here. */
const UNKNOWN = "#7a2f2f";

export interface Told { changed: Set<string> | null; times: Map<string, Spent> | null; rest: Spent | null }

/** Return what all cards of the shown level have from the cook. */
export function toldOf(s: State): Told {
  const [solve] = s.level, { seconds: took, stages } = timesOf(s);
  const times = !s.heat ? null : solve === undefined ? nodeTimes(took) : stageTimes(stages.get(solve) ?? new Map());
  // what is done between stages, as sorting, stands with the beginning
  const others = [...times ?? []].filter(([name]) => !Object.hasOwn(g.nodesOf(shownGraph(s).graph), name)), sum = (of: "seconds" | "share") => others.reduce((total, [, each]) => total + each[of], 0);
  const rest = solve !== undefined && others.length ? { seconds: sum("seconds"), share: sum("share"), beside: [] } : null;
  return { rest, changed: s.cooked && s.document && !s.level.length ? changedNodes(s.document, s.cooked, s.kinds!) : null, times };
}

/** Return what a card shows; `before` where it shows the same, so that it is not drawn again. */
export function cardOf(s: State, graph: JsonObject, name: string, kind: Kind | undefined, told: Told, before?: CardData): CardData {
  const entry = g.entryOf(graph, name), kinds = s.kinds!, problems = problemsOf(s, name), here = !s.level.length && s.cook.path === s.path;
  const status = here && s.cook.running && s.cook.now === name ? "cooking" : here && !s.cook.running && s.cook.failed === name ? "failed" : !told.changed || !Object.hasOwn(g.nodesOf(s.cooked!), name) ? "" : told.changed.has(name) ? "changed" : "cooked";
  const found: CardData = {
    name, kind, typeName: g.typeOf(entry), kinds, bypass: entry.bypass === true, problems, errors: problems.filter((problem) => s.checked.problems.includes(problem)).length,
    substeps: s.level.length ? "" : kind?.knobs.find((knob) => knob.kind === "substeps")?.name ?? "", comment: typeof entry.comment === "string" ? entry.comment : "",
    seconds: s.level.length ? 0 : timesOf(s).seconds.get(name) ?? 0, status, memory: s.level.length ? 0 : s.checked.nodes?.[name] ?? 0, spent: told.times?.get(name) ?? (name === g.BEGIN ? told.rest : null), readOnly: s.level.length > 0, colour: colourOf(entry) || (kind ? kinds.categoryColour(kind.category) : UNKNOWN),
  };
  const keys = Object.keys(found) as (keyof CardData)[];
  return before && keys.every((key) => before[key] === found[key] || (["problems", "spent"].includes(key) && same(found[key] as never, before[key] as never))) ? before : found;
}

/** Return how tall a node is drawn. */
export function cardHeight(kind: Kind | undefined, entry: JsonObject = {}): number {
  return (entry.comment ? COMMENT : 0) + HEAD + ROW * Math.max(1, (kind?.inputs.length ?? 0) + (kind?.outputs.filter((each) => !each.internal).length ?? 0)) + 10;
}

/** Return how far below the top of a node the middle of a port is drawn. */
export function portBelow(kind: Kind | undefined, port: string, isOutput: boolean): number {
  const outputs = kind?.outputs.filter((each) => !each.internal) ?? [], row = isOutput ? outputs.findIndex((each) => each.name === port) : outputs.length + (kind?.inputs.findIndex((each) => each.name === port) ?? 0);
  return HEAD + ROW * (Math.max(0, row) + 0.5);
}

export const NodeCard = memo(function NodeCard({ data, selected }: NodeProps<CardNode>) {
  const { kind, kinds, name, problems } = data, outputs = kind?.outputs.filter((each) => !each.internal) ?? [];
  const classes = ["card", selected && "selected", data.bypass && "bypassed", data.errors > 0 && "failing", data.status, data.spent && "heated"].filter(Boolean).join(" ");
  const hot = data.spent && heat(data.spent.share);
  return (
    <div className={classes} style={hot ? { background: hot.ground, borderColor: hot.ground } : undefined}>
      <div className="card-head" style={{ background: hot ? hot.ground : data.colour, color: hot?.text }} title={kind ? plain(kind.doc.split("\n")[0]) : "This type is not known here; it is kept as it is."}>
        <b>{name || kind?.label}</b>
        <small>{kind ? (name ? kind.label : "") : `unknown: ${data.typeName}`}{data.bypass ? " · bypassed" : ""}</small>
        {selected && !data.readOnly && name && <button className={`here nodrag${data.substeps ? " beside" : ""}`} title="Cook to here: this node and what it needs (Shift Enter)" aria-label={`Cook to ${name}`} onClick={(event) => { event.stopPropagation(); void cook("new", { to: name }); }}><Icon d="M4 2.5 11 8l-7 5.5zM13 3v10" /></button>}
        {data.substeps && <button className="dive nodrag" title={`Show the substeps of ${name}`} aria-label={`Show the substeps of ${name}`} onClick={(event) => { event.stopPropagation(); dive([name, data.substeps]); }}><Icon d="M3 4v4q0 2 2 2h8M10 7l3 3-3 3" /></button>}
      </div>
      {outputs.map((output) => (
        <div className="port out" key={`o-${output.name}`} title={kinds.typeLabel(output.type)}>
          {output.label}<Handle type="source" id={output.name} position={Position.Right} style={{ background: kinds.typeColour(output.type) }} />
        </div>
      ))}
      {kind?.inputs.map((input) => (
        <div className="port in" key={`i-${input.name}`} title={`${kinds.typeLabel(input.type)}${input.many ? ", any number of wires" : ""}${input.optional ? "" : ", needed"}. ${plain(input.doc)}`}>
          <Handle type="target" id={input.name} position={Position.Left} className={input.many ? "many" : ""} style={{ background: kinds.typeColour(input.type.split(" | ")[0]) }} />
          {input.label}{input.optional ? "" : <span className="needed" aria-label="needed"> *</span>}
        </div>
      ))}
      {data.comment && <p className="comment">{data.comment}</p>}
      {(data.status || data.seconds > 0 || data.spent) && (
        <span className={`seconds ${data.status}`} title={[SAID[data.status], data.seconds > 0 && "seconds in the shown cook", data.memory > 0 && `about ${bytes(data.memory)} of memory, estimated before the cook`, data.spent?.beside.length && `fused with ${data.spent.beside.join(", ")}: one figure for all of them`].filter(Boolean).join("; ")}>
          {data.status && <><Icon d={SIGNS[data.status]} /><span className="sr">{SAID[data.status]}</span></>}
          {data.spent ? `${(data.spent.share * 100).toFixed(data.spent.share < 0.1 ? 1 : 0)} % · ${seconds(data.spent.seconds)}${data.spent.beside.length ? " fused" : ""}` : [data.seconds > 0 && seconds(data.seconds), data.memory > 0 && bytes(data.memory)].filter(Boolean).join(" · ")}
        </span>
      )}
      {problems.length > 0 && (
        <button className={`badge nodrag ${data.errors ? "error" : "warning"}`} onClick={(event) => { event.stopPropagation(); goTo(problems[0]); }}
          title={plain(problems.map((problem) => `${problem.place}: ${problem.message}${problem.cure ? `; ${problem.cure}` : ""}`).join("\n"))}
          aria-label={`${problems.length} problems of ${name}`}>{data.errors ? "!" : "i"} {problems.length}</button>
      )}
    </div>
  );
});
