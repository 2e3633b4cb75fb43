// Keys as curves, in Chromium: node keys.mjs URL FOLDER WEB; prints one JSON line of what was found.
import { handles, launch } from "./seen.mjs";

const [url, folder, web] = process.argv.slice(2), browser = await launch(web);
const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
const found = {};
const { faults, file, node, knob, picture, save, undo } = handles(page, folder);
let asked = 0;
page.on("dialog", (dialog) => { asked++; void dialog.accept(); });

const friction = async () => { await save(); return file().nodes.ground.knobs?.friction; };
const count = async (n) => page.waitForFunction((wanted) => document.querySelectorAll(".curve-plot .key").length === wanted, n);
const spot = async (frame, share) => {
  const box = await page.locator(".curve-plot").boundingBox(), marks = await page.locator(".curve-plot text[text-anchor=middle]").evaluateAll((all) => all.map((each) => [Number(each.textContent), Number(each.getAttribute("x"))]));
  const [[a, x], [b, y]] = [marks[0], marks.at(-1)];
  return [box.x + x + ((frame - a) / (b - a)) * (y - x), box.y + 10 + share * (box.height - 34)];
};

try {
  await page.goto(url);
  await node("ground").locator(".card-head").click();

  // the diamond sets a key at the shown frame, and opens the curve
  await knob("friction").locator("input").first().fill("0.4");
  await knob("friction").locator("input").first().press("Enter");
  await knob("friction").locator(".diamond").click();
  await count(1);
  found.first = await friction();

  // a double click adds one, a drag moves it in whole frames, arrow keys in steps
  await page.mouse.dblclick(...await spot(12, 0.2));
  await count(2);
  found.two = await friction();
  const key = await page.locator('.key[data-key="1.0"] path').boundingBox(), at = [key.x + key.width / 2, key.y + key.height / 2], to = await spot(20, 0.2);
  await page.mouse.move(...at); await page.mouse.down();
  await page.mouse.move(to[0], at[1] + 2, { steps: 4 });
  await page.mouse.up();
  found.dragged = await friction();
  await page.locator('.key[data-key="1.0"]').focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => document.activeElement.getAttribute("data-key") === "1.0");
  await page.keyboard.press("ArrowUp");
  found.stepped = await friction();
  await page.locator(".curve-bar select").last().selectOption("smooth");
  await page.locator('.key[data-key="0.0"]').focus();
  await page.locator(".curve-bar select").last().selectOption("smooth");
  await picture("keys");

  // the ruler is the frame bar: the diamond goes by its frame, and takes one key away, not all
  const ruler = await page.locator(".ruler").boundingBox();
  await page.mouse.click((await spot(10, 0))[0], ruler.y + 8);
  await page.locator(".now").waitFor();
  await knob("friction").locator(".diamond").click();
  await count(3);
  found.three = await friction();
  await knob("friction").locator(".diamond").click();
  await count(2);
  await undo();
  await count(3);

  // vectors have a curve for each axis
  await knob("centre").locator(".diamond").click();
  await count(3);
  await page.mouse.dblclick(...await spot(20, 0.5));
  await count(6);
  const y = await page.locator('.key[data-key="1.2"] path').boundingBox();
  await page.mouse.move(y.x + y.width / 2, y.y + y.height / 2); await page.mouse.down();
  await page.mouse.move(y.x + y.width / 2, y.y - 20, { steps: 4 });
  await page.mouse.up();
  await save();
  found.centre = file().nodes.ground.knobs.centre;
  await picture("keys_vector");
  await page.emulateMedia({ colorScheme: "light" });
  await picture("keys_light");
  await page.emulateMedia({ colorScheme: "dark" });

  // all of them go when that was asked for and answered, and come back
  await page.locator(".curve-bar select").first().selectOption({ label: "ground · Friction" });
  await page.locator(".curve-bar button", { hasText: "Remove all" }).click();
  await page.locator(".curve-plot").waitFor({ state: "detached" });
  found.asked = asked;
  found.one = await friction();
  await undo();
  await save();
  found.again = (await friction()).keys.length;
  await page.locator(".status summary", { hasText: "No problems" }).waitFor({ timeout: 30000 });
  await page.locator(".curves button[aria-label='Close the keys']").click();
  await page.locator(".curves").waitFor({ state: "detached" });
} catch (error) {
  found.error = String(error.stack ?? error);
  await picture("failed").catch(() => {});
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
