import { useEffect, useRef, type ReactNode } from "react";
import type { LayerFacts } from "../../view/frame";

/** A button that opens a small panel; Escape, and a click elsewhere, close it. */
export function Menu({ label, title, children }: { label: ReactNode; title?: string; children: ReactNode }) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const outside = (event: PointerEvent) => { if (menu.current?.open && !menu.current.contains(event.target as Node)) menu.current.open = false; };
    window.addEventListener("pointerdown", outside);
    return () => window.removeEventListener("pointerdown", outside);
  }, []);
  return (
    <details className="menu" ref={menu} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); menu.current!.open = false; menu.current!.querySelector("summary")!.focus(); } }}>
      <summary title={title}>{label}</summary>
      <div className="menu-panel">{children}</div>
    </details>
  );
}

export const POINT_SIZES = [["small", 0.5], ["as seeded", 1], ["large", 1.6]] as const;

interface Props {
  layers: LayerFacts[]; on: ReadonlySet<string>; counts: Map<string, string>; toggle: (name: string) => void;
  size: number; setSize: (size: number) => void; guides: boolean; setGuides: (on: boolean) => void; grid: boolean; setGrid: (on: boolean) => void;
}

/** What there is to be seen, each switched on and off. */
export function Layers({ layers, on, counts, toggle, size, setSize, guides, setGuides, grid, setGrid }: Props) {
  return (
    <Menu label="Layers" title="What is shown">
      {layers.map((layer) => (
        <label className="check" key={layer.name}><input type="checkbox" checked={on.has(layer.name)} onChange={() => toggle(layer.name)} /> {layer.label}<small>{counts.get(layer.name)}</small></label>
      ))}
      {layers.length > 0 && <hr />}
      <label className="check"><input type="checkbox" checked={guides} onChange={(event) => setGuides(event.target.checked)} /> guides<small>emitters, colliders</small></label>
      <label className="check"><input type="checkbox" checked={grid} onChange={(event) => setGrid(event.target.checked)} /> grid</label>
      <label>Points <select value={size} onChange={(event) => setSize(Number(event.target.value))}>{POINT_SIZES.map(([label, each]) => <option key={each} value={each}>{label}</option>)}</select></label>
    </Menu>
  );
}
