// Drives the 3D view in Chromium: node view.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { differs, faint, launch, pixels, unnamed, watched } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), found = {}, browser = await launch(web);
const page = await (await browser.newContext({ viewport: { width: 1400, height: 900 }, colorScheme: "dark", reducedMotion: "reduce" })).newPage();
const { faults, outside } = watched(page, url.split("#")[0]), picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
page.setDefaultTimeout(60000);

/** Wait until a frame is drawn with all its points; what is drawn next is one picture later. */
const drawn = async (frame) => {
  await page.locator(`.stage[data-frame="${frame}"][data-draft="false"]`).waitFor();
  await page.evaluate(() => new Promise((done) => { const gl = document.querySelector(".stage canvas").getContext("webgl2"), wait = (n) => requestAnimationFrame(() => { gl.finish(); if (n) wait(n - 1); else done(); }); wait(4); }));
};
const stage = page.locator(".stage"), toolbar = page.locator(".over.top");
const menu = async (name, act) => { await toolbar.locator("summary", { hasText: name }).click(); await act(toolbar.locator(".menu[open]")); await page.keyboard.press("Escape"); };
let layers = 0; // that are on
const layer = async (name, on) => {
  await menu("Layers", (panel) => panel.locator("label", { hasText: new RegExp(`^\\s*${name}`) }).locator("input").setChecked(on));
  layers += on ? 1 : -1;
  await page.locator(`.stage[data-layers="${layers}"]`).waitFor();
};
const select = (label) => toolbar.locator("label", { hasText: label }).locator("select");

