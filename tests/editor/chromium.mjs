// What the drivers of the page share: a page in Chromium, how its nodes and knobs are found, and how what was found is told.
import { launch } from "./seen.mjs";

/** Open the page of `node SCRIPT URL FOLDER WEB`, run `steps`, and print one JSON line of what they found. */
export async function drive(steps, options = {}) {
  const [url, folder, web] = process.argv.slice(2);
  const browser = await launch(web);
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, colorScheme: "dark", ...options });
  context.setDefaultTimeout(60_000);
  const found = {}, faults = [], outside = [];
  const watched = (page) => {
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (line) => { if (line.type() === "error" && !/Failed to load resource/.test(line.text())) faults.push(line.text()); });
    page.on("request", (request) => { if (!request.url().startsWith(url.split("#")[0]) && !/^(data|blob):/.test(request.url())) outside.push(request.url()); });
    return page;
  };
  const page = watched(await context.newPage());
  try {
    await steps({ page, context, url, folder, found, watched, ...on(page) });
  } catch (error) {
    found.error = String(error.stack ?? error);
    await page.screenshot({ path: `${folder}/failed.png` }).catch(() => {});
  }
  console.log(JSON.stringify({ ...found, faults, outside }));
  await browser.close();
}

/** Parts of one page, by the names that people see. */
export function on(page) {
  const node = (name) => page.locator(".card", { has: page.locator(`.card-head b:text-is("${name}")`) });
  const knob = (name) => page.locator(`.knob[data-knob="${name}"]`);
  return {
    node, knob,
    button: (name) => page.locator(".bar button", { hasText: name }),
    field: (name) => knob(name).locator("input").first(),
    typed: async (name, value) => { const each = knob(name).locator("input").first(); await each.fill(value); await each.press("Enter"); },
    head: (name) => node(name).locator(".card-head"),
    status: (text) => page.locator(".status [role=status]", { hasText: text }),
  };
}
