import { type Edge, type EdgeProps, getBezierPath, Position, useReactFlow } from "@xyflow/react";
import { memo, useState } from "react";
import type { Point } from "../model/annotations";
import * as g from "../model/graph";
import { editGraph } from "../store";

export type WireEdge = Edge<{ wire: g.Wire; dots: Point[]; own: boolean }, "wire">;

/** A wire through its dots; the ends are where React Flow has them. */
export const WireLine = memo(function WireLine({ id, sourceX, sourceY, targetX, targetY, data, style }: EdgeProps<WireEdge>) {
  const [moving, setMoving] = useState<{ n: number; at: Point } | null>(null), flow = useReactFlow(), { wire, own } = data!;
  const dots = data!.dots.map((each, n): Point => (moving?.n === n ? moving.at : [each[0], -each[1]]));
  const points: Point[] = [[sourceX, sourceY], ...dots, [targetX, targetY]];
  const path = points.slice(1).map(([x, y], n) => getBezierPath({ sourceX: points[n][0], sourceY: points[n][1], sourcePosition: Position.Right, targetX: x, targetY: y, targetPosition: Position.Left })[0]).join(" ");
  const put = (now: Point[]) => editGraph((graph) => g.dotted(graph, wire, now));
  const kept = (n: number, at: Point): Point[] => data!.dots.map((each, m) => (m === n ? [Math.round(at[0]), Math.round(-at[1])] : each));
  const without = (n: number) => put(data!.dots.filter((_, m) => m !== n));
  const keys = (event: React.KeyboardEvent, n: number) => {
    const step = ({ ArrowLeft: [-5, 0], ArrowRight: [5, 0], ArrowUp: [0, -5], ArrowDown: [0, 5] } as Record<string, Point>)[event.key];
    if (!step && event.key !== "Delete" && event.key !== "Backspace") return;
    event.preventDefault(); event.stopPropagation();
    if (step) put(kept(n, [dots[n][0] + step[0], dots[n][1] + step[1]])); else without(n);
  };
  return (
    <>
      <path className="react-flow__edge-path" id={id} d={path} style={style} fill="none" />
      <path className="react-flow__edge-interaction" d={path} fill="none" strokeOpacity={0} strokeWidth={18} />
      {dots.map(([x, y], n) => (
        <circle key={n} className="dot nopan nodrag" cx={x} cy={y} r={6} style={{ fill: style?.stroke }} tabIndex={0} role="button" aria-label={`Dot ${n + 1} of the wire from ${wire.source} to ${wire.target}; arrow keys move it, Delete takes it away`}
          onKeyDown={(event) => own && keys(event, n)} onDoubleClick={(event) => { event.stopPropagation(); if (own) without(n); }}
          onPointerDown={(event) => { if (!own || event.button) return; event.stopPropagation(); event.currentTarget.setPointerCapture(event.pointerId); setMoving({ n, at: dots[n] }); }}
          onPointerMove={(event) => { if (event.currentTarget.hasPointerCapture(event.pointerId)) { const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }); setMoving({ n, at: [at.x, at.y] }); } }}
          onPointerUp={() => { if (moving && (moving.at[0] !== data!.dots[n][0] || -moving.at[1] !== data!.dots[n][1])) put(kept(n, moving.at)); setMoving(null); }} />
      ))}
    </>
  );
});

/** Return the places of a wire with one more in it, where it lengthens the way least. */
export function withDot(from: Point, dots: Point[], to: Point, fresh: Point): Point[] {
  const points = [from, ...dots, to], far = (a: Point, b: Point) => Math.hypot(a[0] - b[0], a[1] - b[1]);
  const longer = points.slice(1).map((each, n) => far(points[n], fresh) + far(fresh, each) - far(points[n], each));
  const at = longer.indexOf(Math.min(...longer));
  return [...dots.slice(0, at), fresh, ...dots.slice(at)];
}
