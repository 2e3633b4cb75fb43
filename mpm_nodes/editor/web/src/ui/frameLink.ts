/** The frame that is shown, told to keys and plots; and a frame that is clicked there, told to the view. */
import { useEffect } from "react";
import { set, useStore } from "../store";

export function useFrameLink(shown: number | null, go: (frame: number) => void): void {
  const asked = useStore((s) => s.askedFrame);
  useEffect(() => set({ frame: shown }), [shown]);
  useEffect(() => {
    if (asked === null) return;
    set({ askedFrame: null });
    if (shown !== null) go(asked);
  }, [asked]);
}
