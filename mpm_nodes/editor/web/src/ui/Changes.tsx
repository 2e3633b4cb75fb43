import { useEffect, useMemo, useRef } from "react";
import { differences } from "../model/changes";
import * as store from "../store";
import { set, useStore } from "../store";

/** What differs from the file, from a draft or from a cook; a click leads to the knob. */
export function Changes() {
  const { diff, document: graph, kinds, saved, cooked, revision } = useStore((s) => s), dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { if (diff) { if (!dialog.current!.open) dialog.current!.showModal(); } else dialog.current!.close(); }, [diff !== null]);
  const rows = useMemo(() => (diff && graph && kinds ? differences(graph, diff.was, kinds) : []), [diff, graph]);
  const go = (place: string) => {
    dialog.current!.close(); // first: as long as it is open, nothing else takes the focus
    store.goTo({ place, message: "" });
  };
  return (
    <dialog ref={dialog} className="help changes" aria-label="What differs" onClose={() => set({ diff: null })} onKeyDown={(event) => event.stopPropagation()} onClick={(event) => { if (event.target === dialog.current) set({ diff: null }); }}>
      {diff && (
        <div>
          <header><h2>The page and {diff.what}</h2>
            {saved && <button aria-pressed={diff.was === saved} onClick={() => set({ diff: { what: "the file as it was read or saved", was: saved } })}>The file</button>}
            {cooked && <button aria-pressed={diff.was === cooked} onClick={() => set({ diff: { what: `the cook ${revision}`, was: cooked } })}>{revision}</button>}
            <button onClick={() => set({ diff: null })}>Close</button></header>
          {rows.length ? <table><thead><tr><th scope="col">Where</th><th scope="col">What</th><th scope="col">There</th><th scope="col">In the page</th></tr></thead>
            <tbody>{rows.map((row, n) => <tr key={n}><td>{row.what === "removed" || row.place === "graph" ? row.place : <button onClick={() => go(row.place)}>{row.place}</button>}</td><td>{row.what}</td><td className="was">{row.was}</td><td className="now">{row.now}</td></tr>)}</tbody></table>
            : <p className="note">Nothing differs.</p>}
        </div>
      )}
    </dialog>
  );
}

/** Offer edits that were not saved when the page was last closed. */
export function DraftBar() {
  const s = useStore((each) => each), [draft] = s.drafts ?? [];
  if (!draft) return null;
  const when = new Date(draft.time * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return (
    <div className="conflict draft" role="alert">
      <span>Changes of {s.path} from {when} were not saved{draft.digest === s.digest ? "" : ", and the file was written since"}.</span>
      <button onClick={store.restoreDraft}>{store.dirty(s) ? "Restore them in place of those made since" : "Restore them"}</button>
      <button onClick={store.dropDraft}>Throw them away</button>
    </div>
  );
}
