import {
  applyNodeChanges, Background, type Connection, type Edge, type FinalConnectionState, MiniMap, type NodeChange, ReactFlow, ReactFlowProvider, useReactFlow, useStore as useFlowStore,
} from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as g from "../model/graph";
import { isObject } from "../model/json";
import { columns } from "../model/layout";
import type { Kind } from "../model/spec";
import * as store from "../store";
import { editGraph, get, kindLookup, problemsOf, say, set, shownGraph, useStore } from "../store";
import { cardHeight, type CardNode, NodeCard } from "./NodeCard";
import { Palette } from "./Palette";

/** Columns of stages beside each other: a substep is one long chain. */
const ACROSS = 6;
/** Zoom below which only names are drawn: the rest could not be read. */
const FAR = 0.38;
const NODE_TYPES = { card: NodeCard };
const still = matchMedia("(prefers-reduced-motion: reduce)");

export function GraphPane() { return <ReactFlowProvider><Flow /></ReactFlowProvider>; }

interface Search { x: number; y: number; place: { x: number; y: number }; from: { node: string; port: string; isOutput: boolean } | null }

function Flow() {
  const s = useStore((each) => each), flow = useReactFlow<CardNode>(), host = useRef<HTMLDivElement>(null), pointer = useRef({ x: 0, y: 0 });
  const [nodes, setNodes] = useState<CardNode[]>([]), [search, setSearch] = useState<Search | null>(null), fitted = useRef("");
  const far = useFlowStore((flowState) => flowState.transform[2] < FAR);
  const { graph, own, note } = shownGraph(s), kindOf = kindLookup(s), kinds = s.kinds!;
  const wires = useMemo(() => g.wiresOf(graph, kindLookup(get())), [graph, s.level]);
  const names = useMemo(() => [...(s.level.length ? [g.BEGIN] : []), ...Object.keys(g.nodesOf(graph))], [graph, s.level]);
  const places = useMemo(() => placesOf(graph, names, wires, kindLookup(get()), own), [graph, names, wires, own]);

  const placesNow = useRef(places);
  placesNow.current = places;
  // what the document says, with what React Flow has measured
  useEffect(() => {
    setNodes((before) => {
      const was = new Map(before.map((node) => [node.id, node]));
      return names.map((name) => {
        const entry = g.entryOf(graph, name), kind = kindOf(name), problems = problemsOf(s, name), [x, y] = places.get(name)!;
        const substeps = s.level.length ? "" : kind?.knobs.find((knob) => knob.kind === "substeps")?.name ?? "";
        const errors = problems.filter((problem) => s.checked.problems.includes(problem)).length;
        const here = !s.level.length && s.cook.path === s.path;
        return { ...was.get(id(name)), id: id(name), type: "card", position: { x, y: -y }, selected: s.selected.has(name), deletable: own && name !== g.BEGIN, draggable: own && name !== g.BEGIN || !own,
          data: { name, kind, typeName: g.typeOf(entry), kinds, bypass: entry.bypass === true, problems, errors, substeps, comment: typeof entry.comment === "string" ? entry.comment : "",
            seconds: here ? s.cook.seconds.get(name) ?? 0 : 0, cooking: here && s.cook.running && s.cook.now === name } } as CardNode;
      });
    });
  }, [graph, places, s.selected, s.checked, s.cook.seconds, s.cook.now, s.cook.running, s.path]);

  const edges = useMemo<Edge[]>(() => wires.map((wire) => {
    const output = kindLookup(get())(wire.source)?.outputs.find((each) => each.name === wire.output);
    return { id: `${wire.source}.${wire.output}>${wire.target}.${wire.port}.${wire.index}`, source: id(wire.source), sourceHandle: wire.output, target: id(wire.target), targetHandle: wire.port,
      data: { wire }, deletable: own, style: { stroke: output ? kinds.typeColour(output.type) : "#999" } };
  }), [wires, own]);
  const [cut, setCut] = useState<ReadonlySet<string>>(new Set());
  const shownEdges = useMemo(() => edges.map((edge) => ({ ...edge, selected: cut.has(edge.id) })), [edges, cut]);

  // a graph that is opened, or dived into, is seen whole
  useEffect(() => {
    const key = `${s.path}|${s.level.join("/")}`;
    if (fitted.current !== key && nodes.length && nodes.every((node) => node.measured)) { fitted.current = key; void flow.fitView({ padding: 0.15, maxZoom: 1.1 }); }
  }, [nodes, s.path, s.level]);

  const change = useCallback((changes: NodeChange<CardNode>[]) => {
    setNodes((before) => applyNodeChanges(changes, before));
    const picked = changes.filter((each) => each.type === "select");
    if (picked.length) {
      const chosen = new Set(get().selected);
      for (const each of picked) if (each.selected) chosen.add(name(each.id)); else chosen.delete(name(each.id));
      set({ selected: chosen, focusKnob: "" });
    }
  }, []);

  const drop = useCallback((_: unknown, __: unknown, dragged: CardNode[], key = "") => {
    const now = new Map(flow.getNodes().map((node) => [name(node.id), [Math.round(node.position.x), Math.round(-node.position.y)] as [number, number]]));
    for (const node of dragged) now.set(name(node.id), [Math.round(node.position.x), Math.round(-node.position.y)]);
    const { graph: shown } = shownGraph(get());
    const unplaced = Object.keys(g.nodesOf(shown)).every((each) => g.positionOf(g.entryOf(shown, each)).every((part) => part === 0));
    // once one node has a place in the file, all have: what has none would lie on one heap in other programs
    editGraph((each) => g.moved(each, unplaced ? now : new Map(dragged.map((node) => [name(node.id), now.get(name(node.id))!]))), key);
  }, []);

  /** Keep where the arrow keys have moved nodes. */
  const keepPlaces = () => {
    const { graph: shown, own: mine } = shownGraph(get()), moved = flow.getNodes().filter((node) => { const [x, y] = placesNow.current.get(name(node.id)) ?? [0, 0]; return node.position.x !== x || node.position.y !== -y; });
    if (mine && moved.length && g.nodesOf(shown)) drop(null, null, moved, "arrows");
  };

  const why = (connection: Connection | Edge): string => {
    const { level } = get(), lookup = kindLookup(get()), source = name(connection.source), target = name(connection.target);
    const output = lookup(source)?.outputs.find((each) => each.name === connection.sourceHandle);
    const input = lookup(target)?.inputs.find((each) => each.name === connection.targetHandle);
    const refused = g.refusal(output, input, kinds);
    if (refused) return refused;
    if (!shownGraph(get()).own) return level.length ? "This is a preset; make it your own to change it." : "";
    return g.reaches(wires, target, source) ? `${source} depends on ${target}: the wire would close a loop.` : "";
  };

  const connect = (connection: Connection) => {
    const lookup = kindLookup(get()), source = name(connection.source), target = name(connection.target);
    const input = lookup(target)?.inputs.find((each) => each.name === connection.targetHandle);
    if (input) editGraph((each) => g.connected(each, target, input, g.spelled(source, connection.sourceHandle!, lookup(source))));
  };

  const connectEnd = (event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
    if (state.isValid) return;
    const at = "clientX" in event ? event : event.changedTouches[0];
    if (state.toHandle && state.fromHandle) {
      const [from, to] = state.fromHandle.type === "source" ? [state.fromHandle, state.toHandle] : [state.toHandle, state.fromHandle];
      say(from.type === to.type ? "A wire goes from an output to an input." : why({ source: from.nodeId, sourceHandle: from.id ?? null, target: to.nodeId, targetHandle: to.id ?? null }));
    } else if (state.fromHandle && own && (event.target as Element).classList.contains("react-flow__pane")) {
      ask(at.clientX, at.clientY, { node: name(state.fromHandle.nodeId), port: state.fromHandle.id ?? "", isOutput: state.fromHandle.type === "source" });
    }
  };

  const ask = (x: number, y: number, from: Search["from"] = null) => {
    if (own) setSearch({ x, y, place: flow.screenToFlowPosition({ x, y }), from });
    else say("This is a preset; make it your own to change it.");
  };

  const add = (kind: Kind) => {
    const { place, from } = search!, { graph: shown } = shownGraph(get());
    const wanted = kind.id.replace(/^(material|emit|collide|force|field)_/, ""), free = g.freeName(shown, wanted, kinds.spec.reserved_names);
    const fresh = [...nodes], x = Math.round(place.x), y = Math.round(-place.y);
    const all = new Map(fresh.map((node) => [name(node.id), [Math.round(node.position.x), Math.round(-node.position.y)] as [number, number]]));
    editGraph((each) => {
      let made = g.addNode(g.moved(each, all), kind, free, [x, y === 0 && x === 0 ? 1 : y]);
      if (from) {
        const other = kindOf(from.node), input = from.isOutput ? kind.inputs.find((port) => !g.refusal(other?.outputs.find((out) => out.name === from.port), port, kinds)) : other?.inputs.find((port) => port.name === from.port);
        const output = from.isOutput ? from.port : kind.outputs.find((out) => !out.internal && !g.refusal(out, input, kinds))?.name;
        if (input && output) made = g.connected(made, from.isOutput ? free : from.node, input, g.spelled(from.isOutput ? from.node : free, output, from.isOutput ? other : kind));
      }
      return made;
    });
    setSearch(null);
    store.select([free]);
    host.current?.focus();
  };

  const fit = (shown = nodes) => void flow.fitView({ padding: 0.15, maxZoom: 1.2, duration: still.matches ? 0 : 150, nodes: shown });

  const arrange = () => {
    const found = columns(names.filter((each) => each !== g.BEGIN), wires, (each) => cardHeight(kindOf(each)), s.level.length ? ACROSS : Infinity);
    editGraph((each) => g.moved(each, found));
    fitted.current = "";
  };

  const keys = (event: React.KeyboardEvent) => {
    if ((event.target as HTMLElement).matches("input, textarea, select") || search) return;
    const command = event.ctrlKey || event.metaKey, key = event.key.toLowerCase();
    if ((event.target as HTMLElement).closest("button") && (key === "enter" || key === " ")) return; // it presses the button
    if (key.startsWith("arrow")) setTimeout(keepPlaces);
    if (key === "tab" && !event.shiftKey && !command && event.target === host.current && host.current.matches(":hover") || (key === "a" && event.shiftKey && !command)) {
      event.preventDefault();
      ask(pointer.current.x || host.current!.getBoundingClientRect().left + 200, pointer.current.y || host.current!.getBoundingClientRect().top + 100);
    } else if ((key === "delete" || key === "backspace" || key === "x") && !command) { event.preventDefault(); removeChosen(); }
    else if (key === "a" && !event.altKey) { event.preventDefault(); store.select(names); }
    else if (key === "a" && event.altKey) { event.preventDefault(); store.select([]); }
    else if ((key === "f" || key === "home") && !command) fit(s.selected.size && key === "f" ? nodes.filter((node) => node.selected) : nodes);
    else if (key === "l" && !command) arrange();
    else if ((key === "m" || key === "b") && !command) for (const each of s.selected) editGraph((shown) => g.setField(shown, each, "bypass", g.entryOf(shown, each).bypass !== true));
    else if (key === "enter" || (key === "i" && !command)) { const [one] = s.selected, knob = one && kindOf(one)?.knobs.find((each) => each.kind === "substeps"); if (one && knob && !s.level.length) store.dive([one, knob.name]); }
    else if (key === "u" || key === "escape") { if (s.level.length) store.dive([]); }
  };

  const removeChosen = () => {
    if (!own) return say("This is a preset; make it your own to change it.");
    const cuts = edges.filter((edge) => cut.has(edge.id)).map((edge) => edge.data!.wire as g.Wire).sort((a, b) => b.index - a.index);
    if (cuts.length) { editGraph((each) => cuts.reduce(g.disconnected, each)); setCut(new Set()); }
    else store.removeSelected();
  };

  useEffect(() => {
    const elsewhere = () => document.activeElement?.matches("input, textarea, select") || String(getSelection());
    const copy = (event: ClipboardEvent) => {
      const { selected, level } = get();
      if (elsewhere() || !selected.size) return;
      event.preventDefault();
      event.clipboardData!.setData("text/plain", g.copied(shownGraph(get()).graph, new Set(selected), kinds.spec, level));
      if (event.type === "cut" && shownGraph(get()).own) store.removeSelected();
    };
    const paste = (event: ClipboardEvent) => {
      if (document.activeElement?.matches("input, textarea, select")) return;
      const { level } = get(), found = g.pasted(shownGraph(get()).graph, event.clipboardData!.getData("text/plain"), kinds.spec, level);
      event.preventDefault();
      if (!found) return say("The clipboard holds no nodes of this kind of graph.");
      editGraph(() => found.graph);
      if (shownGraph(get()).own) store.select(found.names);
    };
    document.addEventListener("copy", copy); document.addEventListener("cut", copy); document.addEventListener("paste", paste);
    return () => { document.removeEventListener("copy", copy); document.removeEventListener("cut", copy); document.removeEventListener("paste", paste); };
  }, []);

  const own_ = s.level.length && !own ? g.madeOwn(s.document!, s.level, kinds) : null;
  return (
    <div className={`flow${far ? " far" : ""}`} ref={host} tabIndex={0} onKeyDown={keys} onPointerMove={(event) => { pointer.current = { x: event.clientX, y: event.clientY }; }}
      onPointerDown={() => { if (!host.current!.contains(document.activeElement)) host.current!.focus(); }}
      onDoubleClick={(event) => { if ((event.target as Element).classList.contains("react-flow__pane")) ask(event.clientX, event.clientY); }}>
      <nav className="crumbs" aria-label="Level">
        <button onClick={() => store.dive([])} aria-current={!s.level.length}>{s.path.split("/").at(-1)}</button>
        {s.level.length > 0 && <><span aria-hidden>›</span><button aria-current>{s.level[0]} · {isObject(graph) && typeof graph.label === "string" ? graph.label : s.level[1]}</button></>}
        {note && <span className="note">{note}</span>}
        {own_ && <button className="primary" onClick={() => store.edit(() => g.atLevel(own_, s.level, kinds, (each) => g.moved(each, places)))}>Make it my own</button>}
        {s.level.length > 0 && !own && !own_ && <span className="note">It cannot be changed here.</span>}
      </nav>
      <div className="tools"><button onClick={(event) => { const box = event.currentTarget.getBoundingClientRect(); ask(box.left - 200, box.bottom + 8); }} title="Tab, Shift A or a double click">+ Add</button><button onClick={arrange} title="L">Arrange</button><button onClick={() => fit()} title="F">Fit</button></div>
      <ReactFlow<CardNode> nodes={nodes} edges={shownEdges} nodeTypes={NODE_TYPES} onNodesChange={change} onNodeDragStop={(event, node, all) => drop(event, node, all)} onSelectionDragStop={(event, all) => drop(event, null, all)}
        onEdgesChange={(changes) => setCut((before) => { const now = new Set(before); for (const each of changes) if (each.type === "select") { if (each.selected) now.add(each.id); else now.delete(each.id); } return now; })}
        onConnect={connect} onConnectEnd={connectEnd} isValidConnection={(each) => why(each) === ""} onNodeDoubleClick={(_, node) => { if (node.data.substeps) store.dive([node.data.name, node.data.substeps]); }}
        deleteKeyCode={null} minZoom={0.05} maxZoom={2} zoomOnDoubleClick={false} onlyRenderVisibleElements={nodes.length > 60 && nodes.every((node) => node.measured)} connectionRadius={22} elevateNodesOnSelect
        panOnDrag={[0, 1]} selectionKeyCode="Shift" multiSelectionKeyCode={["Shift", "Control", "Meta"]} colorMode={s.theme === "auto" ? "system" : s.theme} disableKeyboardA11y={false} proOptions={{ hideAttribution: true }}>
        <Background gap={24} size={1.2} color="var(--dots)" />
        <MiniMap pannable zoomable nodeColor={(node) => { const kind = (node as CardNode).data.kind; return kind ? kinds.categoryColour(kind.category) : "#7a2f2f"; }} ariaLabel="Map of the graph" />
      </ReactFlow>
      {!names.length && <p className="hint">Tab, Shift A or a double click adds a node.</p>}
      {search && <Palette x={search.x} y={search.y} candidates={fitting(search.from)} kinds={kinds} onAdd={add} onClose={() => { setSearch(null); host.current?.focus(); }} />}
    </div>
  );

  function fitting(from: Search["from"]): Kind[] {
    const all = [...g.kindsAt(s.level, kinds).values()], other = from && kindOf(from.node);
    if (!from || !other) return all;
    if (from.isOutput) return all.filter((kind) => kind.inputs.some((input) => !g.refusal(other.outputs.find((each) => each.name === from.port), input, kinds)));
    const input = other.inputs.find((each) => each.name === from.port);
    return all.filter((kind) => kind.outputs.some((output) => !output.internal && !g.refusal(output, input, kinds)));
  }
}

/** React Flow wants names that are not empty. */
const id = (node: string) => node || " ";
const name = (node: string) => (node === " " ? g.BEGIN : node);

function placesOf(graph: Parameters<typeof g.nodesOf>[0], names: string[], wires: g.Wire[], kindOf: (name: string) => Kind | undefined, own: boolean): Map<string, [number, number]> {
  const inner = names.filter((each) => each !== g.BEGIN), given = new Map(inner.map((each) => [each, g.positionOf(g.entryOf(graph, each))]));
  // presets are placed for narrower nodes than these
  const placed = own && [...given.values()].some(([x, y]) => x !== 0 || y !== 0) || inner.length < 2;
  const found = placed ? given : columns(inner, wires, (each) => cardHeight(kindOf(each)), names.includes(g.BEGIN) ? ACROSS : Infinity);
  if (names.includes(g.BEGIN)) {
    const all = [...found.values()], left = Math.min(0, ...all.map(([x]) => x)), top = Math.max(...all.map(([, y]) => y), 0);
    found.set(g.BEGIN, [left - 260, top]);
  }
  return found;
}
