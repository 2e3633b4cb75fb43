/** The 3D view: shapes of one or two caches, guides, grid, marks and handles; drawn when something has changed, not all the time. */
import {
  AmbientLight, Box3, BufferGeometry, Color, DepthTexture, DirectionalLight, GridHelper, Group, HemisphereLight, Line, LineBasicMaterial, Mesh, MeshBasicMaterial, type Object3D, PerspectiveCamera, Points, Scene,
  Spherical, SphereGeometry, Vector2, Vector3, Vector4, WebGLRenderer, WebGLRenderTarget,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { aim, fogOf } from "./fog";
import type { Frame, Triple } from "./frame";
import { pickIn, type Picked } from "./pick";
import { drawShare, pointsOf } from "./points";
import { Shared } from "./shared";
import { sideOf, surfaceOf } from "./surfaces";

export type Compare = "single" | "beside" | "wipe";
export interface Scale { metres: number; pixels: number; cell: number }
/** What is painted, and how; nothing is built again for it. */
export interface Painting { range: [number, number]; ramped: boolean; pointSize: number; hidden: ReadonlySet<string>; slice: { axis: number | null; at: number; flipped: boolean } }

/** Milliseconds that a picture may take while the view moves; so many points are left out that it does. */
const SMOOTH = 50, LEAST_DETAIL = 0.02, RESTS_AFTER = 220;
/** Points from which on a processor that draws leaves smooth edges out: they cost it as much again. */
const MANY = 250_000;
/** Times what it was at first up to which matter is followed. */
const FOLLOWED = 3;

export class View {
  readonly shared = new Shared();
  readonly scene = new Scene();
  readonly camera = new PerspectiveCamera(40, 1, 0.001, 1000);
  readonly controls: OrbitControls;
  /** What takes the pointer; the canvas in it may be made again. */
  readonly surface = document.createElement("div");
  readonly guides = new Group();
  /** Called with the scale when the camera has moved, and before each picture. */
  onScale: (scale: Scale) => void = () => {};
  onDraw: () => void = () => {};
  private renderer: WebGLRenderer;
  private readonly sides = [new Group(), new Group()];
  private readonly gone = new Group();
  private readonly marks = new Group();
  private readonly shown: (Frame | null)[] = [null, null];
  private readonly depth = new WebGLRenderTarget(1, 1, { depthTexture: new DepthTexture(1, 1) });
  private readonly watch: ResizeObserver;
  private grid: GridHelper | null = null;
  private gridVisible = true;
  private painting: Painting = { range: [0, 1], ramped: false, pointSize: 1, hidden: new Set(), slice: { axis: null, at: 0, flipped: false } };
  private compare: Compare = "single";
  private share = 0.5;
  private queued = 0;
  private gridColours: [string, string] = ["#555", "#333"];
  private moving = false;
  private grasped = false;
  /** Whether somebody has moved the camera, and how large what it was first turned to was [m]. */
  private held = false;
  private firstSize = 0;
  private rests = 0;
  /** Whether a picture is being drawn, whether it is old already, and how long one with all points takes [ms]. */
  private drawing = false;
  private again = false;
  private cost = 0;
  private cell = 0;

  constructor(private readonly host: HTMLElement) {
    this.surface.className = "surface";
    host.append(this.surface);
    this.renderer = this.rendererWith(true);
    this.camera.position.set(1.1, 0.84, 2);
    this.controls = new OrbitControls(this.camera, this.surface);
    this.controls.addEventListener("change", () => { this.moves(); this.tellScale(); });
    this.controls.addEventListener("start", () => { this.grasped = this.held = true; });
    this.controls.addEventListener("end", () => { this.grasped = false; this.moves(); });
    const sun = new DirectionalLight(0xffffff, 1.9);
    sun.position.set(-2, 5, 4);
    this.scene.add(...this.sides, this.guides, this.marks, new HemisphereLight(0xdde6f0, 0x55504a, 1.1), new AmbientLight(0xffffff, 0.25), sun);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(host);
    this.resize();
  }

  dispose(): void { this.watch.disconnect(); cancelAnimationFrame(this.queued); clearTimeout(this.rests); this.controls.dispose(); clear(this.gone); this.depth.dispose(); this.renderer.dispose(); this.surface.remove(); }

  private rendererWith(smooth: boolean): WebGLRenderer {
    const made = new WebGLRenderer({ antialias: smooth });
    made.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    made.localClippingEnabled = true;
    this.surface.replaceChildren(made.domElement);
    return made;
  }

  theme(background: string, major: string, minor: string): void {
    this.scene.background = new Color(background);
    this.gridColours = [major, minor];
    this.placeGrid();
  }

  /** Draw soon; while a picture is drawn, the next one waits for it. */
  draw(): void {
    if (this.drawing) this.again = true;
    else if (!this.queued) this.queued = requestAnimationFrame(() => { this.queued = 0; this.render(); });
  }

  // ---------------------------------------------------------------- what is shown
  /** Show a frame of the first or the second cache; the camera moves for the very first one, and until somebody has moved it, after matter that leaves the picture. */
  show(frame: Frame | null, side = 0): void {
    const before = this.shown[0], first = !before && !side && frame, later = before && !side && frame && frame.frame > before.frame;
    if (this.shown[side] === frame) return;
    this.shown[side] = frame;
    const into = this.sides[side];
    // what went is thrown away after the next picture, so that it need not compile the same shaders again; a page that is not seen draws none
    if (into.children.length) { clear(this.gone); this.gone.add(...into.children); }
    if (count(frame) > MANY && this.renderer.getContextAttributes().antialias && drawnByProcessor(this.renderer)) {
      this.renderer.dispose();
      this.renderer.forceContextLoss();
      this.renderer = this.rendererWith(false);
      this.drawing = false;
      this.resize();
    }
    for (const cloud of frame?.clouds ?? []) into.add(pointsOf(cloud, this.shared, !this.renderer.getContextAttributes().antialias));
    for (const mesh of frame?.meshes ?? []) into.add(surfaceOf(mesh, this.shared, this.painting.slice.axis !== null));
    for (const fog of frame?.fogs ?? []) into.add(fogOf(fog, this.shared));
    this.applyPainting();
    if (first || (later && !this.held && !this.fits())) this.frameAll();
    if (first) { this.held = false; this.firstSize = this.size(); }
    this.draw();
  }

  private size(): number { const [low, high] = this.bounds(); return low.distanceTo(high); }

  /** Whether all that is shown lies within the picture, or is too large to be followed. */
  private fits(): boolean {
    if (this.compare !== "single" || this.size() > FOLLOWED * this.firstSize) return true; // a drop that flies off is let go
    this.camera.aspect = this.host.clientWidth / this.host.clientHeight;
    this.camera.updateProjectionMatrix();
    this.camera.updateMatrixWorld();
    const ends = this.bounds();
    return Array.from({ length: 8 }, (_, n) => new Vector3(ends[n & 1].x, ends[(n >> 1) & 1].y, ends[n >> 2].z).project(this.camera)).every(({ x, y }) => Math.max(Math.abs(x), Math.abs(y)) <= 1);
  }

  paint(painting: Painting): void {
    this.painting = painting;
    this.applyPainting();
    this.draw();
  }

  private applyPainting(): void {
    const { range, ramped, pointSize, hidden, slice } = this.painting;
    this.shared.shown.value.set(...range);
    this.shared.ramped.value = ramped ? 1 : 0;
    this.shared.size.value = pointSize;
    this.shared.slice(slice.axis, slice.at, slice.flipped);
    for (const each of this.everything()) {
      each.visible = !hidden.has(each.userData.layer);
      if (!(each instanceof Mesh) || each.userData.fog) continue;
      for (const material of [each.material].flat()) {
        const planes = slice.axis === null ? null : [this.shared.plane];
        if ((material.clippingPlanes === null) !== (planes === null)) { material.clippingPlanes = planes; material.side = sideOf(material.transparent && each.userData.matter, planes !== null); material.needsUpdate = true; }
      }
    }
  }

  /** Show one cache, or two from the same camera: side by side, or with a border at a share of the width. */
  setCompare(compare: Compare, share: number): void { this.compare = compare; this.share = share; this.draw(); }

  showGuides(guides: Object3D[]): void {
    clear(this.guides);
    if (guides.length) this.guides.add(...guides);
    if (!this.shown[0] && !this.cell) this.frameAll();
    this.draw();
  }

  setVisible(guides: boolean, grid: boolean): void { this.guides.visible = guides; this.gridVisible = grid; if (this.grid) this.grid.visible = grid; this.draw(); }

  /** Mark places [m]; a line joins two. */
  setMarks(places: Triple[]): void {
    clear(this.marks);
    const reach = this.camera.position.distanceTo(this.controls.target);
    for (const place of places) {
      const mark = new Mesh(new SphereGeometry(1, 16, 12), new MeshBasicMaterial({ color: 0x39d98a, depthTest: false, transparent: true, opacity: 0.9 }));
      mark.position.set(...place);
      mark.scale.setScalar(reach * 0.008);
      mark.renderOrder = 20;
      this.marks.add(mark);
    }
    if (places.length === 2) {
      const line = new Line(new BufferGeometry().setFromPoints(places.map((each) => new Vector3(...each))), new LineBasicMaterial({ color: 0x39d98a, depthTest: false, transparent: true }));
      line.renderOrder = 20;
      this.marks.add(line);
    }
    this.draw();
  }

  /** Return the point that is seen at a place of the canvas, in its pixels. */
  pick(x: number, y: number): (Picked & { side: number }) | null {
    const [width, height] = [this.host.clientWidth, this.host.clientHeight], beside = this.compare === "beside", split = this.compare === "single" ? width : width * (beside ? 0.5 : this.share);
    const side = x > split ? 1 : 0, half = beside ? width / 2 : width;
    this.camera.aspect = half / height;
    this.camera.updateProjectionMatrix();
    this.camera.updateMatrixWorld();
    const found = pickIn(this.sides[side].children, this.camera, [beside && side ? x - half : x, y], [half, height], this.shared);
    return found && { ...found, side };
  }

  // ---------------------------------------------------------------- camera
  /** Look at everything, or at what is around a place, from where the camera looks. */
  frameAll(around: { centre: Triple; reach: number } | null = null): void {
    const [low, high] = this.bounds(), centre = around ? new Vector3(...around.centre) : low.clone().add(high).multiplyScalar(0.5), reach = Math.max(around?.reach ?? low.distanceTo(high) / 2, 1e-6);
    const away = this.camera.position.clone().sub(this.controls.target).normalize();
    const half = Math.atan(Math.tan((this.camera.fov * Math.PI) / 360) * Math.min(1, this.camera.aspect));
    this.controls.target.copy(centre);
    this.camera.position.copy(centre).addScaledVector(away, (1.05 * reach) / Math.sin(half));
    const whole = Math.max(low.distanceTo(high) / 2, reach);
    this.camera.near = Math.min(reach / 50, whole / 500);
    this.camera.far = whole * 200;
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.placeGrid();
    this.tellScale();
    // it does not go on from here, so that all points are drawn at once
    clearTimeout(this.rests);
    this.moving = this.grasped;
    this.draw();
  }

  /** Turn the view about what is looked at [radians], or come nearer by a factor. */
  turn(across: number, up: number, nearer = 1): void {
    this.held = true;
    const { target } = this.controls, way = new Spherical().setFromVector3(this.camera.position.clone().sub(target));
    way.theta += across;
    way.phi -= up;
    way.radius /= nearer;
    this.camera.position.setFromSpherical(way.makeSafe()).add(target);
    this.controls.update();
    this.moves();
    this.tellScale();
  }

  /** Return the box that is looked at: the matter with what is near it; floors reach far. */
  bounds(): [Vector3, Vector3] {
    const low = new Vector3(Infinity, Infinity, Infinity), high = low.clone().negate(), matter = low.clone(), beyond = high.clone();
    for (const frame of this.shown) {
      for (const { box } of [...(frame?.clouds ?? []), ...(frame?.meshes ?? []).filter((mesh) => mesh.matter || !flat(mesh.box))]) { low.min(new Vector3(...box[0])); high.max(new Vector3(...box[1])); }
    }
    for (const each of this.everything()) {
      const box = each.userData.matter ? (each.userData.box as [Triple, Triple]) : null;
      if (box) { matter.min(new Vector3(...box[0])); beyond.max(new Vector3(...box[1])); }
    }
    if (Number.isFinite(matter.x)) {
      const more = matter.distanceTo(beyond) * 0.6;
      low.min(matter); high.max(beyond);
      low.max(matter.subScalar(more)); high.min(beyond.addScalar(more));
    }
    const seen = Number.isFinite(low.x), floors = this.guides.children.filter((each) => each.userData.floor && each.position.y < low.y);
    if (!seen) {
      const near = this.guides.children.filter((each) => !each.userData.floor && !each.userData.walls);
      for (const guide of near.length ? near : this.guides.children) {
        const box = new Box3().setFromObject(guide);
        low.min(box.min); high.max(box.max);
      }
    }
    if (Number.isFinite(low.x) && floors.length) low.y = Math.min(low.y, Math.max(Math.min(...floors.map((each) => each.position.y)), low.y - low.distanceTo(high)));
    return Number.isFinite(low.x) ? [low, high] : [new Vector3(-0.5, 0, -0.5), new Vector3(0.5, 0.6, 0.5)];
  }

  private everything(): Object3D[] { return this.sides.flatMap((side) => side.children); }

  private placeGrid(): void {
    const [low, high] = this.bounds(), reach = Math.max(high.x - low.x, high.z - low.z, 1e-4);
    const cell = 10 ** Math.round(Math.log10(reach / 8));
    if (this.grid) { this.scene.remove(this.grid); this.grid.dispose(); }
    this.grid = new GridHelper(cell * 60, 60, this.gridColours[0], this.gridColours[1]);
    this.grid.position.set(step((low.x + high.x) / 2, cell), Math.min(0, low.y) - reach * 5e-3, step((low.z + high.z) / 2, cell));
    this.grid.visible = this.gridVisible;
    this.scene.add(this.grid);
    this.cell = cell;
    this.tellScale();
    this.draw();
  }

  /** Tell how many pixels a round length takes at what is looked at. */
  private tellScale(): void {
    const distance = this.camera.position.distanceTo(this.controls.target), metre = this.host.clientHeight / (2 * Math.tan((this.camera.fov * Math.PI) / 360) * distance);
    const most = 130 / metre, ten = 10 ** Math.floor(Math.log10(most)), metres = [5, 2, 1].map((part) => part * ten).find((each) => each <= most) ?? ten;
    this.onScale({ metres, pixels: metres * metre, cell: this.cell });
  }

  // ---------------------------------------------------------------- drawing
  /** While the view moves, as many points are drawn as it moves smoothly with; when it rests, all. */
  moves(): void {
    this.moving = true;
    clearTimeout(this.rests);
    const rest = () => { if (this.grasped || this.drawing) this.rests = window.setTimeout(rest, RESTS_AFTER); else { this.moving = false; this.draw(); } };
    this.rests = window.setTimeout(rest, RESTS_AFTER);
    this.draw();
  }

  private render(): void {
    const begin = performance.now(), detail = this.moving && this.cost ? Math.min(1, Math.max(LEAST_DETAIL, SMOOTH / this.cost)) : 1;
    this.shared.grown.value = Math.cbrt(1 / detail);
    this.shared.steps.value = this.moving ? 24 : 64;
    for (const each of this.everything()) if (each instanceof Points) drawShare(each, detail, this.seesAll(each) ? null : this.camera.position.toArray());
    this.paintSides();
    clear(this.gone);
    const gl = this.renderer.getContext() as WebGL2RenderingContext, fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (!fence) return;
    gl.flush();
    this.drawing = true;
    const look = () => {
      if (this.renderer.getContext() !== gl) return;
      if (!gl.isContextLost() && gl.clientWaitSync(fence, 0, 0) === gl.TIMEOUT_EXPIRED) { window.setTimeout(look, 3); return; }
      gl.deleteSync(fence);
      this.drawing = false;
      // what lines, meshes and the way take is not less with fewer points
      const took = performance.now() - begin;
      if (detail > 0.5 || took > 2 * SMOOTH) this.cost = took / detail;
      this.host.dataset.drawn = this.moving ? "some" : String(this.shown[0]?.frame ?? "");
      if (this.again) { this.again = false; this.draw(); }
    };
    look();
  }

  /** Whether the inside of a cloud can be seen: it is cut, its points are drawn small, or the eye is in it. */
  private seesAll(each: Points): boolean {
    const [low, high] = each.userData.box as [Triple, Triple], { x, y, z } = this.camera.position, reach = this.camera.near * 2;
    return this.painting.slice.axis !== null || this.painting.pointSize < 1 || [x, y, z].every((at, axis) => at > low[axis] - reach && at < high[axis] + reach);
  }

  private paintSides(): void {
    this.onDraw();
    const { clientWidth: width, clientHeight: height } = this.host, split = this.compare === "single" ? width : Math.round(width * (this.compare === "beside" ? 0.5 : this.share));
    this.renderer.setScissorTest(this.compare !== "single");
    const parts = this.compare === "single" ? [[0, width]] : [[0, split], [split, width]];
    parts.forEach(([left, right], side) => {
      if (right <= left) return;
      this.sides.forEach((group, n) => { group.visible = n === side; });
      const beside = this.compare === "beside", wide = beside ? right - left : width;
      this.camera.aspect = wide / height;
      this.camera.updateProjectionMatrix();
      const [x, y, w, h] = beside ? [left, 0, wide, height] : [0, 0, width, height];
      this.renderer.setViewport(x, y, w, h);
      this.renderer.setScissor(left, 0, right - left, height);
      this.renderSide(side, [x, w]);
    });
  }

  private renderSide(side: number, [x, width]: number[]): void {
    const height = this.host.clientHeight, ratio = this.renderer.getPixelRatio();
    this.shared.pixels.value = (height * ratio) / (2 * Math.tan((this.camera.fov * Math.PI) / 360));
    const fogs = this.sides[side].children.filter((each) => each.userData.fog && each.visible) as Mesh[];
    if (fogs.length) {
      const screen = this.renderer.getDrawingBufferSize(new Vector2()), background = this.scene.background, hidden = [...fogs, this.marks, ...(this.grid ? [this.grid] : [])].filter((each) => each.visible);
      this.depth.setSize(screen.x, screen.y);
      this.depth.viewport.copy(new Vector4(x * ratio, 0, width * ratio, height * ratio));
      for (const each of hidden) each.visible = false;
      this.scene.background = null;
      this.renderer.setRenderTarget(this.depth);
      this.renderer.clear();
      this.renderer.render(this.scene, this.camera);
      this.renderer.setRenderTarget(null);
      this.scene.background = background;
      for (const each of hidden) each.visible = true;
      for (const fog of fogs) aim(fog, this.camera, this.depth.depthTexture!, screen);
    }
    this.renderer.render(this.scene, this.camera);
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !height) return;
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.tellScale();
    this.draw();
  }
}

const step = (value: number, cell: number) => Math.round(value / cell) * cell;

const count = (frame: Frame | null) => frame?.clouds.reduce((sum, cloud) => sum + cloud.shown, 0) ?? 0;

/** Whether there is no graphics card. */
function drawnByProcessor(renderer: WebGLRenderer): boolean {
  const gl = renderer.getContext(), told = gl.getExtension("WEBGL_debug_renderer_info");
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(String(gl.getParameter(told ? told.UNMASKED_RENDERER_WEBGL : gl.RENDERER)));
}

function clear(group: Group): void {
  group.traverse((each) => {
    const { geometry, material } = each as Mesh;
    geometry?.dispose();
    each.userData.texture?.dispose();
    for (const one of Array.isArray(material) ? material : material ? [material] : []) one.dispose();
  });
  group.clear();
}

/** Whether a box has no height along an axis: a floor or a wall, which reaches as far as it is drawn. */
const flat = ([low, high]: [Triple, Triple]): boolean => low.some((each, axis) => high[axis] - each < 1e-9);
