import { useEffect } from "react";
import { api } from "../api";
import { isPreview } from "../model/preview";
import { get, set, useStore } from "../store";

/** Hold the graph that the shown revision was cooked from, for what has changed since, and what its cook took. */
export function useCooked(): void {
  const path = useStore((s) => s.path), revision = useStore((s) => s.revision), turn = useStore((s) => `${s.cook.number} ${s.cook.running}`);
  useEffect(() => {
    set({ cooked: null, times: null });
    if (!revision) return;
    const shown = () => get().path === path && get().revision === revision;
    if (!isPreview(revision)) api.times(path, revision).then(({ nodes, stages }) => { if (shown() && Object.keys(nodes).length) set({ times: { seconds: new Map(Object.entries(nodes)), stages: new Map(Object.entries(stages).map(([solve, each]) => [solve, new Map(Object.entries(each))])) } }); }, () => {});
    api.cooked(path, revision).then(({ graph }) => { if (shown()) set({ cooked: graph }); }, () => {});
  }, [path, revision, turn]);
}
