// What the drivers of the page share: a browser without a graphics card, pixels, and what every state has to hold.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export async function launch(web) {
  const { chromium } = createRequire(`${web}/`)("playwright-core");
  return chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"],
  });
}

/** Return the pixels of a part of the page, four bytes each, made smaller by a factor. */
export async function pixels(page, clip, smaller = 4) {
  const picture = (await page.screenshot({ clip })).toString("base64");
  const found = await page.evaluate(async ([picture, smaller]) => {
    const bytes = Uint8Array.from(atob(picture), (each) => each.charCodeAt(0)), bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const width = Math.round(bitmap.width / smaller), height = Math.round(bitmap.height / smaller), canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
    context.drawImage(bitmap, 0, 0, width, height);
    return { data: [...context.getImageData(0, 0, width, height).data] };
  }, [picture, smaller]);
  return found;
}

/** Return the share of pixels that differ in a colour by more than a tenth. */
export const differs = (a, b) => { let count = 0; for (let at = 0; at < a.data.length; at += 4) if ([0, 1, 2].some((n) => Math.abs(a.data[at + n] - b.data[at + n]) > 25)) count++; return (4 * count) / a.data.length; };

/** Return texts that stand out of their ground by less than 4.5 to 1, or 3 to 1 where they are large (WCAG 2 AA). */
export const faint = (page) => page.evaluate(() => {
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return text.startsWith("color(") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a]; };
  const light = (rgb) => { const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const over = (top, under) => under.map((part, n) => top[n] * top[3] + part * (1 - top[3]));
  const ground = (each) => { const stack = []; for (let at = each; at; at = at.parentElement) stack.unshift(parse(getComputedStyle(at).backgroundColor)); return stack.reduce((under, top) => over(top, under), [255, 255, 255]); };
  return [...document.querySelectorAll("body *")].filter((each) => [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && each.checkVisibility() && !each.closest(":disabled, .sr, option, script, svg")).map((each) => {
    const style = getComputedStyle(each), under = ground(each), text = over(parse(style.color), under), [a, b] = [light(text), light(under)].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    return [(a + 0.05) / (b + 0.05) / (large ? 3 : 4.5), `${each.className || each.tagName}: ${each.textContent.trim().slice(0, 30)}`];
  }).filter(([share]) => share < 1).map(([share, text]) => `${(share * 4.5).toFixed(2)} ${text}`);
});

/** Return what can be reached by keyboard and has no name. */
export const unnamed = (page) => page.evaluate(() => [...document.querySelectorAll("button, input, select, summary, [tabindex='0']")].filter((each) => {
  const label = each.getAttribute("aria-label") || each.textContent.trim() || each.getAttribute("title") || (each.id && document.querySelector(`label[for="${each.id}"]`)) || each.closest("label");
  return !label && each.checkVisibility() && !each.classList.contains("react-flow__node") && !each.classList.contains("flow");
}).map((each) => each.outerHTML.slice(0, 160)));

/** Return the wires that are hidden by a node on their way. */
export const hiddenWires = (page) => page.evaluate(() => {
  const cards = [...document.querySelectorAll(".react-flow__node-card")].map((each) => [each.dataset.id, each.getBoundingClientRect()]);
  return [...document.querySelectorAll(".react-flow__edge-path")].flatMap((path) => {
    const length = path.getTotalLength(), onto = path.getScreenCTM(), ends = path.closest(".react-flow__edge").dataset.id.split(">").map((each) => each.split(".")[0]);
    const behind = new Set(Array.from({ length: 200 }, (_, n) => path.getPointAtLength((length * n) / 199).matrixTransform(onto)).flatMap(({ x, y }) =>
      cards.filter(([name, { left, right, top, bottom }]) => !ends.includes(name) && x > left && x < right && y > top && y < bottom).map(([name]) => name)));
    return [...behind].map((name) => `${ends.join(">")} behind ${name}`);
  });
});

/** Collect what the console complains of, and requests that leave `home`. */
export function watched(page, home) {
  const faults = [], outside = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (line) => { if (["error", "warning"].includes(line.type()) && !/ReadPixels|GPU stall|Failed to load resource/.test(line.text())) faults.push(line.text()); });
  page.on("request", (request) => { if (!request.url().startsWith(home) && !/^(data|blob):/.test(request.url())) outside.push(request.url()); });
  return { faults, outside };
}

/** Return how the drivers of one shot find their way: its file, nodes, knobs and buttons, pictures, and what the page complains of. */
export function handles(page, folder) {
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (line) => { if (line.type() === "error" && !/Failed to load resource/.test(line.text())) faults.push(line.text()); });
  return {
    faults,
    file: () => JSON.parse(readFileSync(`${folder}/shot.json`, "utf-8")),
    node: (name) => page.locator(".card", { has: page.locator(`.card-head b:text-is("${name}")`) }),
    knob: (name) => page.locator(`.knob[data-knob="${name}"]`),
    picture: (name) => page.screenshot({ path: `${folder}/${name}.png` }),
    save: async () => { await page.keyboard.press("Control+s"); await page.locator(".unsaved").waitFor({ state: "detached" }); },
    undo: () => page.locator(".bar button", { hasText: "Undo" }).click(),
  };
}
