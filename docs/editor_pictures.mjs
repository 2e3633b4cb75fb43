// Photographs the editor in Chromium for make_editor_pictures.py: node editor_pictures.mjs URL FOLDER WEB
import { drive } from "../tests/editor/chromium.mjs";

await drive(async ({ page, url, folder, button, head, typed, status, knob }) => {
  const picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
  const frame = async (number) => {
    await page.locator('.timeline input[type="range"]').fill(String(number));
    await page.locator(`.stage[data-frame="${number}"]:not([data-draft="true"])`).waitFor();
  };
  const colour = async (attribute) => { await page.locator(".over.top label", { hasText: "Colour" }).locator("select").selectOption(attribute); await page.locator(".legend").waitFor(); };
  const part = (name, selector) => page.locator(selector).screenshot({ path: `${folder}/${name}.png` });
  const open = async (name) => {
    await page.locator(".bar button").first().click();
    await page.locator(".files button", { hasText: name }).click();
    await page.locator(".card").first().waitFor();
  };
  const turn = async (across, down) => {
    const box = await page.locator(".stage").boundingBox(), at = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(...at);
    await page.mouse.down();
    await page.mouse.move(at[0] + across, at[1] + down, { steps: 8 });
    await page.mouse.up();
  };
  const nearer = async (steps) => { for (let n = 0; n < steps; n++) { await page.mouse.wheel(0, -120); await page.waitForTimeout(60); } };
  const settled = () => page.waitForTimeout(1500); // what moves in the view has come to rest

  await page.goto(url);
  await page.locator(".picture img").nth(20).waitFor();
  await settled();
  await picture("start");

  // a shot that opens cooked
  await page.locator(".samples button", { hasText: "hot stream" }).click();
  await page.locator(".stage[data-frame]").waitFor();
  await colour("temperature");
  await frame(40);
  await nearer(6);
  await page.locator(".toast").waitFor({ state: "detached", timeout: 30_000 });
  await page.locator(".status summary", { hasText: "No problems" }).waitFor({ timeout: 120_000 });
  await settled();
  await picture("preview");
  await page.locator(".bar button").first().click();

  // the demo, cooked
  await page.locator(".files button", { hasText: "demo/demo.json" }).click();
  await page.locator(".stage[data-frame]").waitFor();
  await frame(26);
  await page.locator(".over.top button", { hasText: "Frame all" }).click();
  await settled();
  await page.locator(".menu", { hasText: "Layers" }).locator("summary").click();
  const layers = page.locator(".menu-panel label.check");
  await layers.filter({ hasText: /^ ?mesh|surface/i }).first().locator("input").check();
  await layers.filter({ hasText: /^ ?particles/i }).first().locator("input").uncheck();
  await page.keyboard.press("Escape");
  await head("melt").click();
  await page.locator(".status summary", { hasText: "No problems" }).waitFor({ timeout: 120_000 });
  await turn(40, -10);
  await nearer(3);
  await settled();
  await picture("editor");

  // a snowball that cooks
  await open("snowball.json");
  await button("Plots").click();
  await button("Cook").click();
  await page.waitForFunction(() => Number(document.querySelector(".plots")?.dataset.frames) >= 14, undefined, { timeout: 240_000 });
  await colour("velocity");
  await picture("cooking");
  await status("All frames are cooked").waitFor({ timeout: 240_000 });
  await settled();
  await picture("plots");

  // two particles, and where they have been
  await button("Plots").click();
  await frame(12);
  await page.locator(".over.top button", { hasText: "Frame all" }).click();
  await settled();
  const view = await page.locator(".stage").boundingBox(), middle = [view.x + view.width / 2, view.y + view.height / 2];
  await page.mouse.click(middle[0] - 40, middle[1] - 20);
  await page.locator(".probe .plot path").waitFor({ state: "attached" });
  await page.keyboard.down("Shift");
  await page.mouse.click(middle[0] + 40, middle[1] + 30);
  await page.keyboard.up("Shift");
  await page.locator(".plot path.second").waitFor({ state: "attached" });
  await settled();
  await part("view", "section.viewer");
  await page.locator(".probe header button").click();

  // where the time of a substep went
  await page.locator(".tools button", { hasText: "Heat" }).click();
  await page.locator(".card .dive").click();
  await page.waitForFunction(() => document.querySelectorAll(".card.heated").length > 5 && document.querySelectorAll(".react-flow__edge").length > 5);
  await settled();
  await part("heat", "section.graph");
  await page.locator(".crumbs button").first().click();
  await page.locator(".tools button", { hasText: "Heat" }).click();

  // keys of a knob
  await head("ground").click();
  await frame(1);
  await typed("friction", "0.4");
  await knob("friction").locator(".diamond").click();
  await frame(19);
  await knob("friction").locator(".diamond").click();
  await knob("friction").locator(".keys tbody tr").nth(1).locator("td").nth(1).locator("input").first().fill("0.71");
  await page.keyboard.press("Enter");
  await knob("friction").locator(".keys select").first().selectOption("smooth");
  await settled();
  await part("keys", ".curves");
  await button("Plots").click();
  await page.emulateMedia({ colorScheme: "light" });
  await settled();
  await picture("light");
  await page.emulateMedia({ colorScheme: "dark" });

  // a cook that fails: so stiff, so fast that it leaves the stable range
  await button("Plots").click();
  await head("ball").click();
  await typed("radius", "0.000001");
  await button("Cook").click();
  await page.locator(".status .failed").waitFor({ timeout: 120_000 });
  await settled();
  await picture("failed_cook");
}, { deviceScaleFactor: 1 });
