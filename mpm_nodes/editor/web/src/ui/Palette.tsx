import { useEffect, useMemo, useRef, useState } from "react";
import type { Kind, Kinds } from "../model/spec";
import { Prose } from "./Prose";

/** Return how well a kind fits what was typed, 0 for not at all: every word has to be somewhere in its label, id, category or help, or begin what artists call it. */
export function fit(kind: Kind, typed: string): number {
  const words = typed.toLowerCase().split(/[\s_]+/).filter(Boolean), label = kind.label.toLowerCase();
  const near = `${label} ${kind.id.replaceAll("_", " ")} ${kind.id}`, far = `${kind.category} ${kind.doc}`.toLowerCase(), said = kind.words ?? [];
  const called = (word: string) => said.some((each) => each.startsWith(word));
  if (!words.every((word) => near.includes(word) || far.includes(word) || called(word))) return 0;
  const whole = words.join(" ");
  return 1 + words.filter((word) => near.includes(word)).length * 2 + (words.length && words.every(called) ? 3 : 0) + (label === whole ? 20 : label.startsWith(whole) ? 8 : near.split(" ").some((part) => part.startsWith(words[0] ?? "")) ? 4 : 0);
}

interface Props { x: number; y: number; candidates: Kind[]; kinds: Kinds; into: string; onAdd: (kind: Kind) => void; onClose: () => void }

export function Palette({ x, y, candidates, kinds, into, onAdd, onClose }: Props) {
  const [typed, setTyped] = useState(""), [at, setAt] = useState(0), list = useRef<HTMLUListElement>(null), box = useRef<HTMLDivElement>(null);
  const order = useMemo(() => new Map(kinds.spec.categories.map((each, n) => [each.name, n])), [kinds]);
  const found = useMemo(() => candidates.map((kind) => ({ kind, score: fit(kind, typed) })).filter((each) => each.score > 0)
    .sort((a, b) => (typed ? b.score - a.score : 0) || (order.get(a.kind.category) ?? 99) - (order.get(b.kind.category) ?? 99) || a.kind.label.localeCompare(b.kind.label)).map((each) => each.kind), [typed, candidates]);
  useEffect(() => { list.current?.children[at]?.scrollIntoView({ block: "nearest" }); }, [at, found]);
  useEffect(() => {
    box.current!.style.left = `${Math.max(8, Math.min(x, innerWidth - 390))}px`;
    box.current!.style.top = `${Math.max(8, Math.min(y, innerHeight - 400))}px`;
  }, []);
  const keys = (event: React.KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Escape") onClose();
    else if (event.key === "ArrowDown") { event.preventDefault(); setAt(Math.min(at + 1, found.length - 1)); }
    else if (event.key === "ArrowUp") { event.preventDefault(); setAt(Math.max(at - 1, 0)); }
    else if (event.key === "Tab") { event.preventDefault(); onClose(); }
    else if (event.key === "Enter" && found[at]) { event.preventDefault(); onAdd(found[at]); }
  };
  return (
    <>
      <div className="veil" onPointerDown={onClose} />
      <div className="palette" ref={box} role="dialog" aria-label="Add a node" onKeyDown={keys} onDoubleClick={(event) => event.stopPropagation()}>
        <input autoFocus role="combobox" aria-expanded aria-controls="kinds" aria-activedescendant={found[at] ? `kind-${found[at].id}` : undefined} aria-label="Search nodes" placeholder="Search by name, category or use" value={typed}
          onChange={(event) => { setTyped(event.target.value); setAt(0); }} spellCheck={false} />
        {into && <p className="into">{into}</p>}
        <ul id="kinds" role="listbox" ref={list}>
          {found.map((kind, n) => (
            <li key={kind.id} id={`kind-${kind.id}`} role="option" aria-selected={n === at} onPointerEnter={() => setAt(n)} onClick={() => onAdd(kind)}>
              <i style={{ background: kinds.categoryColour(kind.category) }} /><b>{kind.label}</b><small>{kind.category}</small>
            </li>
          ))}
        </ul>
        <p><Prose text={found[at] ? found[at].doc.split("\n")[0] : "Nothing fits."} /></p>
      </div>
    </>
  );
}
