// Edits that are not saved, other programs and other tabs, in Chromium: node drafts.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
const faults = [], found = {};
async function opened() {
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (line) => { if (line.type() === "error" && !/Failed to load resource/.test(line.text())) faults.push(line.text()); });
  page.on("dialog", (dialog) => void dialog.accept().catch(() => {}));
  await page.goto(url);
  await page.locator(".card b", { hasText: "ball" }).waitFor();
  return page;
}
const text = () => readFileSync(`${folder}/shot.json`, "utf-8");
const file = () => JSON.parse(text());
const until = async (test) => { for (let n = 0; n < 300; n++) { if (await test()) return; await new Promise((done) => setTimeout(done, 100)); } throw new Error(`waited for ${test}`); };
const select = (page, name) => page.locator(".card", { has: page.locator(`.card-head b:text-is("${name}")`) }).locator(".card-head").click();
const radius = (page) => page.locator('.knob[data-knob="radius"] input').first();
const type = async (page, value) => { await radius(page).fill(value); await radius(page).press("Enter"); };
const save = async (page) => { await page.keyboard.press("Control+s"); await page.locator(".unsaved").waitFor({ state: "detached" }); };
const draft = `${folder}/.shot.json.unsaved`;
const page = await opened();

try {
  // edits are kept as they are made, and found again after the page was gone
  found.clean = await page.locator(".unsaved").count();
  found.said = await page.locator(".toast").innerText().catch(() => "");
  const before = text();
  await select(page, "ball");
  await type(page, "0.27");
  await until(() => existsSync(draft));
  found.untouched = text() === before;
  await page.reload();
  await page.locator(".draft").waitFor();
  found.asked = await page.locator(".draft").innerText();
  await page.screenshot({ path: `${folder}/draft.png` });
  await page.locator(".draft button", { hasText: "Restore" }).click();
  await select(page, "ball");
  found.restored = await radius(page).inputValue();

  // with older edits still offered, new ones are kept as well, and neither is lost to a crash, another program or another file
  const texts = () => (existsSync(draft) ? JSON.parse(readFileSync(draft, "utf-8")).drafts.map((each) => JSON.parse(each.text).nodes.ball.knobs.radius) : []);
  await page.reload();
  await page.locator(".draft").waitFor();
  await select(page, "ball");
  await type(page, "0.24");
  await until(() => texts().length === 2);
  found.both_kept = [texts()];
  await page.reload();
  await page.locator(".draft").waitFor();
  await page.locator(".draft button", { hasText: "Restore" }).click();
  await page.locator(".draft button", { hasText: "in place of those made since" }).waitFor();
  await select(page, "ball");
  found.both_kept.push(await radius(page).inputValue(), await page.locator(".draft").count());
  await page.screenshot({ path: `${folder}/drafts.png` });
  await page.locator(".bar button").first().click(); // closed without the new ones: the older ones stay
  await page.locator(".files button", { hasText: "shot.json" }).click();
  await page.locator(".draft").waitFor();
  found.both_kept.push(texts());
  await page.locator(".draft button", { hasText: "Restore" }).click();
  await select(page, "ball");
  await until(async () => (await radius(page).inputValue()) === "0.27");

  // what differs, from the file
  await page.locator(".bar button", { hasText: "Changes" }).click();
  await page.locator(".changes table").waitFor();
  found.rows = await page.locator(".changes tbody tr").allInnerTexts();
  await page.screenshot({ path: `${folder}/changes.png` });
  await page.locator(".changes td button").first().click();
  await page.locator("#knob-radius:focus").waitFor();
  await save(page);
  await until(() => !existsSync(draft));
  found.digits = /"seeds": \[\s*9007199254740993/.test(text());
  found.version = file().nodes.fall.version;

  // another program writes: what was there before can be gone back to
  writeFileSync(`${folder}/shot.json`, text().replace('"radius": 0.27', '"radius": 0.31'));
  await until(async () => (await radius(page).inputValue()) === "0.31");
  await page.locator(".bar button", { hasText: "Undo" }).click();
  found.before = await radius(page).inputValue();
  await page.locator(".bar button", { hasText: "Redo" }).click();
  found.after = [await radius(page).inputValue(), await page.locator(".unsaved").count()];

  // two tabs: what one saves the other reads; what both changed is asked
  const other = await opened();
  await select(other, "ball");
  await type(page, "0.32");
  await save(page);
  await until(async () => (await radius(other).inputValue()) === "0.32");
  await type(other, "0.35");
  await type(page, "0.33");
  await save(page);
  await other.locator(".conflict:not(.draft)").waitFor();
  found.kept = [await radius(other).inputValue(), file().nodes.ball.knobs.radius];
  await other.locator(".conflict button", { hasText: "differs" }).click();
  await other.locator(".changes table").waitFor();
  found.both = await other.locator(".changes tbody tr").allInnerTexts();
  await other.screenshot({ path: `${folder}/conflict.png` });
  await other.locator(".changes button", { hasText: "Close" }).click();
  await other.locator(".conflict button", { hasText: "Read it again" }).click();
  await until(async () => (await radius(other).inputValue()) === "0.33");
  await other.locator(".bar button", { hasText: "Undo" }).click();
  found.mine = await radius(other).inputValue();

  // a graph that was never saved is offered
  await other.close();
  await page.locator(".bar button").first().click();
  await page.locator(".begin form input").fill("fresh");
  await page.locator(".begin form button").click();
  await page.locator(".flow").focus();
  await page.keyboard.press("Shift+A");
  await page.keyboard.press("Enter");
  await until(() => existsSync(`${folder}/.fresh.json.unsaved`));
  await page.reload();
  await page.locator(".bar button").first().click();
  await page.locator(".begin form input").fill("fresh"); // begun again under its name, it is offered, too
  await page.locator(".begin form button").click();
  await page.locator(".draft button", { hasText: "Restore" }).waitFor();
  await page.locator(".bar button").first().click();
  await page.locator(".lost button", { hasText: "fresh.json" }).click();
  await page.locator(".card").waitFor();
  found.lost = [await page.locator(".card").count(), await page.locator(".unsaved").count()];
} catch (error) {
  found.error = String(error.stack ?? error);
  await page.screenshot({ path: `${folder}/failed.png` }).catch(() => {});
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
