// What people stumble over in the page, in Chromium: node stumbles.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { existsSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
const page = await context.newPage();
const faults = [], found = {};
let answer = "";
page.on("pageerror", (error) => faults.push(error.message));
page.on("dialog", (dialog) => (dialog.type() === "prompt" ? dialog.accept(answer) : dialog.accept()));

const file = (name = "shot") => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf-8"));
const node = (name) => page.locator(".card", { has: page.locator(`.card-head b:text-is("${name}")`) });
const knob = (name) => page.locator(`.knob[data-knob="${name}"]`);
const save = async () => { await page.keyboard.press("Control+s"); await page.locator(".unsaved").waitFor({ state: "detached" }); };
const radius = () => knob("radius").locator("input").first();
const count = (selector) => page.locator(selector).count();
const answers = {};
page.on("response", (each) => { const name = each.url().split("/api/")[1]; answers[name] = (answers[name] ?? 0) + 1; });
const answered = (name) => answers[name] ?? 0;
async function until(holds) { for (const end = Date.now() + 60_000; !(await holds()); ) { if (Date.now() > end) throw new Error(`never: ${holds}`); await new Promise((done) => setTimeout(done, 30)); } }
const open = (name) => page.locator(".files button", { hasText: name }).click();

try {
  // an address without its token leads to a reason that stays
  const stranger = await context.newPage();
  await stranger.clock.install();
  await stranger.goto(url.split("#")[0]);
  await stranger.locator("[role=alert]").waitFor();
  await stranger.clock.fastForward(60_000);
  found.stranger = await stranger.locator("[role=alert]").innerText();
  await stranger.close();

  // names in help texts are set as code, and no mark-up is seen
  await page.goto(url);
  await node("jelly").locator(".card-head").click();
  await knob("name").locator(".doc code").waitFor();
  await page.locator(".flow").focus();
  await page.keyboard.press("Shift+A");
  await page.locator(".palette input").fill("label pieces");
  await page.locator(".palette p code").waitFor();
  found.ticks = await page.evaluate(() => [...document.querySelectorAll("body *")].flatMap((each) => [...[...each.childNodes].filter((child) => child.nodeType === 3).map((child) => child.data), each.title ?? ""]).filter((text) => String(text).includes("`")));
  await page.keyboard.press("Escape");

  // what is typed but not entered is saved as well
  await node("ball").locator(".card-head").click();
  await radius().fill("0.22");
  await save();
  found.typed = file().nodes.ball.knobs.radius;
  found.still = await radius().evaluate((each) => each === document.activeElement);

  // two saves at once are no conflict with oneself
  await radius().fill("0.23");
  await radius().press("Enter");
  const before = answered("save");
  await page.evaluate(() => { for (let n = 0; n < 3; n++) document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "s", ctrlKey: true, bubbles: true })); });
  await page.locator(".unsaved").waitFor({ state: "detached" });
  await until(() => answered("save") >= before + 3);
  found.conflicts = await count(".conflict");

  // what is edited right after a save, or an undo, can be undone
  await radius().fill("0.3");
  await radius().press("Enter");
  await page.locator(".bar button", { hasText: "Undo" }).click();
  await radius().fill("0.4");
  await radius().press("Enter");
  await page.locator(".bar button", { hasText: "Undo" }).click();
  found.undone = await radius().inputValue();

  // what is not a number is told
  await radius().fill("0,5");
  await radius().press("Enter");
  found.told = await page.locator(".toast").innerText().catch(() => "");

  // substeps that an undo takes away are no longer shown
  await node("fall").locator(".card-head").click();
  await page.keyboard.press("Control+c");
  await page.keyboard.press("Control+v");
  await node("fall_2").locator(".dive").click({ timeout: 5000 });
  await node("rasterize").waitFor();
  await page.keyboard.press("Delete");
  await page.locator(".bar button", { hasText: "Undo" }).click();
  await node("fall").waitFor({ timeout: 5000 });
  found.crumbs = await count(".crumbs button");

  // arrow keys move a node in the file as well
  await node("ball").locator(".card-head").click();
  await page.locator(".react-flow__node", { has: node("ball") }).focus();
  for (let n = 0; n < 4; n++) await page.keyboard.press("ArrowDown");
  await page.waitForTimeout(100);
  const seen = await page.locator(".react-flow__node", { has: node("ball") }).evaluate((each) => new DOMMatrix(getComputedStyle(each).transform).m42);
  await save();
  found.moved = (file().nodes.ball.position ?? [0, 0])[1] === -Math.round(seen);

  // Enter on a button of the graph presses it alone
  await node("fall").locator(".card-head").click();
  await page.locator(".tools button", { hasText: "Fit" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  found.levels = await count(".crumbs button");

  // by keyboard alone one gets through the graph
  await page.mouse.move(700, 20);
  await page.locator(".flow").focus();
  await page.keyboard.press("Tab");
  found.trapped = await count(".palette");
  await page.keyboard.press("Escape");

  // a file that was removed is told, once, and can be written again
  unlinkSync(`${folder}/shot.json`);
  await page.locator(".conflict").waitFor({ timeout: 10000 });
  found.removed = await page.locator(".conflict button").allInnerTexts();
  await page.locator(".conflict button", { hasText: "Later" }).click();
  for (let n = 0; n < 2; n++) await page.waitForResponse((each) => each.url().endsWith("/api/digest")); // it has looked again
  found.nagged = await count(".conflict");
  await page.locator(".bar button", { hasText: "Save as" }).waitFor({ timeout: 2000 });
  answer = "kept.json";
  await page.locator(".bar button", { hasText: "Save as" }).click();
  await page.locator(".file", { hasText: "kept.json" }).waitFor();
  await until(() => existsSync(`${folder}/kept.json`));
  found.kept = existsSync(`${folder}/kept.json`) && file("kept").nodes.ball.knobs.radius;

  // a name that cannot be saved under is told before the work, as is one that is taken by something else
  writeFileSync(`${folder}/package.json`, "{}");
  await page.locator(".bar button").first().click();
  for (const [name, why] of [["../out", "../out"], ["package", "package.json is there already"]]) {
    await page.locator(".begin form input").fill(name);
    await page.locator(".begin form button").click();
    await page.locator(".toast", { hasText: why }).waitFor();
    (found.names ??= []).push(await count(".editor"));
  }

  // the first node stays where it was put
  await page.locator(".begin form input").fill("fresh");
  await page.locator(".begin form button").click();
  const pane = await page.locator(".react-flow__pane").boundingBox(), at = [pane.x + 200, pane.y + 60];
  await page.mouse.dblclick(...at);
  await page.locator(".palette input").fill("box emitter");
  await page.keyboard.press("Enter");
  await node("box").waitFor();
  await page.locator(".status summary.bad").waitFor({ timeout: 30000 }); // the view has settled
  const put = await node("box").boundingBox();
  found.put = Math.hypot(put.x - at[0], put.y - at[1]);
  await page.locator(".bar button").first().click();

  // lengths beyond what can be drawn leave the view as it is
  await open("huge.json");
  await node("ball").waitFor();
  found.scale = await page.locator(".scale").innerText();
  await page.locator(".bar button").first().click();

  // keys that are none leave the page whole, and are a problem of their node
  await open("keys.json");
  await node("ball").locator(".card-head").click();
  await page.locator(".badge.error").waitFor({ timeout: 30000 });
  found.keys = await knob("radius").locator("textarea").isVisible();
  await page.locator(".bar button").first().click();

  // a defect of the page leads to a sentence and a way on
  const broken = await context.newPage();
  await broken.route("**/api/spec", async (route) => { const answer = await route.fetch(); await route.fulfill({ response: answer, json: { ...(await answer.json()), settings: null } }); });
  await broken.goto(url);
  await broken.locator(".files button", { hasText: "huge.json" }).click();
  await broken.locator("[role=alert] p").waitFor();
  found.defect = await broken.locator("[role=alert]").innerText();
  await broken.locator("[role=alert] button", { hasText: "another graph" }).click();
  await broken.locator(".files button").first().waitFor();
  found.way_on = (await broken.locator(".files button").count()) > 0;
  await broken.close();

  // a graph of unknown nodes that cannot be brought up to date is checked all the same
  await page.reload();
  await page.locator(".bar button").first().click().catch(() => {});
  await open("odd.json");
  await page.locator(".status summary.bad").waitFor({ timeout: 30000 });
  found.problems = await page.locator(".status summary").last().innerText();
  await page.locator(".bar button").first().click();
  await open("missing.json");
  await page.locator(".badge.error").waitFor({ timeout: 30000 });
  found.missing = await page.locator(".badge.error").getAttribute("title");

  // what a failed cook says is listed once
  await page.locator(".bar button", { hasText: "Cook" }).click();
  await page.locator(".status .failed").waitFor({ timeout: 60000 });
  found.messages = await page.locator(".status summary").first().innerText();
} catch (error) {
  found.error = String(error.stack ?? error);
  await page.screenshot({ path: `${folder}/failed.png` }).catch(() => {});
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
