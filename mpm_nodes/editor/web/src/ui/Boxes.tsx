import { type Node, type NodeProps, NodeResizer } from "@xyflow/react";
import { memo } from "react";
import { type Box, changedBox, COLOURS, type Point } from "../model/annotations";
import { editGraph, get, select, set } from "../store";

export type BoxNode = Node<{ box: Box; own: boolean }, "frame" | "note">;

const resized = (id: string) => (_: unknown, { x, y, width, height }: { x: number; y: number; width: number; height: number }) =>
  editGraph((graph) => changedBox(graph, id, { position: [Math.round(x), Math.round(-y)], size: [Math.round(width), Math.round(height)] }));

/** A frame around nodes: dragged by its title it takes along what lies in it. */
export const FrameBox = memo(function FrameBox({ data: { box, own }, selected }: NodeProps<BoxNode>) {
  return (
    <div className={`frame-box${selected ? " selected" : ""}`} style={{ borderColor: box.colour, "--tint": box.colour } as React.CSSProperties}>
      {own && <NodeResizer isVisible={selected} minWidth={120} minHeight={80} color="var(--accent)" onResizeEnd={resized(box.id)} />}
      <div className="frame-head" style={{ background: box.colour }} onDoubleClick={(event) => { event.stopPropagation(); set({ focusKnob: "text" }); }}>{box.text || "Frame"}</div>
    </div>
  );
});

export const NoteBox = memo(function NoteBox({ data: { box, own }, selected }: NodeProps<BoxNode>) {
  return (
    <div className={`note-box${selected ? " selected" : ""}`} style={{ "--tint": box.colour } as React.CSSProperties}>
      {own && <NodeResizer isVisible={selected} minWidth={80} minHeight={40} color="var(--accent)" onResizeEnd={resized(box.id)} />}
      <div className="note-head" style={{ background: box.colour }} />
      <textarea className="nodrag nowheel" aria-label="Note" placeholder="Note" value={box.text} readOnly={!own} spellCheck={false}
        onFocus={() => { if (!get().selected.has(box.id)) select([box.id]); }} onChange={(event) => editGraph((graph) => changedBox(graph, box.id, { text: event.target.value }), box.id)} />
    </div>
  );
});

/** What a frame or a note is, in the place of knobs. */
export function BoxPanel({ box, own, focused }: { box: Box; own: boolean; focused: boolean }) {
  const change = (now: { text?: string; colour?: string; size?: Point }, key = "") => editGraph((graph) => changedBox(graph, box.id, now), key);
  return (
    <aside className="knobs" aria-label={box.kind === "frame" ? "Frame" : "Note"}>
      <h2>{box.kind === "frame" ? "Frame" : "Note"}</h2>
      <label className="comment-field">{box.kind === "frame" ? "Title" : "Text"}
        {box.kind === "frame" ? <input autoFocus={focused} key={String(focused)} value={box.text} readOnly={!own} spellCheck={false} onChange={(event) => change({ text: event.target.value }, `${box.id}/text`)} />
          : <textarea rows={6} value={box.text} readOnly={!own} onChange={(event) => change({ text: event.target.value }, box.id)} />}
      </label>
      <Swatches colour={box.colour} disabled={!own} onChoose={(colour) => change({ colour })} />
      <p className="note">{box.kind === "frame" ? "Dragged by its title, a frame takes along what lies in it. It means nothing to the cook." : "A note means nothing to the cook."}</p>
    </aside>
  );
}

/** Colours to choose from; `none` is offered where there is one to go back to. */
export function Swatches({ colour, none, disabled, onChoose }: { colour: string; none?: string; disabled: boolean; onChoose: (colour: string) => void }) {
  return (
    <div className="swatches" role="group" aria-label="Colour">
      {COLOURS.map((each) => <button key={each} disabled={disabled} aria-pressed={each === colour.toLowerCase()} aria-label={`Colour ${each}`} title={each} style={{ background: each }} onClick={() => onChoose(each)} />)}
      {none && <button className="none" disabled={disabled || !colour} onClick={() => onChoose("")}>{none}</button>}
    </div>
  );
}
