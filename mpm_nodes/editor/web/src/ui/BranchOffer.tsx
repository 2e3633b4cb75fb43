/** A knob that was changed while the graph cooks says what it cooks with, and offers a new revision: nothing is started unasked. */
import { entryOf, knobsOf, levelOf } from "../model/graph";
import { isObject, type Json, oneLine, same } from "../model/json";
import * as store from "../store";
import { get, useStore, type State } from "../store";

/** Cook a new revision with the changed graph: from the frame that is looked at on, or from the first where there is none yet. */
export function branch(): void {
  store.takeTyped();
  const s = get();
  if (!store.changedSince(s)) return;
  if (s.frame !== null) store.cookFrom(s.frame); else void store.cook("new");
}

/** Return the value of a knob, or of a setting where the node is "", in the cook that runs; undefined where it has its default. */
function cooking(s: State, node: string, knob: string): Json | undefined {
  const cooked = s.cook.document!;
  if (node === "") return isObject(cooked.settings) ? cooked.settings[knob] : undefined;
  return knobsOf(entryOf(levelOf(cooked, s.level, s.kinds!).graph, node))[knob];
}

export function BranchOffer({ node, knob, value, usual }: { node: string; knob: string; value: Json; usual: Json }) {
  const was = useStore((s) => (store.changedSince(s) ? cooking(s, node, knob) ?? usual : value)), frame = useStore((s) => s.frame);
  if (same(was, value)) return null;
  const told = oneLine(was);
  return (
    <p className="offer" role="note">Cooks with {told.length > 24 ? "what it was" : told}. <button onClick={branch} title="Ctrl Enter: stop, and cook a new revision with the changed knobs">{frame === null ? "Cook again" : `Branch from frame ${frame}`}</button></p>
  );
}
