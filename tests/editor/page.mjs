// Drives the page in Chromium: node page.mjs URL FOLDER WEB [SCENARIO]; prints one JSON line of what was found.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { handles, launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, colorScheme: "dark", permissions: ["clipboard-read", "clipboard-write"] });
const page = await context.newPage();
const outside = [], found = {};
const { faults, file, node, knob, picture } = handles(page, folder);
page.on("request", (request) => { if (!request.url().startsWith(url.split("#")[0]) && !/^(data|blob):/.test(request.url())) outside.push(request.url()); });
page.on("dialog", (dialog) => dialog.accept());

const handle = (name, kind, port) => node(name).locator(`.react-flow__handle.${kind}[data-handleid="${port}"]`);
const toast = () => page.locator(".toast").textContent();
const centre = async (locator) => { const box = await locator.boundingBox(); return [box.x + box.width / 2, box.y + box.height / 2]; };
async function drag(from, to) {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2, { steps: 4 });
  await page.mouse.move(...to, { steps: 6 });
  await page.mouse.up();
}
async function wire(a, output, b, input) { await drag(await centre(handle(a, "source", output)), await centre(handle(b, "target", input))); }
async function save() { await page.keyboard.press("Control+s"); await page.locator(".unsaved").waitFor({ state: "detached" }); }
const wires = () => page.locator(".react-flow__edge").count();

