// A packaged shot that opens cooked, in Chromium: node previews.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { drive } from "./chromium.mjs";
import { differs, faint, pixels, unnamed } from "./seen.mjs";

await drive(async ({ page, folder, found, url, button }) => {
  const picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
  const stage = page.locator(".stage"), slider = page.locator('.timeline input[type="range"]'), toolbar = page.locator(".over.top");
  const drawn = (frame) => page.waitForFunction((frame) => { const { frame: shown, drawn } = document.querySelector(".stage").dataset; return shown === frame && drawn === frame; }, String(frame));
  await page.goto(url);
  const offered = page.locator(".samples").first().locator("li");
  await offered.first().locator("img").waitFor();
  found.offered = await offered.locator("b").allInnerTexts();
  await picture("previews_start");

  // frames, a shaded surface and bodies, before anything is cooked
  const begun = Date.now();
  await offered.filter({ hasText: /demo/i }).click();
  await page.locator(".stage[data-frame]").waitFor();
  found.seconds = (Date.now() - begun) / 1000;
  found.revision = await toolbar.locator("select").first().inputValue();
  found.note = await page.locator(".preview-note").innerText();
  found.disabled = [await button("Resume").isDisabled(), await button("From frame").isDisabled(), await button("Cook").isDisabled()];
  const last = Number(await stage.getAttribute("data-frame"));
  await drawn(last);
  await picture("preview");
  const box = await stage.boundingBox(), part = { x: box.x + 60, y: box.y + 60, width: box.width - 120, height: box.height - 120 };
  const end = await pixels(page, part);

  // every frame that there is can be reached, by the bar and by keys
  await slider.fill("1");
  await drawn(1);
  found.scrubbed = differs(await pixels(page, part), end);
  await stage.focus();
  for (const [key, name] of [["ArrowRight", "right"], ["ArrowRight", "more"], ["ArrowLeft", "left"]]) {
    const before = await stage.getAttribute("data-frame");
    await page.keyboard.press(key);
    await page.waitForFunction((before) => document.querySelector(".stage").dataset.frame !== before, before);
    (found.stepped ??= []).push(Number(await stage.getAttribute("data-frame")));
  }
  await slider.fill("25");
  await drawn(25);
  const plain = await pixels(page, part);
  await toolbar.locator("label", { hasText: "Colour" }).locator("select").selectOption("velocity");
  await page.locator(".legend").waitFor();
  await drawn(25);
  found.coloured = differs(await pixels(page, part), plain);
  found.legend = await page.locator(".legend").getAttribute("aria-label");
  await picture("preview_coloured");

  // played, in the time of the shot
  await page.locator(".timeline .play").click();
  await page.waitForFunction(() => document.querySelector(".stage").dataset.frame !== "25");
  await page.locator(".timeline .play").click();

  // what needs a cook says so
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await button("Plots").click();
  await page.locator(".plots .none", { hasText: "cook" }).waitFor();
  found.plots = await page.locator(".plots .none").innerText();
  found.unnamed = await unnamed(page);
  found.faint = await faint(page);
  await page.emulateMedia({ colorScheme: "light" });
  await page.waitForFunction(() => document.documentElement.dataset.theme === "light");
  found.faint.push(...(await faint(page)));
  await picture("preview_light");
});
