/** The frame that is shown, told to the plots; and a frame that is clicked there, told to the view. */
import { useEffect } from "react";
import { set } from "../store";

const GO = "go-to-frame";

export function goToFrame(frame: number): void { window.dispatchEvent(new CustomEvent(GO, { detail: frame })); }

export function useFrameLink(shown: number | null, go: (frame: number) => void): void {
  useEffect(() => set({ frame: shown }), [shown]);
  useEffect(() => {
    const asked = (event: Event) => go((event as CustomEvent<number>).detail);
    window.addEventListener(GO, asked);
    return () => window.removeEventListener(GO, asked);
  }, [go]);
}
