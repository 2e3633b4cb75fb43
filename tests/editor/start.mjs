// From the empty page to moving matter in one click, in Chromium: node start.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { readFileSync } from "node:fs";
import { handles, launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
const found = {};
const { faults, picture } = handles(page, folder);
page.on("dialog", (dialog) => void dialog.accept().catch(() => {}));

try {
  await page.goto(url);
  await page.locator(".quick button").first().waitFor();
  await page.locator(".samples img").nth(3).waitFor();
  found.quick = await page.locator(".quick b").allInnerTexts();
  await picture("start_dark");
  await page.emulateMedia({ colorScheme: "light" });
  await picture("start_light");
  await page.emulateMedia({ colorScheme: "dark" });
  found.edge = await page.locator(".start").evaluate((each) => innerWidth - each.getBoundingClientRect().right);
  // all that is said while it cooks, and before the first frame is there
  await page.evaluate(() => { window.said = new Set(); new MutationObserver(() => { if (document.querySelector(".bar .stop")) for (const each of document.querySelectorAll(".status [role=status], .stage .hint")) window.said.add(each.textContent); }).observe(document.body, { subtree: true, childList: true, characterData: true }); });
  const begun = Date.now();
  await page.locator(".quick button", { hasText: "Toothpaste" }).click();
  await page.locator(".card b", { hasText: "motion" }).waitFor();
  found.unsaved = await page.locator(".unsaved").count();
  await page.locator('.stage[data-frame]:not([data-frame="1"])').waitFor({ timeout: 120000 });
  found.seconds = (Date.now() - begun) / 1000;
  found.said = await page.evaluate(() => [...window.said]);
  found.points = Number(await page.locator(".stage").getAttribute("data-points"));
  await picture("quick");
  // it is seen whole where it has fallen to
  await page.waitForFunction(() => Number(document.querySelector(".stage").dataset.frame) >= 13 && document.querySelector(".stage").dataset.drawn === document.querySelector(".stage").dataset.frame, null, { timeout: 120000 });
  const stage = await page.locator(".stage").boundingBox();
  const bright = async (rows) => page.evaluate(async (bytes) => {
    const image = await createImageBitmap(new Blob([new Uint8Array(bytes)])), canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.width, image.height);
    let count = 0;
    for (let n = 0; n < data.length; n += 4) if (data[n + 1] > 120) count++;
    return count;
  }, [...await page.screenshot({ clip: { ...stage, y: stage.y + stage.height - rows, height: rows } })]);
  found.seen = [await bright(stage.height), await bright(4)];
  await page.locator(".bar button", { hasText: "Stop" }).click({ timeout: 1000 }).catch(() => {}); // where it is not over
  await page.locator(".bar button", { hasText: "Resume" }).waitFor({ timeout: 60000 });
  found.written = JSON.parse(readFileSync(`${folder}/toothpaste.json`, "utf-8")).nodes.body.type;

  // loaded again, the page shows what it showed
  await page.reload();
  await page.locator(".card b", { hasText: "motion" }).waitFor();

  // artists' words
  await page.locator(".flow").focus();
  for (const typed of ["glue", "pour", "melt", "tornado", "explosion"]) {
    await page.keyboard.press("Shift+A");
    await page.locator(".palette input").fill(typed);
    (found.words ??= {})[typed] = await page.locator(".palette li b").allInnerTexts();
    await page.keyboard.press("Escape");
  }

  // the address that the command has printed, put into a tab that is open, opens what it says
  await page.goto(url);
  await page.locator(".quick button").first().waitFor();
} catch (error) {
  found.error = String(error.stack ?? error);
  await picture("failed").catch(() => {});
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
