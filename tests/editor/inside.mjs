// The view itself, with and without the points inside of matter, in Chromium: node inside.mjs SCRIPT WEB; prints one JSON line of what was found.
import { readFileSync } from "node:fs";
import { launch } from "./seen.mjs";

const [script, web] = process.argv.slice(2), browser = await launch(web), found = { differ: {}, drawn: {} }, faults = [];
const page = await browser.newPage({ viewport: { width: 450, height: 300 } });
page.on("pageerror", (error) => faults.push(error.message));
try {
  await page.setContent('<body style="margin:0"><div id="host" style="position:relative;width:450px;height:300px"></div><style>.surface, canvas { position: absolute; inset: 0 }</style>');
  await page.addScriptTag({ content: readFileSync(script, "utf-8") });
  await page.evaluate(() => {
    let seed = 7;
    const chance = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
    const view = new globalThis.View(document.getElementById("host")), SPACING = 0.01, RADIUS = 0.0062;
    view.theme("#202428", "#202428", "#202428");
    /** A cloud of matter that is not stretched, in a box that it fills. */
    const cloudOf = (size, place) => {
      const count = size[0] * size[1] * size[2], points = new Uint16Array(4 * count);
      for (let n = 0; n < count; n++) place(n).forEach((each, axis) => { points[4 * n + axis] = Math.min(65535, Math.max(0, Math.round(each * 65535))); });
      return { layer: "a", path: "/a", box: [[0, 0, 0], size.map((each) => each * SPACING)], count, shown: count, block: 1, radius: RADIUS, colours: false, has_values: false, values: [0, 1], rgba: null, look: { colour: [220, 120, 30], opacity: 1, roughness: 1, metallic: 0 }, points };
    };
    const lattice = (jitter, ...size) => cloudOf(size, (n) => [n % size[0], Math.floor(n / size[0]) % size[1], Math.floor(n / size[0] / size[1])].map((each, axis) => (each + 0.5 + jitter * (chance() - 0.5)) / size[axis]));
    const shapes = { block: () => lattice(0.3, 68, 68, 68), "pool at rest": () => lattice(0, 110, 32, 90), random: () => cloudOf([68, 68, 68], () => [chance(), chance(), chance()]), sheet: () => lattice(0.3, 200, 7, 200) };
    let number = 0;
    const frame = (clouds) => ({ frame: ++number, first: 1, last: 99, fps: 24, values: [0, 1], attribute: "", unit: "", attributes: [], layers: [], shown: [], clouds, meshes: [], fogs: [], bytes: 0 });
    const rest = async () => { do await new Promise((done) => setTimeout(done, 15)); while (view.drawing || view.queued || view.moving || view.again); };
    const picture = async () => { view.draw(); await rest(); view.paintSides(); const gl = view.renderer.getContext(), [w, h] = [gl.drawingBufferWidth, gl.drawingBufferHeight], out = new Uint8Array(4 * w * h); gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, out); return out; };
    Object.assign(globalThis, { view, shapes, frame, rest, picture });
  });
  for (const name of ["block", "pool at rest", "random", "sheet"]) {
    const [differ, drawn] = await page.evaluate(async (name) => {
      view.show(frame([shapes[name]()]));
      view.frameAll();
      const points = view.sides[0].children[0], sees = view.seesAll, shares = [], drawn = [];
      for (const [across, up, nearer] of [[0.4, 0.1, 1], [1, -0.5, 1.5]]) {
        view.turn(across, up, nearer);
        await rest();
        const some = await picture();
        drawn.push((points.geometry.index?.count ?? points.userData.cloud.count) / points.userData.cloud.count);
        view.seesAll = () => true;
        const all = await picture();
        view.seesAll = sees;
        let matter = 0, differ = 0;
        for (let at = 0; at < all.length; at += 4) {
          if (all[at] > all[at + 2] + 8) matter++;
          if ([0, 1, 2].some((n) => Math.abs(all[at + n] - some[at + n]) > 25)) differ++;
        }
        shares.push(differ / matter);
      }
      return [Math.max(...shares), Math.max(...drawn)];
    }, name);
    found.differ[name] = differ;
    found.drawn[name] = drawn;
  }

  // frames that are drawn, and frames that come while the page is not seen, leave nothing behind
  found.held = await page.evaluate(async () => {
    const small = shapes["pool at rest"](), held = [];
    small.shown = small.count = 3000;
    small.points = small.points.slice(0, 12000);
    for (let n = 0; n < 25; n++) { view.show(frame([small])); await picture(); if (n % 12 === 0) held.push(view.renderer.info.memory.geometries); }
    for (let n = 0; n < 25; n++) view.show(frame([small]));
    return [held, view.gone.children.length];
  });
} catch (error) {
  found.error = String(error.stack ?? error);
}
console.log(JSON.stringify({ ...found, faults }));
await browser.close();