try {
  await page.goto(url);
  await drawn(3);
  const box = await stage.boundingBox(), middle = [box.x + box.width / 2, box.y + box.height / 2], part = { x: middle[0] - 250, y: middle[1] - 120, width: 500, height: 240 };
  const look = async () => { await drawn(3); return pixels(page, part); };

  // layers: all forms are offered, each changes the picture, and the last one that is switched off leaves the ground
  layers = Number(await stage.getAttribute("data-layers"));
  await layer("particles of drops", false);
  await layer("bodies", false);
  await menu("Layers", async (panel) => { found.offered = (await panel.locator("label").allInnerTexts()).map((each) => each.split("\n")[0]); });
  await page.getByRole("button", { name: "Frame all" }).click();
  const points = await look();
  await layer("particles of cache", false);
  const ground = await look();
  found.points = differs(points, ground);
  for (const name of ["surface of cache", "level set surface", "fog density"]) {
    await layer(name, true);
    found[name] = differs(await look(), ground);
    await picture(name.replaceAll(" ", "_"));
    await layer(name, false);
  }
  await layer("particles of cache", true);

  // a slice takes half of them away
  await menu("Slice", async (panel) => { await panel.locator("button", { hasText: "x" }).click(); });
  const cut = await look();
  found.sliced = differs(cut, points);
  await picture("slice");
  await menu("Slice", async (panel) => { await panel.locator("button", { hasText: "off" }).click(); });

  // a particle: its mark lies where one has clicked, its values, its plot; a second one measures
  const greens = async ([x, y]) => { const { data } = await pixels(page, { x: x - 26, y: y - 26, width: 52, height: 52 }, 1); let count = 0; for (let at = 0; at < data.length; at += 4) if (data[at + 1] > 150 && data[at] < 110 && data[at + 2] < 180) count++; return count; };
  const a = [middle[0] - 30, middle[1]], b = [middle[0] + 30, middle[1] + 10];
  await page.mouse.click(...a);
  await page.locator(".probe .plot path").waitFor({ state: "attached" });
  await drawn(3);
  found.marked = await greens(a);
  found.probe = await page.locator(".probe table").innerText();
  await page.keyboard.down("Shift");
  await page.mouse.click(...b);
  await page.keyboard.up("Shift");
  await page.locator(".probe .apart", { hasText: "cm" }).waitFor();
  await page.locator(".plot path.second").waitFor({ state: "attached" });
  await drawn(3);
  found.markedToo = await greens(b);
  found.apart = await page.locator(".apart").innerText();
  await select("Colour").selectOption("mass");
  await page.locator(".legend").waitFor();
  await drawn(3);
  await picture("picked");
  found.faint = await faint(page);
  await page.locator(".plot").click({ position: { x: 50, y: 30 } });
  await drawn(1);
  found.followed = await page.locator(".apart").innerText();
  await stage.press("Escape");
  await page.locator(".probe").waitFor({ state: "detached" });

  // by keyboard: Enter picks what is in the middle, Shift with arrows turns the view
  await page.locator('.timeline input[type="range"]').fill("3");
  await drawn(3);
  await stage.press("Enter");
  await page.locator(".probe").waitFor();
  await stage.press("Escape");
  await page.locator(".probe").waitFor({ state: "detached" });
  await drawn(3);
  const seen = await pixels(page, part);
  await stage.press("Shift+ArrowLeft");
  await drawn(3);
  found.turned = differs(await pixels(page, part), seen);

  // the ends of the colours are typed, and stay over frames
  await page.locator(".legend input").last().fill("0.2");
  await page.locator(".legend input").last().press("Enter");
  found.fixed = await page.locator(".legend select").inputValue();
  found.legend = await page.locator(".legend").getAttribute("aria-label");

  // two cooks side by side, and with a wipe that the arrow keys move
  await select("Beside").selectOption({ label: "r000" });
  found.nothingBeside = await page.locator(".stage .hint", { hasText: "whole frame" }).innerText();
  found.toasts = await page.locator(".toast").count();
  await select("Beside").selectOption({ label: "r001" });
  await page.locator('.stage[data-beside="3"]').waitFor();
  await drawn(3);
  await picture("beside");
  await toolbar.getByRole("button", { name: "wipe" }).click();
  const border = page.getByRole("separator", { name: "Border of the two cooks" }), at = Number(await border.getAttribute("aria-valuenow"));
  await border.press("ArrowRight");
  found.wiped = Number(await border.getAttribute("aria-valuenow")) - at;
  await drawn(3);
  await picture("wipe");
  found.unnamed = await unnamed(page);
  await select("Beside").selectOption("");

  // handles: one drag is one step, and of a knob with keys it writes the key at the frame
  await page.locator(".card-head b", { hasText: /^ball$/ }).click();
  const x = page.locator('.knob[data-knob="centre"] .keys tbody tr').nth(1).locator("td").nth(1).locator("input").first();
  found.before = Number(await x.inputValue());
  await page.getByRole("button", { name: "Frame all" }).click();
  await drawn(3);
  await picture("handles");
  await page.mouse.move(...middle);
  await page.mouse.down();
  await page.mouse.move(middle[0] + 40, middle[1], { steps: 5 });
  await page.mouse.move(middle[0] + 80, middle[1], { steps: 5 });
  await page.mouse.up();
  await page.locator(".unsaved").waitFor();
  found.after = Number(await x.inputValue());
  found.keys = await page.locator('.knob[data-knob="centre"] .keys tbody tr').count();
  await page.getByRole("button", { name: "Undo" }).click();
  found.undone = Number(await x.inputValue());
  found.oneStep = await page.getByRole("button", { name: "Undo" }).isDisabled();

  // played in a light page
  await page.emulateMedia({ colorScheme: "light" });
  const played = page.evaluate(() => new Promise((done) => { const stage = document.querySelector(".stage"), seen = new Set(); new MutationObserver((_, watch) => { seen.add(stage.dataset.frame); if (seen.size > 1) { watch.disconnect(); done(seen.size); } }).observe(stage, { attributes: true, attributeFilter: ["data-frame"] }); }));
  await page.locator(".timeline .play").click();
  found.played = await played;
  await page.locator(".timeline .play").click();
  found.faint.push(...(await faint(page)));
  await picture("light");
} catch (error) {
  found.error = String(error.stack ?? error);
  await picture("failed").catch(() => {});
}
console.log(JSON.stringify({ ...found, faults, outside }));
await browser.close();
