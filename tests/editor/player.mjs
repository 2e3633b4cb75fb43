// Opens a file that plays a cache in Chromium, without a network: node player.mjs FILE FOLDER WEB; prints one JSON line of what was found.
import { differs, faint, launch, pixels, unnamed, watched } from "./seen.mjs";

const [file, folder, web] = process.argv.slice(2), found = {}, browser = await launch(web);
const page = await (await browser.newContext({ viewport: { width: 900, height: 600 }, colorScheme: "dark", offline: true })).newPage();
const { faults, outside } = watched(page, file), picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
page.setDefaultTimeout(60000);
const drawn = async (frame) => { await page.locator(`.stage[data-frame="${frame}"][data-drawn="${frame}"]`).waitFor(); return pixels(page, { x: 150, y: 60, width: 600, height: 420 }); };

try {
  await page.goto(file);
  const first = await drawn(1);
  await picture("player");
  await page.locator("input[type=range]").fill("2");
  const last = await drawn(3);
  found.moved = differs(first, last);
  await page.locator("label select").selectOption("");
  await page.locator(".legend").waitFor({ state: "hidden" });
  await page.locator("input[type=range]").fill("0");
  found.coloured = differs(await drawn(1), first);
  await page.locator("label select").selectOption("mass");
  found.legend = await page.locator(".legend").innerText();
  found.facts = await page.locator(".facts").innerText();
  await page.locator("input[type=range]").press("ArrowRight");
  await drawn(2);
  found.faint = await faint(page);
  found.unnamed = await unnamed(page);
  // it plays over and over: the last frame, and the first one again
  const seen = page.evaluate(() => new Promise((done) => { const stage = document.querySelector(".stage"), frames = new Set(); new MutationObserver((_, watch) => { frames.add(stage.dataset.frame); if (frames.size > 1) { watch.disconnect(); done(frames.size); } }).observe(stage, { attributes: true, attributeFilter: ["data-frame"] }); }));
  await page.getByRole("button", { name: "Play" }).click();
  found.played = await seen;
  await page.getByRole("button", { name: "Pause" }).click();
  await page.emulateMedia({ colorScheme: "light" });
  found.faint.push(...(await faint(page)));
  await picture("player_light");
} catch (error) {
  found.error = String(error.stack ?? error);
  await picture("failed").catch(() => {});
}
console.log(JSON.stringify({ ...found, faults, outside }));
await browser.close();
