// Measures in Chromium for editor_view.py: node editor_view.mjs URL WEB BEGIN FRAMES; prints one JSON line, in milliseconds.
import { createRequire } from "node:module";

const [url, web, begin, frames] = process.argv.slice(2);
const { chromium } = createRequire(`${web}/`)("playwright-core");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--enable-unsafe-swiftshader", "--no-sandbox"],
});
const page = await (await browser.newContext({ viewport: { width: 1400, height: 900 } })).newPage();
const launched = Date.now();
// each picture that the view draws ends with a fence
await page.addInitScript(() => { const fence = WebGL2RenderingContext.prototype.fenceSync; window.pictures = 0; WebGL2RenderingContext.prototype.fenceSync = function (...given) { window.pictures++; return fence.apply(this, given); }; });

/** Return the time at which the frame stands in the canvas: its pixels are read, which waits for the drawing. */
const drawn = (frame, draft) => page.evaluate(([frame, draft]) => new Promise((done) => {
  const look = () => {
    const stage = document.querySelector(".stage");
    if (!stage || (frame ? stage.dataset.frame !== String(frame) : !stage.dataset.frame) || (!draft && stage.dataset.draft !== "false")) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const gl = stage.querySelector("canvas").getContext("webgl2");
      gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
      done(performance.timeOrigin + performance.now());
    }));
  };
  look();
}), [frame, draft]);
const ask = async (frame, draft) => {
  const start = await page.evaluate((frame) => {
    const bar = document.querySelector('.timeline input[type="range"]'), set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    const now = performance.timeOrigin + performance.now();
    if (frame) { set.call(bar, String(frame)); bar.dispatchEvent(new Event("input", { bubbles: true })); }
    return now;
  }, frame);
  return (await drawn(frame, draft)) - start;
};
/** Return the seconds of processors that all of Chromium has taken. */
const system = await browser.newBrowserCDPSession();
const taken = async () => (await system.send("SystemInfo.getProcessInfo")).processInfo.reduce((sum, each) => sum + each.cpuTime, 0);
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

await page.goto(url);
const found = { first: (await drawn(0, true)) - Number(begin), launch: launched - Number(begin) };
await drawn(0, false);
found.points = Number(await page.locator(".stage").getAttribute("data-points"));
const all = [], some = [];
for (let frame = 1; frame < Number(frames); frame++) { some.push(await ask(frame, true)); all.push(some.at(-1) + (await ask(0, false))); }
found.some = median(some);
found.all = median(all);
const spent = await taken();
found.again = median([await ask(1, false), await ask(2, false), await ask(3, false)]);
found.processor = (1000 * ((await taken()) - spent)) / 3;
// the view is turned: how long a picture takes
const box = await page.locator(".stage").boundingBox();
await page.mouse.move(box.x + 500, box.y + 200);
await page.mouse.down();
const before = await page.evaluate(() => window.pictures), start = Date.now();
for (let n = 0; Date.now() - start < 4000; n++) await page.mouse.move(box.x + 500 + 200 * Math.sin(n / 40), box.y + 200);
found.turning = (Date.now() - start) / Math.max(1, (await page.evaluate(() => window.pictures)) - before);
await page.mouse.up();
console.log(JSON.stringify(found));
await browser.close();
