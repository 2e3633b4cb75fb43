// A graph of many nodes, moved about in Chromium: node large.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
const faults = [], found = {};
page.on("pageerror", (error) => faults.push(error.message));
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", { timeDomain: "threadTicks" });
const used = async () => (await session.send("Performance.getMetrics")).metrics.find((each) => each.name === "TaskDuration").value;
const middle = (all) => all.toSorted((a, b) => a - b)[all.length >> 1];

/** Move the graph by hand; return the median of frames [ms], main thread per step [ms], and what was drawn again. */
async function moved(steps) {
  const box = await page.locator(".react-flow__pane").boundingBox(), x = box.x + 30, y = box.y + 14;
  await page.evaluate(() => {
    window.frames_ = []; window.again = 0;
    let last = performance.now();
    const tick = (now) => { window.frames_.push(now - last); last = now; window.clock = requestAnimationFrame(tick); };
    window.clock = requestAnimationFrame(tick);
    window.watch = new MutationObserver((changes) => { for (const each of changes) if (each.target.closest?.(".card")) window.again++; });
    window.watch.observe(document.querySelector(".react-flow__nodes"), { subtree: true, childList: true, attributes: true, characterData: true });
  });
  await page.mouse.move(x, y);
  await page.mouse.down();
  const begun = await used();
  for (let n = 1; n <= steps; n++) await page.mouse.move(x + (n % 20) * 6, y + (n % 10) * 2);
  await page.mouse.up();
  const spent = ((await used()) - begun) * 1000;
  const [frames, again] = await page.evaluate(() => { cancelAnimationFrame(window.clock); window.watch.disconnect(); return [window.frames_, window.again]; });
  return { frame: Math.round(middle(frames) * 10) / 10, thread: Math.round((spent / steps) * 10) / 10, again, cards: await page.locator(".card").count() };
}

try {
  const begun = Date.now();
  await page.goto(url);
  await page.locator(".card").first().waitFor();
  await page.waitForFunction(() => document.querySelector(".react-flow__viewport")?.style.transform.includes("scale(") && document.querySelectorAll(".react-flow__edge").length > 20);
  found.opened = (Date.now() - begun) / 1000;
  found.whole = await moved(60);
  await page.screenshot({ path: `${folder}/large_whole.png` });
  const box = await page.locator(".react-flow__pane").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let n = 0; n < 40; n++) {
    await page.mouse.wheel(0, -240);
    if (await page.evaluate(() => Number(/scale\(([\d.]+)\)/.exec(document.querySelector(".react-flow__viewport").style.transform)[1]) > 0.9)) break;
  }
  found.near = await moved(60);
  await page.screenshot({ path: `${folder}/large_near.png` });

  // one knob: the other cards are not drawn again
  await page.locator(".card .card-head").first().click();
  await page.evaluate(() => {
    window.touched = new Set();
    new MutationObserver((changes) => { for (const each of changes) { const drawn = each.target.closest?.(".card, .react-flow__edge"); if (drawn && !drawn.closest(".selected.react-flow__edge")) window.touched.add(drawn); } }).observe(document.querySelector(".react-flow__viewport"), { subtree: true, childList: true, attributes: true, characterData: true });
  });
  const field = page.locator(".knobs textarea").last();
  await field.fill("one");
  await page.locator(".card .comment").first().waitFor();
  found.touched = await page.evaluate(() => window.touched.size);
} catch (error) {
  found.error = String(error.stack ?? error);
  await page.screenshot({ path: `${folder}/failed.png` }).catch(() => {});
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
