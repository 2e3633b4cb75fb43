/** A handle between two parts, by pointer or by arrow keys; what it says stays in this browser. */
import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from "react";

/** `height`: share of the host above the handle [%]; `width`: pixels right of it. */
export function useSplit(kind: "height" | "width", begin: number) {
  const host = useRef<HTMLDivElement>(null), key = `split-${kind}`, [at, setAt] = useState(() => Number(localStorage.getItem(key)) || begin);
  const limits = kind === "height" ? [15, 85] : [240, 640];
  useEffect(() => { host.current?.style.setProperty(`--${key}`, kind === "height" ? `${at}%` : `${at}px`); localStorage.setItem(key, String(at)); });
  const put = (value: number) => setAt(Math.min(Math.max(value, limits[0]), limits[1]));
  const handle = {
    role: "separator", tabIndex: 0, "aria-valuenow": Math.round(at), "aria-valuemin": limits[0], "aria-valuemax": limits[1],
    "aria-orientation": kind === "height" ? "horizontal" as const : "vertical" as const,
    onPointerDown: (event: PointerEvent) => { event.currentTarget.setPointerCapture(event.pointerId); },
    onPointerMove: (event: PointerEvent) => {
      if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
      const box = event.currentTarget.parentElement!.getBoundingClientRect();
      put(kind === "height" ? ((event.clientY - box.top) / box.height) * 100 : box.right - event.clientX);
    },
    onKeyDown: (event: KeyboardEvent) => {
      const step = { ArrowUp: -2, ArrowDown: 2, ArrowLeft: 16, ArrowRight: -16 }[event.key];
      if (step) { event.preventDefault(); put(at + step); }
    },
  };
  return { host, handle };
}
