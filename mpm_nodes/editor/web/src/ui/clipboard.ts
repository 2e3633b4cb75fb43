import { useEffect } from "react";
import { isBox, withoutBoxes } from "../model/annotations";
import * as g from "../model/graph";
import type { Kinds } from "../model/spec";
import * as store from "../store";
import { editGraph, get, say, shownGraph } from "../store";

const elsewhere = () => document.activeElement?.matches("input, textarea, select");

/** Copy, cut and paste nodes, with their frames and notes, as the text of a graph file. */
export function useClipboard(kinds: Kinds): void {
  useEffect(() => {
    const copy = (event: ClipboardEvent) => {
      const { selected, level } = get();
      if (elsewhere() || String(getSelection()) || !selected.size) return;
      event.preventDefault();
      event.clipboardData!.setData("text/plain", g.copied(shownGraph(get()).graph, new Set(selected), kinds.spec, level));
      if (event.type !== "cut" || !shownGraph(get()).own) return;
      editGraph((graph) => withoutBoxes(graph, new Set([...selected].filter(isBox))));
      store.removeSelected();
    };
    const paste = (event: ClipboardEvent) => {
      if (elsewhere()) return;
      const { level } = get(), found = g.pasted(shownGraph(get()).graph, event.clipboardData!.getData("text/plain"), kinds.spec, level);
      event.preventDefault();
      if (!found) return say("The clipboard holds no nodes of this kind of graph.");
      editGraph(() => found.graph);
      if (shownGraph(get()).own) store.select(found.names);
    };
    document.addEventListener("copy", copy); document.addEventListener("cut", copy); document.addEventListener("paste", paste);
    return () => { document.removeEventListener("copy", copy); document.removeEventListener("cut", copy); document.removeEventListener("paste", paste); };
  }, []);
}
