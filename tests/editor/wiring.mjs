// Nodes on wires, strokes, dots, frames and notes, in Chromium: node wiring.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { handles, launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
const found = {};
const { faults, file, node, picture, save, undo } = handles(page, folder);

const head = (name) => node(name).locator(".card-head");
const edges = () => page.locator(".react-flow__edge").count();
const middle = (id) => page.locator(`.react-flow__edge[data-id="${id}"] .react-flow__edge-path`).evaluate((path) => {
  const at = path.getPointAtLength(path.getTotalLength() / 2), matrix = path.getScreenCTM();
  return [at.x * matrix.a + at.y * matrix.c + matrix.e, at.x * matrix.b + at.y * matrix.d + matrix.f];
});
const centre = async (locator) => { const box = await locator.boundingBox(); return [box.x + box.width / 2, box.y + box.height / 2]; };
async function drag(from, to, options = {}) {
  await page.mouse.move(...from);
  await page.mouse.down(options);
  await page.mouse.move(from[0] + 2, from[1] + 2); // a drag begins where the pointer is seen to move
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2, { steps: 3 });
  await page.mouse.move(...to, { steps: 5 });
  await options.before?.();
  await page.mouse.up(options);
}
const wire = "ball.particles>fall.sources.0";

try {
  await page.goto(url);
  await node("fall").waitFor();
  await page.locator(".tools button", { hasText: "Fit" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 4);

  // Tab over a wire offers what fits into it, and puts it in
  await page.mouse.move(...await middle(wire));
  await page.locator(".flow").focus();
  await page.keyboard.press("Tab");
  found.into = await page.locator(".palette .into").innerText();
  found.offered = await page.locator(".palette li").count();
  found.offer = "Set Attribute";
  await picture("insert");
  await page.locator(".palette li", { hasText: found.offer }).click();
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 5);
  await save();
  const through = file().nodes.fall.inputs.sources, into = file().nodes[through[0].split(".")[0]];
  found.room = ["fall", "writer"].map((name) => file().nodes[name].position[0] - into.position[0]);
  found.through = [through.length, Object.values(file().nodes[through[0].split(".")[0]].inputs).flat().includes("ball")];
  await undo();
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 4);

  // a node that is dragged onto a wire opens it
  const pane = await page.locator(".react-flow__pane").boundingBox(), empty = [pane.x + pane.width / 2, pane.y + pane.height - 40];
  await page.mouse.move(...empty);
  await page.locator(".flow").focus();
  await page.keyboard.press("Shift+A");
  await page.locator(".palette input").fill(found.offer);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".card").length === 6);
  const fresh = await page.locator(".knobs .name").inputValue();
  const lay = await head(fresh).boundingBox();
  await drag(await centre(head(fresh)), await middle(wire), { before: async () => { await page.locator(".react-flow__edge.open").waitFor(); await picture("onto"); } });
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 5);
  await save();
  await picture("dropped");
  found.overlapping = await page.evaluate(() => [...document.querySelectorAll(".card")].map((card) => card.getBoundingClientRect()).flatMap((a, n, all) => all.slice(n + 1).filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length);
  found.dropped = [file().nodes.fall.inputs.sources, Object.values(file().nodes[fresh].inputs).flat()];
  await undo();
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 4);
  found.afterUndo = [await edges(), Math.round((await head(fresh).boundingBox()).x - lay.x)];
  await undo();
  await page.waitForFunction(() => document.querySelectorAll(".card").length === 5);

  // dots: an Alt click, a drag, a double click; the wire stays one between nodes
  const at = await middle(wire);
  await page.keyboard.down("Alt");
  await page.mouse.click(...at);
  await page.keyboard.up("Alt");
  await page.locator(".dot").waitFor();
  const dot = await centre(page.locator(".dot"));
  await drag(dot, [dot[0], dot[1] + 60]);
  await save();
  found.dots = file().nodes.fall.editor.page.dots;
  found.wire = file().nodes.fall.inputs.sources;
  await picture("dots");
  await page.locator(".dot").focus();
  await page.keyboard.press("Delete");
  await page.locator(".dot").waitFor({ state: "detached" });

  // a frame around two nodes takes them along; a note keeps its text
  await head("jelly").click();
  await page.keyboard.down("Shift"); await head("ball").click(); await page.keyboard.up("Shift");
  await page.locator(".flow").focus();
  await page.keyboard.press("Control+j");
  await page.locator(".frame-head").waitFor();
  await page.keyboard.type("Matter");
  await page.locator(".frame-head", { hasText: "Matter" }).waitFor();
  await save();
  const before = file();
  const title = await centre(page.locator(".frame-head"));
  await drag(title, [title[0] + 30, title[1] + 40]);
  await save();
  const after = file(), moved = (name) => after.nodes[name].position.map((part, n) => part - before.nodes[name].position[n]);
  found.frame = after.editor.page.frames;
  found.moved = [moved("jelly"), moved("ball"), moved("fall"), after.editor.page.frames[0].position.map((part, n) => part - before.editor.page.frames[0].position[n])];
  await page.mouse.move(...empty);
  await page.locator(".flow").focus();
  await page.keyboard.press("Shift+P");
  await page.locator(".note-box textarea").fill("Do not touch <b>this</b>");
  await head("ground").click();
  await page.locator(".knobs .swatches button").nth(3).click();
  await save();
  found.note = file().editor.page.notes[0].text;
  found.colour = file().nodes.ground.editor.page.colour;
  await page.emulateMedia({ colorScheme: "light" });
  await picture("framed_light");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture("framed_dark");

  // a stroke cuts the wires that it crosses
  const [x, y] = await middle(wire);
  await page.keyboard.down("Control");
  await drag([x - 4, y - 22], [x + 4, y + 16], { button: "right", before: () => picture("stroke") });
  await page.keyboard.up("Control");
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 3);
  await save();
  found.cut = file().nodes.fall.inputs;
  await undo();

  // align, from afar, enlarged, keys
  await page.locator(".flow").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Shift+L");
  await save();
  found.aligned = new Set(Object.values(file().nodes).map((entry) => entry.position[0])).size;
  await undo();
  await page.keyboard.press("?");
  await page.locator("dialog.help[open]").waitFor();
  await page.locator(".help label", { hasText: "Houdini" }).click();
  await picture("help");
  await page.keyboard.press("Escape");
  await page.locator("dialog.help[open]").waitFor({ state: "detached" });
  await head("ground").click();
  await page.locator(".flow").focus();
  await page.keyboard.press("b");
  await page.locator(".card.bypassed").waitFor();
  await undo();
  const box = await page.locator(".react-flow__pane").boundingBox();
  await page.mouse.move(box.x + 200, box.y + 100);
  for (let n = 0; n < 30; n++) await page.mouse.wheel(0, 300);
  await page.locator(".flow.far").waitFor();
  found.thin = await page.locator(".react-flow__edge-path").first().evaluate((path) => parseFloat(getComputedStyle(path).strokeWidth) * path.getScreenCTM().a);
  await picture("far");
  await page.locator(".tools button", { hasText: "Fit" }).click();
  await page.setViewportSize({ width: 700, height: 450 });
  await page.locator(".tools button", { hasText: "Fit" }).click();
  found.covered = await page.evaluate(() => [...document.querySelectorAll(".graph-bar nav *, .graph-bar .tools > *")].filter((each) => {
    const b = each.getBoundingClientRect(), canvas = document.querySelector(".canvas").getBoundingClientRect();
    return b.bottom > canvas.top + 1 && b.top < canvas.bottom && each.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true });
  }).map((each) => each.textContent));
  await picture("enlarged");
  // the view never lies over the knobs
  for (const height of [800, 450]) {
    await page.setViewportSize({ width: 480, height });
    (found.apart ??= []).push(await page.evaluate(() => {
      const [view, knobs] = [".viewer", ".knobs"].map((each) => document.querySelector(each)), [a, b] = [view.getBoundingClientRect(), knobs.getBoundingClientRect()];
      return view.scrollWidth <= view.clientWidth && (a.right <= b.left || a.bottom <= b.top);
    }));
    await picture(`narrow_${height}`);
  }
} catch (error) {
  found.error = String(error.stack ?? error);
  await picture("failed").catch(() => {});
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
