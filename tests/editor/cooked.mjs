// What a cook says of nodes, in Chromium: node cooked.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { rmSync } from "node:fs";
import { handles, launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
const found = {};
const { faults, file, node, picture, undo } = handles(page, folder);

const states = () => page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".card")].map((card) => [card.querySelector("b").textContent, ["cooked", "changed", "failed", "cooking"].find((each) => card.classList.contains(each)) ?? ""])));
const ended = () => page.locator(".status [role=status]", { hasText: "All frames are cooked" }).waitFor({ timeout: 240000 });

try {
  await page.goto(url);
  await node("fall").waitFor();
  await page.locator(".bar button", { hasText: "Cook" }).click();
  await ended();
  await page.waitForFunction(() => document.querySelectorAll(".card.cooked").length === 5);
  found.time = await node("fall").locator(".seconds").innerText();
  await node("ball").locator(".card-head").click();
  const radius = page.locator('.knob[data-knob="radius"] input').first();
  await radius.fill("0.21");
  await radius.press("Enter");
  await page.locator(".card.changed").first().waitFor();
  found.changed = await states();
  await picture("status");
  await undo();
  await page.waitForFunction(() => document.querySelectorAll(".card.cooked").length === 5);

  // where the time went
  await page.locator(".tools button", { hasText: "Heat" }).click();
  await page.locator(".card.heated").first().waitFor();
  found.nodes = await page.locator(".card.heated .seconds").allInnerTexts();
  await picture("heat_nodes");
  await node("fall").locator(".dive").click();
  await node("gather").waitFor();
  found.stages = await page.locator(".card.heated .seconds").allInnerTexts();
  found.fused = await node("gather").locator(".seconds").getAttribute("title");
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length > 5);
  await picture("heat_stages");
  await page.emulateMedia({ colorScheme: "light" });
  await picture("heat_light");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.locator(".crumbs button").first().click();
  await page.locator(".tools button", { hasText: "Heat" }).click();

  // to one node: its particles, though the solve is not whole
  await node("fall").locator(".card-head").click();
  await page.locator(".flow").focus();
  await page.keyboard.press("Delete");
  await page.locator(".badge.error").waitFor({ timeout: 30000 });
  await node("ball").locator(".card-head").click();
  await page.locator(".card .here").click();
  await page.locator(".over.top select").first().locator("option", { hasText: "r002" }).waitFor({ state: "attached", timeout: 120000 });
  await ended();
  await page.locator('.stage[data-frame="3"]').waitFor();
  found.points = Number(await page.locator(".stage").getAttribute("data-points"));
  await page.waitForFunction(() => document.querySelectorAll(".card.cooked").length === 2);
  found.here = await states();
  await picture("here");

  // what the first cook took is known still, also to a page that did not look
  await undo();
  await page.locator(".bar button", { hasText: "Save" }).first().click();
  await page.locator(".unsaved").waitFor({ state: "detached" });
  await page.reload();
  await node("ball").waitFor();
  await page.locator(".over.top select").first().selectOption("r001");
  await node("fall").locator(".seconds", { hasText: " s" }).waitFor();
  found.timeLater = await node("fall").locator(".seconds").innerText();
  await page.locator(".tools button", { hasText: "Heat" }).click();
  await page.locator(".card.heated").first().waitFor();
  found.nodesLater = await page.locator(".card.heated .seconds").allInnerTexts();
  await node("fall").locator(".dive").click();
  await page.waitForFunction(() => document.querySelectorAll(".card.heated").length > 5);
  await picture("heat_of_another");
  await page.locator(".crumbs button").first().click();
  await page.locator(".over.top select").first().selectOption("r002");
  await page.waitForFunction(() => document.querySelectorAll(".card.heated").length < 5);
  await page.locator('.stage[data-frame="3"]').waitFor();

  // a cache that is removed while it is shown
  rmSync(`${folder}/shot_cache`, { recursive: true });
  const cooks = page.locator(".over.top select").first();
  await page.locator(".over.top label", { hasText: "Colour" }).locator("select").selectOption("velocity"); // frames with it are not held
  await page.waitForFunction(() => !document.querySelector(".over.top select").value, null, { timeout: 60000 });
  found.gone = await cooks.inputValue();
} catch (error) {
  found.error = String(error.stack ?? error);
  await picture("failed").catch(() => {});
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
