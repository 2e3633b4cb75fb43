// The demo built from an empty page by mouse and keyboard, cooked, scrubbed, broken and mended; node demo.mjs URL FOLDER WEB
import { readFileSync } from "node:fs";
import { drive } from "./chromium.mjs";

// what FOLDER/wanted holds: nodes by name in the order in which they are made, and settings
await drive(async ({ page, folder, found, url, node, button, status }) => {
  const wanted = JSON.parse(readFileSync(`${folder}/wanted`, "utf-8")), begun = Date.now();
  found.clicks = 0;
  const click = async (locator, options) => { found.clicks++; await locator.click(options); };
  const knob = (name) => page.locator(`.knob[data-knob="${name}"]`);
  const picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
  async function typeInto(field, value) { await field.fill(String(value)); await field.press("Enter"); }
  async function set(name, value) {
    const row = knob(name);
    if (Array.isArray(value)) for (const [n, part] of value.entries()) await typeInto(row.locator(".vector input").nth(n), part);
    else if (typeof value === "boolean") { found.clicks++; await row.locator('input[type="checkbox"]').setChecked(value); }
    else if (await row.locator("select").count()) await row.locator("select").selectOption(JSON.stringify(value));
    else await typeInto(row.locator("input").first(), value);
  }
  const centre = async (locator) => { const box = await locator.boundingBox(); return [box.x + box.width / 2, box.y + box.height / 2]; };
  async function wire(source, output, target, input) {
    const handle = (name, kind, port) => node(name).locator(`.react-flow__handle.${kind}[data-handleid="${port}"]`);
    const before = await page.locator(".react-flow__edge").count();
    await page.mouse.move(...(await centre(handle(source, "source", output))));
    await page.mouse.down();
    await page.mouse.move(...(await centre(handle(target, "target", input))), { steps: 5 });
    await page.mouse.up();
    found.clicks++;
    await page.waitForFunction((n) => document.querySelectorAll(".react-flow__edge").length === n, before + 1);
  }

  await page.goto(url);
  await page.locator(".begin form input").fill("demo");
  await picture("empty");
  await page.locator(".begin form input").press("Enter");
  const divider = page.locator('[role=separator][aria-label="Height of the 3D view"]');
  await divider.focus();
  for (let n = 0; n < 20; n++) await page.keyboard.press("ArrowUp");

  // nodes by search, with their names and knobs
  for (const [name, { type, knobs = {}, place }] of Object.entries(wanted.nodes)) {
    const pane = await page.locator(".react-flow__pane").boundingBox();
    await page.mouse.move(pane.x + place[0], pane.y + place[1]);
    await page.locator(".flow").focus();
    await page.keyboard.press("Shift+a");
    await page.locator(".palette input").fill(type.replaceAll("_", " "));
    await page.keyboard.press("Enter");
    await page.locator(".knobs code", { hasText: type }).waitFor();
    await typeInto(page.locator(".knobs .name"), name);
    await node(name).waitFor();
    for (const [each, value] of Object.entries(knobs)) await set(each, value);
  }
  for (const [target, { inputs = {} }] of Object.entries(wanted.nodes)) {
    for (const [input, sources] of Object.entries(inputs)) {
      for (const each of [sources].flat()) { const [source, output] = each.split("."); await wire(source, output ?? wanted.outputs[source], target, input); }
    }
  }
  await page.locator(".flow").focus();
  await page.keyboard.press("Alt+a");
  for (const [each, value] of Object.entries(wanted.settings)) await set(each, value);
  await page.keyboard.press("Control+s");
  await page.locator(".unsaved").waitFor({ state: "detached" });
  found.built = (Date.now() - begun) / 1000;
  found.saved = readFileSync(`${folder}/demo.json`, "utf-8");
  await page.locator(".status summary", { hasText: "No problems" }).waitFor();
  await picture("built");

  // cooked and scrubbed
  await click(button("Cook"));
  await status("All frames are cooked").waitFor({ timeout: 240_000 });
  found.frames = [];
  for (const frame of [1, 3, 2]) {
    await page.locator('.timeline input[type="range"]').fill(String(frame));
    await page.locator(`.stage[data-frame="${frame}"]`).waitFor();
    found.frames.push(Number(await page.locator(".stage").getAttribute("data-points")));
  }

  // a wire that is broken is told on its node, and undone
  const edge = page.locator(".react-flow__edge", { has: page.locator('[id*="cheese"]') }).or(page.locator('.react-flow__edge[data-id*="cheese"]')).first();
  await edge.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Delete");
  await node("slab").locator(".badge.error").waitFor();
  found.badge = await node("slab").locator(".badge.error").getAttribute("title");
  await picture("broken");
  await page.locator(".flow").focus();
  await page.keyboard.press("Control+z");
  await node("slab").locator(".badge.error").waitFor({ state: "detached" });
  await page.keyboard.press("Control+s");
  await page.waitForFunction(() => !document.querySelector(".unsaved"));
  found.after = readFileSync(`${folder}/demo.json`, "utf-8") === found.saved;
});
