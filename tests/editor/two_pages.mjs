// Two pages on one graph, in Chromium: neither loses what the other has done; node two_pages.mjs URL FOLDER WEB
import { readFileSync } from "node:fs";
import { drive, on } from "./chromium.mjs";

await drive(async ({ page, context, url, folder, found, watched, node, head, field, typed }) => {
  const file = () => JSON.parse(readFileSync(`${folder}/shot.json`, "utf-8")).nodes.ball.knobs;
  const second = watched(await context.newPage()), other = on(second);
  const save = async (which) => { await which.keyboard.press("Control+s"); await which.locator(".unsaved").waitFor({ state: "detached" }); };
  await page.goto(url);
  await head("ball").click();
  await second.goto(url);
  await other.head("ball").click();

  // what one saves, the other reads, where it has nothing of its own
  await second.bringToFront();
  await other.typed("radius", "0.25");
  await save(second);
  await page.bringToFront();
  await page.waitForFunction(() => document.querySelector('.toast')?.textContent.includes("read again"));
  await head("ball").click();
  found.read = await field("radius").inputValue();

  // where both have, the one that saves last is asked, and the first one's file stays
  await typed("radius", "0.3");
  await second.bringToFront();
  await other.head("ball").click();
  await other.typed("radius", "0.22");
  await save(second);
  await page.bringToFront();
  await page.keyboard.press("Control+s");
  await page.locator(".conflict").waitFor();
  found.kept = [file().radius, await field("radius").inputValue()];
  await page.screenshot({ path: `${folder}/conflict.png` });

  // what was asked for is done: its own is written, and the other is told
  await page.locator(".conflict button", { hasText: "Write mine over it" }).click();
  await page.locator(".conflict").waitFor({ state: "detached" });
  found.written = file().radius;
  await second.bringToFront();
  await second.waitForFunction(() => document.querySelector('.toast')?.textContent.includes("read again"));
  await other.head("ball").click();
  found.told = await other.field("radius").inputValue();
  await node("ball").waitFor();
});
