import {
  applyNodeChanges, Background, type Connection, type Edge, type FinalConnectionState, MiniMap, type Node, type NodeChange, ReactFlow, ReactFlowProvider, useReactFlow, useStore as useFlowStore,
} from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as a from "../model/annotations";
import * as g from "../model/graph";
import { type JsonObject, same } from "../model/json";
import { type Action, actionOf } from "../model/keymap";
import { aligned, type Alignment, columns, type Ends } from "../model/layout";
import { roomFor } from "../model/room";
import type { Kind } from "../model/spec";
import * as store from "../store";
import { editGraph, get, kindLookup, say, set, shownGraph, useStore } from "../store";
import { type BoxNode, FrameBox, NoteBox } from "./Boxes";
import { CurvePane } from "./CurvePane";
import { GraphBar, ownDocument } from "./GraphBar";
import { cardHeight, type CardNode, cardOf, NodeCard, portBelow, toldOf, WIDTH } from "./NodeCard";
import { Palette } from "./Palette";
import { Stroke } from "./Stroke";
import { useClipboard } from "./clipboard";
import { useCooked } from "./useCooked";
import { withDot, type WireEdge, WireLine } from "./WireEdge";

/** Columns of stages beside each other: a substep is one long chain. */
const ACROSS = 6;
/** Zoom below which only names are drawn: the rest could not be read. */
const FAR = 0.38;
/** Thinnest wire on the screen [px]. */
const THIN = 1.7;
const NODE_TYPES = { card: NodeCard, frame: FrameBox, note: NoteBox }, EDGE_TYPES = { wire: WireLine };
const still = matchMedia("(prefers-reduced-motion: reduce)");
const PRESET = "This is a preset; make it your own to change it.";

export function GraphPane() { return <ReactFlowProvider><Flow /></ReactFlowProvider>; }

type Shown = CardNode | BoxNode;
interface Search { x: number; y: number; place: { x: number; y: number }; from: { node: string; port: string; isOutput: boolean } | null; wire: g.Wire | null }
/** What is dragged: where everything stood, what frames take along, and the wire that would be opened. */
interface Grabbed { from: Map<string, { x: number; y: number }>; members: Set<string> }

