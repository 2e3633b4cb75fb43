/** What keys do in the graph, as those who know Blender or Houdini expect it: two maps, one switch. */
export type Preset = "blender" | "houdini";
export type Action = "add" | "remove" | "duplicate" | "bypass" | "all" | "none" | "frame" | "note" | "dot" | "arrange" | "alignLeft" | "alignTop" | "fitChosen" | "fitAll" | "dive" | "up" | "rename" | "here" | "help";

export interface Act { name: Action; label: string; blender: string[]; houdini: string[] }

export const ACTIONS: Act[] = [
  { name: "add", label: "Add a node; on a wire, into the wire", blender: ["Shift+A", "Tab"], houdini: ["Tab", "Shift+A"] },
  { name: "remove", label: "Remove what is selected: nodes, wires, frames, notes", blender: ["X", "Delete", "Backspace"], houdini: ["Delete", "Backspace"] },
  { name: "duplicate", label: "Duplicate", blender: ["Shift+D"], houdini: ["Ctrl+D"] },
  { name: "bypass", label: "Bypass", blender: ["M"], houdini: ["B"] },
  { name: "rename", label: "Rename", blender: ["F2"], houdini: ["F2", "N"] },
  { name: "all", label: "Select all", blender: ["A", "Ctrl+A"], houdini: ["Ctrl+A"] },
  { name: "none", label: "Select nothing", blender: ["Alt+A"], houdini: ["Alt+A"] },
  { name: "frame", label: "Frame around the selected", blender: ["Ctrl+J"], houdini: ["Shift+O"] },
  { name: "note", label: "Note", blender: ["Shift+P"], houdini: ["Shift+P"] },
  { name: "dot", label: "Dot on the selected wire", blender: ["R"], houdini: ["R"] },
  { name: "arrange", label: "Arrange all nodes", blender: ["L"], houdini: ["L"] },
  { name: "alignLeft", label: "Align the selected at the left", blender: ["Shift+L"], houdini: ["Shift+L"] },
  { name: "alignTop", label: "Align the selected at the top", blender: ["Shift+T"], houdini: ["Shift+T"] },
  { name: "fitChosen", label: "Show the selected", blender: ["F", "."], houdini: ["F"] },
  { name: "fitAll", label: "Show all", blender: ["Home"], houdini: ["H", "Home"] },
  { name: "dive", label: "Into the substeps", blender: ["Enter"], houdini: ["Enter", "I"] },
  { name: "up", label: "Back to the graph", blender: ["Escape"], houdini: ["U", "Escape"] },
  { name: "here", label: "Cook to here: the selected node and what it needs", blender: ["Shift+Enter"], houdini: ["Shift+Enter"] },
  { name: "help", label: "These keys", blender: ["?"], houdini: ["?"] },
];

/** What holds in both maps, and what the mouse does. */
export const ALWAYS: [keys: string, label: string][] = [
  ["Ctrl+S", "Save"], ["Ctrl+Enter", "While it cooks: branch a new revision with the changed knobs"], ["Ctrl+Z", "Undo"], ["Ctrl+Shift+Z, Ctrl+Y", "Redo"], ["Ctrl+C, Ctrl+X, Ctrl+V", "Copy, cut, paste nodes as text"],
  ["Arrow keys", "Move the selected"], ["Drag from a port", "A wire; into the empty, a node that fits"], ["Drag a node onto a wire", "Put it into the wire"],
  ["Ctrl + right drag, or Y + drag", "Cut wires with a stroke"], ["Alt + click or double click on a wire", "A dot; double click on it takes it away"], ["Shift + drag", "Select within a box"], ["Double click", "Add a node; on a solve, into its substeps"],
];

interface Pressed { key: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean; shiftKey: boolean }

/** Return a key as maps write it; Shift is told with letters and named keys, since in signs it is held anyway. */
export function pressed(event: Pressed): string {
  const key = event.key.length === 1 ? event.key.toUpperCase() : event.key, shift = event.shiftKey && (key.length > 1 || key !== key.toLowerCase());
  return `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${shift ? "Shift+" : ""}${key}`;
}

export function actionOf(event: Pressed, preset: Preset): Action | undefined {
  const found = pressed(event);
  return ACTIONS.find((each) => each[preset].includes(found))?.name;
}

/** Return what a button's tip says. */
export function keyOf(action: Action, preset: Preset): string { return ACTIONS.find((each) => each.name === action)![preset][0].replaceAll("+", " "); }
