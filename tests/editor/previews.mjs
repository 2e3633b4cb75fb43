// A packaged shot that opens cooked, in Chromium: node previews.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { existsSync } from "node:fs";
import { drive } from "./chromium.mjs";
import { differs, faint, hiddenWires, pixels, unnamed } from "./seen.mjs";

await drive(async ({ page, folder, found, url, button }) => {
  const picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
  const stage = page.locator(".stage"), slider = page.locator('.timeline input[type="range"]'), toolbar = page.locator(".over.top");
  const drawn = (frame) => page.waitForFunction((frame) => { const { frame: shown, drawn } = document.querySelector(".stage").dataset; return shown === frame && drawn === frame; }, String(frame));
  await page.goto(url);
  const offered = page.locator(".samples").first().locator("li");
  await offered.first().locator("img").waitFor();
  found.offered = await offered.locator("b").allInnerTexts();
  await picture("previews_start");

  // no wire of their graphs passes behind a node
  found.hidden = [];
  for (const [n, name] of found.offered.entries()) {
    await offered.nth(n).locator("button").click();
    await page.locator(".react-flow__edge-path").nth(5).waitFor();
    await page.waitForTimeout(300); // all of it is fitted
    found.hidden.push(...(await hiddenWires(page)).map((each) => `${name}: ${each}`));
    await page.locator(".bar button").first().click();
    await offered.first().waitFor();
  }

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

  found.cooked = existsSync(`${folder}/demo/demo_cache`);

  // the first own cook takes its place, and is compared with it, also where a knob was changed
  await page.locator(".card", { has: page.locator('.card-head b:text-is("cheese")') }).locator(".card-head").click();
  const density = page.locator('.knob[data-knob="density"] input').first();
  await density.fill("800");
  await density.press("Enter");
  await page.locator(".flow").press("Alt+a");
  for (const [name, value] of [["end", "2"], ["cell_size", "0.06"]]) {
    const each = page.locator(`.knob[data-knob="${name}"] input`).first();
    await each.fill(value);
    await each.press("Enter");
  }
  await button("Cook").click();
  await page.waitForFunction(() => document.querySelector(".over.top select").value === "r001", null, { timeout: 240_000 });
  await button("Cook").waitFor({ timeout: 240_000 });
  await page.locator(".over.top option", { hasText: "preview" }).first().waitFor({ state: "attached" }); // the list was asked for again
  const cooks = toolbar.locator("select").first(), others = toolbar.locator("label", { hasText: "Beside" }).locator("select");
  found.own = [await cooks.inputValue(), await cooks.locator("option").allInnerTexts(), (await others.locator("option").allInnerTexts())[1]];
  await others.selectOption({ label: "preview" });
  await page.locator(".stage[data-beside]").waitFor();
  found.beside = Number(await stage.getAttribute("data-beside"));
  found.sides = await page.locator(".side").allInnerTexts();
  await picture("preview_beside");
});
