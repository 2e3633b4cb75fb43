// A cook that is looked at, in Chromium: its curves, its facts, a branch from a frame, stop and resume; node cook_live.mjs URL FOLDER WEB
import { readFileSync } from "node:fs";
import { drive } from "./chromium.mjs";

await drive(async ({ page, folder, found, url, node, head, typed, button, status, knob, field }) => {
  const picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
  const shown = () => page.locator(".stage").getAttribute("data-frame").then(Number);
  const frames = () => page.locator(".plots").getAttribute("data-frames").then(Number);
  const manifest = (revision) => JSON.parse(readFileSync(`${folder}/shot_cache/${revision}/cook.json`, "utf-8"));
  const value = (panel) => page.locator(`.multiple[data-panel="${panel}"] figcaption > output`).textContent();
  const undo = () => page.getByRole("button", { name: "Undo" }).click();
  await page.goto(url);
  await node("fall").waitFor();
  await button("Plots").click();
  found.empty = await page.locator(".plots .none").textContent();
  await button("Cook").click();

  // curves appear with the frames, and grow with them
  await page.locator('.multiple[data-panel="Energy"]').waitFor();
  await page.locator(".cook-facts dt", { hasText: "Limited by" }).waitFor();
  await page.waitForFunction((n) => Number(document.querySelector(".plots").dataset.frames) > n + 3, await frames());
  found.panels = await page.locator(".multiple").evaluateAll((all) => all.map((each) => each.dataset.panel));
  found.facts = await page.locator(".cook-facts dl").innerText();
  await picture("cooking");

  // a click in a curve shows its frame; the values are those of that frame
  const curve = page.locator('.multiple[data-panel="Energy"] > svg'), box = await curve.boundingBox();
  await curve.click({ position: { x: box.width * 0.5, y: box.height * 0.5 } });
  await page.waitForFunction(() => Number(document.querySelector(".stage").dataset.frame) > 1 && document.querySelector(".multiple .now"));
  found.clicked = await shown();
  await page.waitForFunction(() => document.querySelector('.multiple[data-panel="Particles"] figcaption > output').textContent);
  found.particles = Number((await value("Particles")).replace(",", ""));
  found.energy = await page.locator('.multiple[data-panel="Energy"] ul').innerText();

  // a knob that is changed while it cooks: a new revision takes the frames before the one that is looked at
  found.offered = await button("Branch").count();
  await head("ball").click();
  await typed("centre", "0.05");
  await button("Branch from frame").waitFor();
  found.atKnob = await knob("centre").locator(".offer").innerText();
  found.elsewhere = await page.locator(".offer").count();
  await picture("knob_changed");
  await undo();
  await page.locator(".offer").waitFor({ state: "detached" });
  await field("centre").fill("0.05"); // not yet entered: the key takes what is typed
  found.branchedAt = await shown();
  await page.keyboard.press("Control+Enter");
  await page.locator(".over.top select").first().locator("option", { hasText: "r002" }).waitFor({ state: "attached" });
  await page.waitForFunction(() => document.querySelector(".over.top select").value === "r002" && Number(document.querySelector(".stage").dataset.frame) > 0);
  found.taken = manifest("r002").taken;
  found.centre = manifest("r002").graph.nodes.ball.knobs.centre[0];

  // stopped, resumed, and cooked again from the shown frame
  await page.evaluate(() => { const line = document.querySelector(".status [role=status]"); window.said = []; new MutationObserver(() => window.said.push(line.textContent)).observe(line, { subtree: true, childList: true, characterData: true }); });
  await button("Stop").click();
  await status("Stopped on request").waitFor();
  found.stopping = (await page.evaluate(() => window.said)).map((each) => /Stopping|Stopped/.test(each)).join().replace(/^(false,)*/, "");
  const stage = await page.locator(".stage").boundingBox();
  await page.locator(".menu > summary", { hasText: "Layers" }).click();
  const menu = await page.locator(".menu-panel:visible").boundingBox();
  found.menu = [menu.x >= stage.x, menu.x + menu.width <= stage.x + stage.width, menu.y + menu.height <= stage.y + stage.height];
  await picture("menu");
  await page.keyboard.press("Escape");
  await picture("stopped");
  const stopped = manifest("r002").frames[1];
  found.factsGone = await page.locator(".cook-facts").count();
  await button("Resume").click();
  await page.locator(".cook-facts").waitFor();
  found.resumed = [await page.locator(".over.top select").first().inputValue(), manifest("r002").frames[1] === stopped];
  await button("Stop").click();
  await status("Stopped on request").waitFor();
  await page.locator('.timeline input[type="range"]').fill("5");
  await page.locator('.stage[data-frame="5"]').waitFor();
  await button("From frame 5").click();
  await page.waitForFunction(() => document.querySelector(".over.top select").value === "r003" && Number(document.querySelector(".stage").dataset.frame) >= 8);
  await button("Stop").click();
  await status("Stopped on request").waitFor();
  found.again = manifest("r003").taken;
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator('.multiple[data-panel="Energy"]').waitFor();
  await picture("plots_light");

  // a frame that was read while it cooked does not hide those that came later
  const end = () => page.locator(".timeline output").innerText().then((text) => Number(text.split("/")[1]));
  await page.locator('.timeline input[type="range"]').fill("5");
  await page.locator('.stage[data-frame="5"]').waitFor();
  found.end = await end();
  await head("ball").click();
  await typed("radius", "0.000001");
  await button("Cook").click();
  await page.locator(".status .failed").waitFor();
  found.endThen = await end();
});