function Flow() {
  const s = useStore((each) => each), flow = useReactFlow<Shown, WireEdge>(), host = useRef<HTMLDivElement>(null), pointer = useRef({ x: 0, y: 0 });
  const [nodes, setNodes] = useState<Shown[]>([]), [search, setSearch] = useState<Search | null>(null), [open, setOpen] = useState(""), fitted = useRef(""), grabbed = useRef<Grabbed>({ from: new Map(), members: new Set() });
  const far = useFlowStore((flowState) => flowState.transform[2] < FAR);
  // where the whole graph is seen a map of it would only lie on it
  const partly = useFlowStore(({ transform: [x, y, zoom], width, height, nodes: all }) => all.some((node) => { const left = x + node.position.x * zoom, top = y + node.position.y * zoom; return left < -1 || top < -1 || left + (node.measured?.width ?? 0) * zoom > width + 1 || top + (node.measured?.height ?? 0) * zoom > height + 1; }));
  // wires of even width would vanish from afar: they are drawn wider in steps of a third
  const wide = useFlowStore((flowState) => { const thin = THIN / flowState.transform[2]; return thin <= 2 ? 2 : 2 * 1.33 ** Math.ceil(Math.log(thin / 2) / Math.log(1.33)); });
  const { graph, own } = shownGraph(s), kindOf = kindLookup(s), kinds = s.kinds!;
  const wired = useWired(graph, s.level, own), wires = useMemo(() => wired.map((each) => each.wire), [wired]);
  const names = useMemo(() => [...(s.level.length ? [g.BEGIN] : []), ...Object.keys(g.nodesOf(graph))], [graph, s.level]);
  const boxes = useMemo(() => (own ? a.boxesOf(graph) : []), [graph, own]);
  const places = useMemo(() => placesOf(graph, names, wires, kindLookup(get()), own), [graph, names, wires, own]);

  const placesNow = useRef(places);
  placesNow.current = places;
  // what the document says, with what React Flow has measured
  useEffect(() => {
    setNodes((before) => {
      const was = new Map(before.map((node) => [node.id, node])), told = toldOf(s);
      const cards = names.map((name) => {
        const [x, y] = places.get(name)!, before = was.get(id(name)) as CardNode | undefined;
        return { ...before, id: id(name), type: "card", position: before?.dragging ? before.position : { x, y: -y }, selected: s.selected.has(name), deletable: own && name !== g.BEGIN, draggable: own && name !== g.BEGIN || !own, data: cardOf(s, graph, name, kindOf(name), told, before?.data) } as CardNode;
      });
      const drawn = boxes.map((box) => ({ ...was.get(box.id), id: box.id, type: box.kind, position: { x: box.position[0], y: -box.position[1] }, width: box.size[0], height: box.size[1], zIndex: box.kind === "frame" ? -1 : 0,
        selected: s.selected.has(box.id), draggable: own, connectable: false, dragHandle: box.kind === "frame" ? ".frame-head" : ".note-head", data: { box, own } }) as BoxNode);
      return [...drawn, ...cards];
    });
  }, [graph, places, boxes, s.selected, s.checked, s.cook.seconds, s.cook.stages, s.revision, s.cook.now, s.cook.running, s.cook.failed, s.cooked, s.times, s.heat, s.path]);

  const edges = useMemo<WireEdge[]>(() => wired.map(({ wire, dots, colour }) => ({
    id: `${wire.source}.${wire.output}>${wire.target}.${wire.port}.${wire.index}`, type: "wire", source: id(wire.source), sourceHandle: wire.output, target: id(wire.target), targetHandle: wire.port,
    data: { wire, own, dots }, deletable: own, style: { stroke: colour },
  })), [wired, own]);
  const [cut, setCut] = useState<ReadonlySet<string>>(new Set());
  const shownEdges = useMemo(() => edges.map((edge) => (cut.has(edge.id) || edge.id === open ? { ...edge, selected: cut.has(edge.id), className: edge.id === open ? "open" : "" } : edge)), [edges, cut, open]);
  const wireOf = (edge: string) => edges.find((each) => each.id === edge)?.data!.wire;

  // a graph that is opened, or dived into, is seen whole
  useEffect(() => {
    const key = `${s.path}|${s.level.join("/")}`;
    if (!names.length && !boxes.length) fitted.current = key; // what is added to it stays where it was put
    if (fitted.current !== key && nodes.length && nodes.every((node) => node.measured)) { fitted.current = key; void flow.fitView({ padding: 0.15, maxZoom: 1.1 }); }
  }, [nodes, s.path, s.level]);

  const change = useCallback((changes: NodeChange<Shown>[]) => {
    setNodes((before) => applyNodeChanges(changes, before));
    const picked = changes.filter((each) => each.type === "select");
    if (picked.length) {
      const chosen = new Set(get().selected);
      for (const each of picked) if (each.selected) chosen.add(name(each.id)); else chosen.delete(name(each.id));
      set({ selected: chosen, focusKnob: "" });
    }
  }, []);

  // ---------------------------------------------------------------- dragging
  const grab = (dragged: Shown[]) => {
    const all = flow.getNodes(), frames = dragged.filter((node) => node.type === "frame"), ids = new Set(dragged.map((node) => node.id));
    const within = (node: Shown) => frames.some((frame) => node.position.x >= frame.position.x && node.position.y >= frame.position.y
      && node.position.x + size(node)[0] <= frame.position.x + size(frame)[0] && node.position.y + size(node)[1] <= frame.position.y + size(frame)[1]);
    grabbed.current = { from: new Map(all.map((node) => [node.id, { ...node.position }])), members: new Set(frames.length ? all.filter((node) => !ids.has(node.id) && within(node)).map((node) => node.id) : []) };
  };
  const delta = (dragged: Shown) => { const from = grabbed.current.from.get(dragged.id) ?? dragged.position; return [dragged.position.x - from.x, dragged.position.y - from.y]; };
  const carry = (dragged: Shown[]) => {
    const { from, members } = grabbed.current;
    if (members.size) { const [dx, dy] = delta(dragged[0]); setNodes((before) => before.map((node) => (members.has(node.id) ? { ...node, position: { x: from.get(node.id)!.x + dx, y: from.get(node.id)!.y + dy } } : node))); }
    setOpen(dragged.length === 1 && dragged[0].type === "card" ? wireUnder(dragged[0]) : "");
  };
  /** Return the id of the wire under a card that is wired to nothing and fits into it. */
  const wireUnder = (node: CardNode): string => {
    const { kind } = node.data, lone = !wires.some((wire) => wire.source === node.data.name || wire.target === node.data.name);
    if (!own || !lone || !kind) return "";
    // not where it is drawn: that is a step behind
    const [width, height] = size(node), from = flow.flowToScreenPosition(node.position), to = flow.flowToScreenPosition({ x: node.position.x + width, y: node.position.y + height });
    const rows = Math.max(2, Math.ceil((to.y - from.y) / 24));
    for (let n = 0; n < 5 * rows; n++) {
      for (const each of document.elementsFromPoint(from.x + ((to.x - from.x) * ((n % 5) + 0.5)) / 5, from.y + ((to.y - from.y) * (Math.floor(n / 5) + 0.5)) / rows)) {
        const edge = each.closest<SVGElement>(".react-flow__edge")?.dataset.id ?? "", wire = wireOf(edge);
        if (wire && g.fitsInto(wire, kind, kindOf, kinds)) return edge;
      }
    }
    return "";
  };

  const drop = useCallback((dragged: Shown[], key = "") => {
    const now = new Map(flow.getNodes().map((node) => [node.id, node.position]));
    for (const node of dragged) now.set(node.id, node.position);
    const place = (each: string): [number, number] => [Math.round(now.get(each)!.x), Math.round(-now.get(each)!.y)];
    const [dx, dy] = dragged.length && grabbed.current.members.size ? delta(dragged[0]) : [0, 0];
    for (const each of grabbed.current.members) { const from = grabbed.current.from.get(each)!; now.set(each, { x: from.x + dx, y: from.y + dy }); }
    const ids = [...dragged.map((node) => node.id), ...grabbed.current.members], cards = ids.filter((each) => !a.isBox(each));
    const shift = dragged.length ? delta(dragged[0]) : [0, 0], { graph: shown } = shownGraph(get()), all = Object.keys(g.nodesOf(shown));
    grabbed.current = { from: new Map(), members: new Set() };
    // once one node has a place in the file, all have: what has none would lie on one heap in other programs
    const placed = unplaced(shown) ? all.map(id) : cards;
    editGraph((each) => {
      const moved = g.moved(g.movedDots(each, wires, new Set(cards.map(name)), Math.round(shift[0]), -Math.round(shift[1])), new Map(placed.filter((card) => now.has(card)).map((card) => [name(card), place(card)])));
      return ids.filter(a.isBox).reduce((found, box) => a.changedBox(found, box, { position: place(box) }), moved);
    }, key);
  }, [wires]);
  const dropped = (dragged: Shown[]) => {
    const onto = wireOf(open), [one] = dragged;
    setOpen("");
    if (dragged.every((node) => { const [dx, dy] = delta(node); return !dx && !dy; })) return;
    const gesture = onto ? `onto ${performance.now()}` : ""; // where it was put, and into what, are one step
    drop(dragged, gesture);
    if (onto && one.type === "card" && one.data.kind) { const { name: node, kind } = one.data; editGraph((each) => withRoom(g.inserted(each, onto, node, kind, kindOf, kinds), node, kind, onto, [Math.round(one.position.x), Math.round(-one.position.y)]), gesture); }
  };

  /** Keep where the arrow keys have moved nodes. */
  const keepPlaces = () => {
    const { graph: shown, own: mine } = shownGraph(get()), box = new Map(a.boxesOf(shown).map((each) => [each.id, each.position] as const));
    const moved = flow.getNodes().filter((node) => { const [x, y] = placesNow.current.get(name(node.id)) ?? box.get(node.id) ?? [0, 0]; return node.position.x !== x || node.position.y !== -y; });
    if (mine && moved.length && g.nodesOf(shown)) drop(moved, "arrows");
  };

  const why = (connection: Connection | Edge): string => {
    const { level } = get(), lookup = kindLookup(get()), source = name(connection.source), target = name(connection.target);
    const output = lookup(source)?.outputs.find((each) => each.name === connection.sourceHandle);
    const input = lookup(target)?.inputs.find((each) => each.name === connection.targetHandle);
    const refused = g.refusal(output, input, kinds);
    if (refused) return refused;
    if (!shownGraph(get()).own) return level.length ? PRESET : "";
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

  // ---------------------------------------------------------------- adding
  const ask = (x: number, y: number, from: Search["from"] = null) => {
    if (!own) return say(PRESET);
    const under = from ? "" : document.elementFromPoint(x, y)?.closest<SVGElement>(".react-flow__edge")?.dataset.id ?? "", [chosen] = cut.size === 1 ? cut : [""];
    setSearch({ x, y, place: flow.screenToFlowPosition({ x, y }), from, wire: from ? null : wireOf(under) ?? wireOf(chosen) ?? null });
  };
  const askHere = () => { const box = host.current!.getBoundingClientRect(); ask(pointer.current.x || box.left + 200, pointer.current.y || box.top + 100); };

  const withPlaces = (each: Parameters<typeof g.moved>[0]) => (unplaced(each) ? g.moved(each, placesNow.current) : each);
  /** Make room for a node at a place that is put into a wire. */
  const withRoom = (each: Parameters<typeof g.moved>[0], node: string, kind: Kind, wire: g.Wire, place: [number, number]) => {
    const sizes = new Map(nodes.map((one) => [name(one.id), size(one)])), at = new Map([...placesNow.current, [node, place] as const]);
    const room = roomFor(node, wire, wires, at, (one) => sizes.get(one) ?? [WIDTH, cardHeight(kind)]);
    return g.moved(g.movedDots(each, wires, room.later, room.by, 0), room.places);
  };
  const add = (kind: Kind) => {
    const { place, from, wire } = search!, { graph: shown } = shownGraph(get());
    const wanted = kind.id.replace(/^(material|emit|collide|force|field)_/, ""), free = g.freeName(shown, wanted, kinds.spec.reserved_names);
    const x = Math.round(place.x), y = Math.round(-place.y);
    editGraph((each) => {
      let made = g.addNode(withPlaces(each), kind, free, [x, y === 0 && x === 0 ? 1 : y]);
      if (wire) made = withRoom(g.inserted(made, wire, free, kind, kindOf, kinds), free, kind, wire, [x, y]);
      if (from) {
        const other = kindOf(from.node), input = from.isOutput ? kind.inputs.find((port) => !g.refusal(other?.outputs.find((out) => out.name === from.port), port, kinds)) : other?.inputs.find((port) => port.name === from.port);
        const output = from.isOutput ? from.port : kind.outputs.find((out) => !out.internal && !g.refusal(out, input, kinds))?.name;
        if (input && output) made = g.connected(made, from.isOutput ? free : from.node, input, g.spelled(from.isOutput ? from.node : free, output, from.isOutput ? other : kind));
      }
      return made;
    });
    setSearch(null); setCut(new Set());
    store.select([free]);
    host.current?.focus();
  };
  const addBox = (kind: a.Box["kind"]) => {
    if (!own) return say(PRESET);
    const at = flow.screenToFlowPosition(pointer.current.x ? pointer.current : { x: host.current!.getBoundingClientRect().left + 200, y: host.current!.getBoundingClientRect().top + 100 });
    const chosen = kind === "frame" ? nodes.filter((node) => node.selected && node.type !== "frame") : [];
    const left = Math.min(...chosen.map((node) => node.position.x)) - 24, top = Math.min(...chosen.map((node) => node.position.y)) - 56;
    const box = chosen.length ? { position: [left, -top] as a.Point, size: [Math.max(...chosen.map((node) => node.position.x + size(node)[0])) + 24 - left, Math.max(...chosen.map((node) => node.position.y + size(node)[1])) + 24 - top].map(Math.round) as a.Point }
      : { position: [at.x, -at.y].map(Math.round) as a.Point };
    let made = "";
    editGraph((each) => { const found = a.withBox(withPlaces(each), kind, box); made = found.id; return found.graph; });
    if (made) store.select([made], "text");
  };
  const addDot = (wire: g.Wire, at?: { x: number; y: number }) => {
    const { graph: shown, own: mine } = shownGraph(get());
    if (!mine) return say(PRESET);
    const [x, y] = placesNow.current.get(wire.source)!, [u, v] = placesNow.current.get(wire.target)!, dots = a.dotsOf(g.entryOf(shown, wire.target), wire.port, g.wireText(shown, wire));
    const from: a.Point = [x + WIDTH, y - 50], to: a.Point = [u, v - 50], place = at ? flow.screenToFlowPosition(at) : { x: (from[0] + to[0]) / 2, y: -(from[1] + to[1]) / 2 };
    editGraph((each) => g.dotted(withPlaces(each), wire, withDot(from, dots, to, [Math.round(place.x), Math.round(-place.y)])));
  };

  // ---------------------------------------------------------------- keys
  const fit = (shown: Shown[] = nodes) => void flow.fitView({ padding: 0.15, maxZoom: 1.2, duration: still.matches ? 0 : 150, nodes: shown });
  const arrange = () => {
    const found = columns(names.filter((each) => each !== g.BEGIN), wires, (each) => cardHeight(kindOf(each), g.entryOf(graph, each)), s.level.length ? ACROSS : Infinity, s.level.length ? undefined : endsOf(kindOf));
    editGraph((each) => g.moved(each, found));
    fitted.current = "";
  };
  const align = (how: Alignment) => {
    const chosen = nodes.filter((node) => node.selected && node.type === "card" && node.data.name), sizes = new Map(chosen.map((node) => [name(node.id), size(node)]));
    if (chosen.length < 2) return;
    const found = aligned(new Map(chosen.map((node) => [name(node.id), [Math.round(node.position.x), Math.round(-node.position.y)]])), how, (each) => sizes.get(each)!);
    editGraph((each) => g.moved(withPlaces(each), found));
  };
  const remove = () => {
    if (!own) return say(PRESET);
    const cuts = edges.filter((edge) => cut.has(edge.id)).map((edge) => edge.data!.wire), gone = new Set([...s.selected].filter(a.isBox));
    if (cuts.length) cutWires(cuts);
    else if (gone.size) { editGraph((each) => a.withoutBoxes(g.removed(each, new Set([...s.selected].filter((one) => !a.isBox(one) && one !== g.BEGIN))), gone)); store.select([]); }
    else store.removeSelected();
  };
  const cutWires = (cuts: g.Wire[]) => { editGraph((each) => cuts.sort((one, other) => other.index - one.index).reduce(g.disconnected, each)); setCut(new Set()); };
  const dive = () => { const [one] = s.selected, knob = one && kindOf(one)?.knobs.find((each) => each.kind === "substeps"); if (one && knob && !s.level.length) store.dive([one, knob.name]); };
  const duplicate = () => {
    const found = g.pasted(graph, g.copied(graph, new Set(s.selected), kinds.spec, s.level), kinds.spec, s.level);
    if (!s.selected.size || !found) return;
    if (own) { editGraph(() => found.graph); store.select(found.names); } else say(PRESET);
  };
  const acts: Record<Action, () => void> = {
    add: askHere, remove, duplicate, arrange, dive, all: () => store.select([...names, ...boxes.map((box) => box.id)]), none: () => { store.select([]); setCut(new Set()); },
    bypass: () => { for (const each of s.selected) if (!a.isBox(each)) editGraph((shown) => g.setField(shown, each, "bypass", g.entryOf(shown, each).bypass !== true)); },
    frame: () => addBox("frame"), note: () => addBox("note"), dot: () => { for (const each of cut) { const wire = wireOf(each); if (wire) addDot(wire); } },
    alignLeft: () => align("left"), alignTop: () => align("top"), fitAll: () => fit(), fitChosen: () => fit(s.selected.size ? nodes.filter((node) => node.selected) : nodes),
    up: () => { if (s.level.length) store.dive([]); }, rename: () => document.querySelector<HTMLInputElement>(".knobs .name")?.select(), help: () => set({ help: true }),
    here: () => { const [one] = s.selected; if (s.selected.size === 1 && !a.isBox(one) && !s.level.length && !s.cook.running) void store.cook("new", { to: one }); },
  };
  const act = (action: Action, from?: HTMLElement) => {
    if (action === "add" && from) { const box = from.getBoundingClientRect(); ask(box.left - 200, box.bottom + 8); } else acts[action]();
  };
  const keys = (event: React.KeyboardEvent) => {
    if ((event.target as HTMLElement).matches("input, textarea, select") || search) return;
    const key = event.key.toLowerCase();
    if ((event.target as HTMLElement).closest("button, summary") && (key === "enter" || key === " ")) return; // it presses the button
    if (key.startsWith("arrow")) setTimeout(keepPlaces);
    const action = actionOf(event, s.keymap);
    // Tab adds where the pointer is over the graph; else it goes on to the next thing, as everywhere
    if (!action || (key === "tab" && !(event.target === host.current && host.current.matches(":hover")))) return;
    event.preventDefault();
    acts[action]();
  };
  useClipboard(kinds);
  useCooked();

  const own_ = ownDocument(s);
  return (
    <>
      <GraphBar act={act} align={align} makeOwn={own_ && (() => store.edit(() => g.atLevel(own_, s.level, kinds, (each) => g.moved(each, places))))} />
      <div className="canvas">
        <div className={`flow${far ? " far" : ""}`} ref={host} tabIndex={0} onKeyDown={keys} style={{ "--wire": wide } as React.CSSProperties} onPointerMove={(event) => { pointer.current = { x: event.clientX, y: event.clientY }; }}
          onPointerDown={() => { if (!host.current!.contains(document.activeElement)) host.current!.focus(); }}
          onDoubleClick={(event) => { if ((event.target as Element).classList.contains("react-flow__pane")) ask(event.clientX, event.clientY); }}>
          <ReactFlow<Shown, WireEdge> nodes={nodes} edges={shownEdges} nodeTypes={NODE_TYPES} edgeTypes={EDGE_TYPES} onNodesChange={change}
            onNodeDragStart={(_, __, all) => grab(all)} onNodeDrag={(_, __, all) => carry(all)} onNodeDragStop={(_, __, all) => dropped(all)}
            onSelectionDragStart={(_, all) => grab(all)} onSelectionDrag={(_, all) => carry(all)} onSelectionDragStop={(_, all) => dropped(all)}
            onNodeClick={(event, node) => { if (get().selected.size > 1 && !event.shiftKey && !event.ctrlKey && !event.metaKey) store.select([name(node.id)]); }}
            onEdgesChange={(changes) => setCut((before) => { const now = new Set(before); for (const each of changes) if (each.type === "select") { if (each.selected) now.add(each.id); else now.delete(each.id); } return now; })}
            onEdgeClick={(event, edge) => { if (event.altKey) addDot(edge.data!.wire, { x: event.clientX, y: event.clientY }); }} onEdgeDoubleClick={(event, edge) => addDot(edge.data!.wire, { x: event.clientX, y: event.clientY })}
            onConnect={connect} onConnectEnd={connectEnd} isValidConnection={(each) => why(each) === ""} onNodeDoubleClick={(_, node) => { if (node.type === "card" && node.data.substeps) store.dive([node.data.name, node.data.substeps]); }}
            deleteKeyCode={null} minZoom={0.02} maxZoom={2} zoomOnDoubleClick={false} onlyRenderVisibleElements={nodes.length > 60 && nodes.every((node) => node.measured)} connectionRadius={22} elevateNodesOnSelect={!boxes.length}
            panOnDrag={[0, 1]} selectionKeyCode="Shift" multiSelectionKeyCode={["Shift", "Control", "Meta"]} colorMode={s.theme === "auto" ? "system" : s.theme} disableKeyboardA11y={false} proOptions={{ hideAttribution: true }}>
            <Background gap={24} size={1.2} color="var(--dots)" />
            {partly && <MiniMap pannable zoomable nodeColor={mapColour} ariaLabel="Map of the graph" />}
          </ReactFlow>
          <Stroke host={host} onCut={(ids) => { const cuts = edges.filter((edge) => ids.has(edge.id)).map((edge) => edge.data!.wire); if (cuts.length && own) cutWires(cuts); else if (cuts.length) say(PRESET); }} />
          {!names.length && <p className="hint">Tab, Shift A or a double click adds a node.</p>}
        </div>
      </div>
      <CurvePane />
      {search && <Palette x={search.x} y={search.y} candidates={fitting(search)} kinds={kinds} into={search.wire ? `Into the wire from ${search.wire.source || "the beginning"} to ${search.wire.target}` : ""} onAdd={add} onClose={() => { setSearch(null); host.current?.focus(); }} />}
    </>
  );

  function fitting({ from, wire }: Search): Kind[] {
    const all = [...g.kindsAt(s.level, kinds).values()], other = from && kindOf(from.node);
    if (wire) return all.filter((kind) => g.fitsInto(wire, kind, kindOf, kinds));
    if (!from || !other) return all;
    if (from.isOutput) return all.filter((kind) => kind.inputs.some((input) => !g.refusal(other.outputs.find((each) => each.name === from.port), input, kinds)));
    const input = other.inputs.find((each) => each.name === from.port);
    return all.filter((kind) => kind.outputs.some((output) => !output.internal && !g.refusal(output, input, kinds)));
  }
}

interface Wired { wire: g.Wire; dots: a.Point[]; colour: string }

/** Return the wires with what is drawn of them; as long as nothing of that changes, they are the same and are not drawn again. */
function useWired(graph: JsonObject, level: g.Level, own: boolean): Wired[] {
  const before = useRef<Wired[]>([]);
  return useMemo(() => {
    const { kinds } = get(), kindOf = kindLookup(get());
    const now = g.wiresOf(graph, kindOf).map((wire): Wired => {
      const output = kindOf(wire.source)?.outputs.find((each) => each.name === wire.output);
      return { wire, dots: own ? a.dotsOf(g.entryOf(graph, wire.target), wire.port, g.wireText(graph, wire)) : [], colour: output ? kinds!.typeColour(output.type) : "#999" };
    });
    return same(now as never, before.current as never) ? before.current : (before.current = now);
  }, [graph, level, own]);
}

/** React Flow wants names that are not empty. */
const id = (node: string) => node || " ";
const name = (node: string) => (node === " " ? g.BEGIN : node);
const size = (node: Shown): [number, number] => [node.measured?.width ?? node.width ?? WIDTH, node.measured?.height ?? node.height ?? 80];
const unplaced = (graph: Parameters<typeof g.nodesOf>[0]) => Object.keys(g.nodesOf(graph)).every((each) => g.positionOf(g.entryOf(graph, each)).every((part) => part === 0));
const mapColour = (node: Node) => (node.type === "card" ? (node as CardNode).data.colour : (node as BoxNode).data.box.colour + (node.type === "frame" ? "55" : ""));

const endsOf = (kindOf: (name: string) => Kind | undefined): Ends => (wire) => [portBelow(kindOf(wire.source), wire.output, true), portBelow(kindOf(wire.target), wire.port, false)];

function placesOf(graph: Parameters<typeof g.nodesOf>[0], names: string[], wires: g.Wire[], kindOf: (name: string) => Kind | undefined, own: boolean): Map<string, [number, number]> {
  const inner = names.filter((each) => each !== g.BEGIN), given = new Map(inner.map((each) => [each, g.positionOf(g.entryOf(graph, each))]));
  // presets are placed for narrower nodes than these
  const placed = own && [...given.values()].some(([x, y]) => x !== 0 || y !== 0) || inner.length < 2;
  const found = placed ? given : columns(inner, wires, (each) => cardHeight(kindOf(each), g.entryOf(graph, each)), names.includes(g.BEGIN) ? ACROSS : Infinity, names.includes(g.BEGIN) ? undefined : endsOf(kindOf));
  if (names.includes(g.BEGIN)) {
    const all = [...found.values()], left = Math.min(0, ...all.map(([x]) => x)), top = Math.max(...all.map(([, y]) => y), 0);
    found.set(g.BEGIN, [left - 260, top]);
  }
  return found;
}
