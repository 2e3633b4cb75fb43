import { useEffect } from "react";
import { api } from "../api";
import { get, set, useStore } from "../store";

/** Hold the graph that the shown revision was cooked from, for what has changed since. */
export function useCooked(): void {
  const path = useStore((s) => s.path), revision = useStore((s) => s.revision), turn = useStore((s) => `${s.cook.number} ${s.cook.running}`);
  useEffect(() => {
    set({ cooked: null });
    if (!revision) return;
    api.cooked(path, revision).then(({ graph }) => { if (get().path === path && get().revision === revision) set({ cooked: graph }); }, () => {});
  }, [path, revision, turn]);
}
