/** Plays the frames that lie in the page itself, with the view of the editor; see mpm_nodes/editor/one_file.py. */
import { Held } from "../model/held";
import { digits, length } from "../model/units";
import { type Frame, type Triple, unpack } from "../view/frame";
import { GRADIENT } from "../view/ramp";
import { View } from "../view/scene";
import style from "./player.css?inline";

interface Facts { title: string; frames: number[]; fps: number; attribute: string; unit: string; values: [number, number]; points: number; shown: number; box: [Triple, Triple] | null }

const MOST_BYTES = 400e6;
const facts = JSON.parse(document.getElementById("facts")!.textContent!) as Facts, packed = [...document.querySelectorAll<HTMLElement>("script.frame")];

function made<K extends keyof HTMLElementTagNameMap>(tag: K, within: HTMLElement, name = "", text = ""): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.textContent = text;
  within.append(element);
  return element;
}

made("style", document.head, "", style);
const stage = made("div", document.body, "stage"), top = made("div", stage, "top"), bar = made("div", document.body, "timeline");
stage.tabIndex = 0;
made("h1", top, "", facts.title);
const colour = made("select", made("label", top, "", "Colour "));
for (const [value, label] of [["", "as it looks"], ...(facts.attribute ? [[facts.attribute, facts.attribute.replaceAll("_", " ")]] : [])]) { const option = made("option", colour, "", label); option.value = value; }
colour.value = facts.attribute;
const layers = made("div", top, "layers"), told = made("p", stage, "facts"), scale = made("div", stage, "scale"), rule = made("span", scale), ruled = made("b", scale);
const legend = made("figure", stage, "legend");
made("figcaption", legend, "", `${facts.attribute.replaceAll("_", " ")}${facts.unit && ` [${facts.unit}]`}`);
made("div", legend).style.backgroundImage = GRADIENT;
for (const share of [0, 0.5, 1]) made("span", legend, "", digits(facts.values[0] + share * (facts.values[1] - facts.values[0])));
const play = made("button", bar, "", "Play"), slider = made("input", bar), output = made("output", bar);
slider.type = "range"; slider.min = "0"; slider.max = String(facts.frames.length - 1); slider.value = "0"; slider.ariaLabel = "Frame";
told.textContent = `${facts.points.toLocaleString("en")} points${facts.shown < facts.points ? `, ${facts.shown.toLocaleString("en")} in this file` : ""}`;
told.hidden = !facts.points;

const view = new View(stage), held = new Held<Frame>(MOST_BYTES), hidden = new Set<string>();
view.onScale = ({ metres, pixels }) => { rule.style.width = `${pixels}px`; ruled.textContent = length(metres); };
const painted = () => {
  view.paint({ range: facts.values, ramped: colour.value !== "", pointSize: 1, hidden: new Set(hidden), slice: { axis: null, at: 0, flipped: false } });
  legend.hidden = colour.value === "";
};
const themed = () => { const read = getComputedStyle(document.documentElement); view.theme(...(["--view", "--major", "--minor"].map((each) => read.getPropertyValue(each).trim()) as [string, string, string])); };

async function read(n: number): Promise<Frame> {
  return held.load(String(n), async () => {
    const text = atob(packed[n].textContent!.trim()), bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    return unpack(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  });
}

/** Look at all places where the matter is in the shot. */
function lookAtAll(): void {
  const [low, high] = facts.box ?? [[0, 0, 0], [0, 0, 0]], size = high.map((each, axis) => each - low[axis]);
  view.frameAll(facts.box && { centre: low.map((each, axis) => each + size[axis] / 2) as Triple, reach: Math.hypot(...size) / 2 });
}

let now = 0, playing = false, clock = 0, wanted = 0;
async function show(n: number): Promise<void> {
  const turn = ++wanted, frame = await read(n);
  if (turn !== wanted) return;
  now = n;
  if (!layers.childElementCount) {
    for (const each of frame.layers.filter((layer) => frame.shown.includes(layer.name))) {
      const label = made("label", layers), box = made("input", label);
      box.type = "checkbox"; box.checked = true;
      box.onchange = () => { if (box.checked) hidden.delete(each.name); else hidden.add(each.name); painted(); };
      label.append(each.label);
    }
  }
  view.show(frame);
  if (playing) view.moves();
  if (!stage.dataset.frame) lookAtAll();
  slider.value = String(n);
  output.textContent = `frame ${facts.frames[n]} of ${facts.frames.at(-1)}`;
  stage.dataset.frame = String(facts.frames[n]);
  stage.ariaLabel = `Frame ${facts.frames[n]}: ${told.textContent}`;
}

/** Play in the time of the shot: where frames do not come as fast, some are left out. */
function run(on: boolean): void {
  playing = on;
  play.textContent = on ? "Pause" : "Play";
  clearTimeout(clock);
  const begin = performance.now(), from = now === facts.frames.length - 1 ? 0 : now;
  const beat = async () => {
    if (!playing) return;
    await show((from + Math.floor(((performance.now() - begin) * facts.fps) / 1000)) % facts.frames.length);
    const passed = ((performance.now() - begin) * facts.fps) / 1000;
    clock = window.setTimeout(beat, ((1 - (passed % 1)) * 1000) / facts.fps);
  };
  if (on) void beat();
}

const go = (n: number) => { run(false); void show(Math.min(Math.max(n, 0), facts.frames.length - 1)); };
play.onclick = () => run(!playing);
slider.oninput = () => go(Number(slider.value));
colour.onchange = painted;
window.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (target.matches("select, input[type=checkbox], button") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " ") { event.preventDefault(); run(!playing); }
  else if (event.key === "ArrowLeft" && target !== slider) go(now - 1);
  else if (event.key === "ArrowRight" && target !== slider) go(now + 1);
  else if (event.key.toLowerCase() === "f" || event.key === "Home") lookAtAll();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
themed();
painted();
void show(0);
