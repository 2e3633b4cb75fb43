/** What of a document changes its cook: all but where nodes stand and what is said of them. */
import type { JsonObject } from "./json";

const UNSEEN = new Set(["position", "comment"]);
const known = new WeakMap<JsonObject, string>();

export function meaning(document: JsonObject): string {
  let found = known.get(document);
  if (found === undefined) {
    const { nodes, editor: _, ...rest } = document;
    const seen = Object.entries((nodes ?? {}) as JsonObject).map(([name, entry]) => [name, Object.entries((entry ?? {}) as JsonObject).filter(([key]) => !UNSEEN.has(key))]);
    known.set(document, (found = JSON.stringify([rest, seen])));
  }
  return found;
}
