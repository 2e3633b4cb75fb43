// Photographs the editor in Chromium for make_editor_pictures.py: node editor_pictures.mjs URL FOLDER WEB
import { drive } from "../tests/editor/chromium.mjs";

await drive(async ({ page, url, folder, button, head, typed, status }) => {
  const picture = (name) => page.screenshot({ path: `${folder}/${name}.png` });
  const frame = async (number) => {
    await page.locator('.timeline input[type="range"]').fill(String(number));
    await page.locator(`.stage[data-frame="${number}"]:not([data-draft="true"])`).waitFor();
  };
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
  await nearer(10);
  await settled();
  await picture("editor");

  // a snowball that cooks
  await open("snowball.json");
  await button("Plots").click();
  await button("Cook").click();
  await page.waitForFunction(() => Number(document.querySelector(".plots")?.dataset.frames) >= 14, undefined, { timeout: 240_000 });
  await page.locator(".over.top select").nth(2).selectOption("velocity");
  await page.locator(".legend").waitFor();
  await picture("cooking");
  await status("All frames are cooked").waitFor({ timeout: 240_000 });
  await settled();
  await picture("plots");
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