try {
  // the graph is seen, and nothing has changed
  const begun = Date.now();
  await page.goto(url);
  await node("fall").waitFor();
  found.firstPicture = Date.now() - begun;
  found.cards = await page.locator(".card").count();
  found.wires = await wires();
  found.tokenIsGone = !page.url().includes("#");
  await page.locator(".status summary", { hasText: "No problems" }).waitFor({ timeout: 30000 });
  await picture("opened");

  // a knob: typed, undone, redone, saved; the rest of the file keeps its bytes
  const before = readFileSync(`${folder}/shot.json`, "utf-8");
  await node("ball").locator(".card-head").click();
  const radius = knob("radius").locator("input").first();
  await radius.fill("0.25");
  await radius.press("Enter");
  await radius.blur();
  await page.locator(".unsaved").waitFor();
  await page.locator(".bar button", { hasText: "Undo" }).click();
  found.undone = await radius.inputValue();
  await page.locator(".bar button", { hasText: "Redo" }).click();
  await save();
  found.knobIsAll = readFileSync(`${folder}/shot.json`, "utf-8") === before.replace('"radius": 0.2', '"radius": 0.25');
  await picture("knobs");

  // a number beyond its hard limit is not taken
  await radius.fill("-1");
  await radius.press("Enter");
  found.limited = await radius.inputValue();
  await page.locator(".flow").press("Escape");

  // search by keyboard, type refusal, a wire
  await page.locator(".react-flow__pane").hover({ position: { x: 60, y: 250 } });
  await page.locator(".flow").focus();
  await page.keyboard.press("Tab");
  await page.locator(".palette input").fill("wind");
  await picture("search");
  await page.keyboard.press("Enter");
  await node("wind").waitFor();
  await node("wind").locator(".card-head").click();
  await wire("wind", "body_force", "fall", "sources");
  found.refused = await toast();
  found.stillWires = await wires();
  await wire("wind", "body_force", "fall", "forces");
  found.wired = await wires();
  await save();
  found.saved = file().nodes.fall.inputs;
  found.placed = Object.values(file().nodes).every((entry) => entry.position.some((part) => part !== 0));

  // a wire that lacks: a badge; its click leads to the node
  await page.locator(".flow").focus();
  await node("jelly").locator(".card-head").click();
  await page.keyboard.press("Delete");
  await node("ball").locator(".badge.error").waitFor({ timeout: 20000 });
  await node("ground").locator(".card-head").click();
  await node("ball").locator(".badge.error").click();
  found.ledTo = await page.locator(".knobs .name").inputValue();
  found.problem = await page.locator(".knobs .problem").first().textContent();
  await picture("problem");
  await page.locator(".flow").focus();
  await page.keyboard.press("Control+z");
  await node("jelly").waitFor();
  found.wiresAgain = await wires();
  await node("ball").locator(".badge.error").waitFor({ state: "detached", timeout: 20000 });

  // what sets how it is computed is folded away until the graph gives some of it
  const longest = knob("dt_max").locator("input").first();
  await node("fall").locator(".card-head").click();
  found.folded = [await longest.isVisible()];
  await page.locator(".folded > summary", { hasText: "Advanced" }).click();
  await longest.fill("0.004");
  await longest.press("Enter");
  await node("ground").locator(".card-head").click();
  await node("fall").locator(".card-head").click();
  found.folded.push(await longest.isVisible());
  await page.locator(".flow").focus();
  await page.keyboard.press("Control+z");

  // copy and paste as text
  await page.keyboard.press("Escape");
  await node("ground").locator(".card-head").click();
  await page.locator(".flow").focus();
  await page.keyboard.press("Control+c");
  found.copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  await page.keyboard.press("Control+v");
  await node("ground_2").waitFor();
  await page.keyboard.press("Control+z");
  await node("ground_2").waitFor({ state: "detached" });

  // dive into the substeps of a preset and make them one's own
  await node("fall").locator(".dive").click();
  await node("rasterize").waitFor();
  await page.waitForTimeout(400);
  found.stages = await page.locator(".card").count();
  await picture("substeps");
  await page.locator(".crumbs button", { hasText: "Make it my own" }).click();
  await node("gather").locator(".card-head").click();
  await knob("flip_fraction").locator("input").first().fill("0.9");
  await knob("flip_fraction").locator("input").first().press("Enter");
  await page.locator(".crumbs button").first().click();
  await node("fall").waitFor();
  await save();
  found.own = file().nodes.fall.knobs.substeps.nodes.gather.knobs;
  await page.locator(".flow").focus();
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await save();
  found.preset = file().nodes.fall.knobs?.substeps ?? "default";

  // a file that something else has written is not overwritten
  await node("ball").locator(".card-head").click();
  await radius.fill("0.24");
  await radius.press("Enter");
  writeFileSync(`${folder}/shot.json`, JSON.stringify({ ...file(), editor: { other: 1 } }));
  await page.keyboard.press("Control+s");
  await page.locator(".conflict").waitFor();
  found.keptOther = file().editor;
  await picture("conflict");
  await page.locator(".conflict button", { hasText: "Read it again" }).click();
  await page.locator(".conflict").waitFor({ state: "detached" });

  // a cook: frames as they finish, the scrub bar, colours with a legend
  await page.locator(".bar button", { hasText: "Cook" }).click();
  await page.locator('.stage[data-frame="1"], .stage[data-frame="2"], .stage[data-frame="3"]').waitFor({ timeout: 240000 });
  await page.locator(".status [role=status]", { hasText: "All frames are cooked" }).waitFor({ timeout: 240000 });
  await page.locator('.stage[data-frame="3"]').waitFor();
  found.points = Number(await page.locator(".stage").getAttribute("data-points"));
  await page.locator('.timeline input[type="range"]').fill("1");
  await page.locator('.stage[data-frame="1"]').waitFor();
  await page.locator('.timeline input[type="range"]').press("ArrowRight");
  await page.locator('.stage[data-frame="2"]').waitFor();
  await page.locator(".over.top label", { hasText: "Colour" }).locator("select").selectOption("velocity");
  await page.locator(".legend").waitFor();
  found.legend = await page.locator(".legend").innerText();
  await page.locator(".over.top button", { hasText: "Frame all" }).click();
  await page.waitForTimeout(600);
  await picture("cooked_dark");
  found.seconds = await node("fall").locator(".seconds").textContent();
  await page.locator(".timeline .play").click();
  await page.waitForFunction(() => document.querySelector(".stage").dataset.frame !== "2");
  await page.locator(".timeline .play").click();
  await page.emulateMedia({ colorScheme: "light" });
  await page.waitForTimeout(600);
  await picture("cooked_light");

  // text holds 4.5 to 1 on its ground, 3 to 1 where it is large (WCAG 2 AA), in both colours of the page
  const faint = () => page.evaluate(() => {
    const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return text.startsWith("color(") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a]; };
    const light = (rgb) => { const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const over = (top, under) => under.map((part, n) => top[n] * top[3] + part * (1 - top[3]));
    const ground = (each) => { const stack = []; for (let at = each; at; at = at.parentElement) stack.unshift(parse(getComputedStyle(at).backgroundColor)); return stack.reduce((under, top) => over(top, under), [255, 255, 255]); };
    return [...document.querySelectorAll("body *")].filter((each) => [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && each.checkVisibility() && !each.closest(":disabled, .sr, option, .bypassed")).map((each) => {
      const style = getComputedStyle(each), under = ground(each), text = over(parse(style.color), under), [a, b] = [light(text), light(under)].sort((x, y) => y - x);
      const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
      return [(a + 0.05) / (b + 0.05) / (large ? 3 : 4.5), `${each.className || each.tagName}: ${each.textContent.trim().slice(0, 30)} ${style.color} ${under.map(Math.round)}`];
    }).filter(([share]) => share < 1).map(([share, text]) => `${(share * 4.5).toFixed(2)} ${text}`);
  });
  await node("ball").locator(".card-head").click();
  found.faint = await faint();
  await page.emulateMedia({ colorScheme: "dark" });
  found.faint.push(...(await faint()));
  await page.emulateMedia({ colorScheme: "light" });

  // what can be reached by keyboard has a name
  found.unnamed = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, summary, [tabindex='0']")].filter((each) => {
    const label = each.getAttribute("aria-label") || each.textContent.trim() || each.getAttribute("title") || (each.id && document.querySelector(`label[for="${each.id}"]`)) || each.closest("label");
    return !label && each.checkVisibility() && !each.classList.contains("react-flow__node") && !each.classList.contains("flow");
  }).map((each) => each.outerHTML.slice(0, 160)));

  // other graphs, and the packaged shots with their pictures
  await page.locator(".bar button").first().click();
  await page.locator(".samples button").first().waitFor();
  await page.locator(".samples img").nth(10).waitFor();
  found.samples = await page.locator(".samples button").count();
  await picture("start");
  await page.locator(".samples button", { hasText: "demo" }).first().click();
  await node("melt").waitFor();
  found.sample = existsSync(`${folder}/demo/trivet.vdb`);
} catch (error) {
  found.error = String(error.stack ?? error);
  await picture("failed").catch(() => {});
}
console.log(JSON.stringify({ ...found, faults, outside }));
await browser.close();
