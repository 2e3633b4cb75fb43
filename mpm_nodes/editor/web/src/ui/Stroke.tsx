import { useEffect, useRef, useState } from "react";

type Point = [number, number];

/** A stroke that cuts wires: Ctrl and the right button as in Blender, or Y held and the left one as in Houdini. */
export function Stroke({ host, onCut }: { host: React.RefObject<HTMLDivElement | null>; onCut: (ids: Set<string>) => void }) {
  const [points, setPoints] = useState<Point[] | null>(null), [armed, setArmed] = useState(false), svg = useRef<SVGSVGElement>(null), drawn = useRef<Point[]>([]);
  const begin = (event: PointerEvent | React.PointerEvent) => {
    event.preventDefault(); event.stopPropagation();
    svg.current!.setPointerCapture(event.pointerId);
    setPoints((drawn.current = [[event.clientX, event.clientY]]));
  };
  useEffect(() => {
    const down = (event: PointerEvent) => { if (event.button === 2 && event.ctrlKey) begin(event); };
    const menu = (event: MouseEvent) => { if (event.ctrlKey || drawn.current.length) event.preventDefault(); };
    const keys = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "y" || event.ctrlKey || event.metaKey || (event.target as HTMLElement).matches("input, textarea, select")) return;
      setArmed(event.type === "keydown" && host.current!.matches(":hover"));
    };
    const gone = () => setArmed(false), element = host.current!;
    element.addEventListener("pointerdown", down, true); element.addEventListener("contextmenu", menu);
    window.addEventListener("keydown", keys); window.addEventListener("keyup", keys); window.addEventListener("blur", gone);
    return () => { element.removeEventListener("pointerdown", down, true); element.removeEventListener("contextmenu", menu); window.removeEventListener("keydown", keys); window.removeEventListener("keyup", keys); window.removeEventListener("blur", gone); };
  }, []);
  const end = () => {
    if (!drawn.current.length) return;
    onCut(crossed(drawn.current));
    setPoints((drawn.current = [])); setPoints(null);
  };
  const box = points && svg.current?.getBoundingClientRect();
  return (
    <svg ref={svg} className={`stroke${armed || points ? "" : " idle"}`} aria-hidden onPointerDown={(event) => { if (armed && event.button === 0) begin(event); }}
      onPointerMove={(event) => { if (drawn.current.length) setPoints((drawn.current = [...drawn.current, [event.clientX, event.clientY]])); }} onPointerUp={end} onPointerCancel={() => { drawn.current = []; setPoints(null); }}>
      {points && box && <polyline points={points.map(([x, y]) => `${x - box.left},${y - box.top}`).join(" ")} />}
    </svg>
  );
}

/** Pieces that a wire is looked at as. */
const PIECES = 40;

/** Return the ids of the drawn wires that a stroke crosses. */
function crossed(points: Point[]): Set<string> {
  const found = new Set<string>(), side = (a: Point, b: Point, c: Point) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  const meet = (a: Point, b: Point, c: Point, d: Point) => side(a, b, c) * side(a, b, d) <= 0 && side(c, d, a) * side(c, d, b) <= 0;
  for (const path of document.querySelectorAll<SVGPathElement>(".react-flow__edge-path")) {
    const length = path.getTotalLength(), matrix = path.getScreenCTM()!, id = path.closest<SVGElement>(".react-flow__edge")?.dataset.id;
    const places = Array.from({ length: PIECES + 1 }, (_, n): Point => { const at = path.getPointAtLength((length * n) / PIECES).matrixTransform(matrix); return [at.x, at.y]; });
    if (id && places.slice(1).some((to, n) => points.slice(1).some((end, m) => meet(places[n], to, points[m], end)))) found.add(id);
  }
  return found;
}
