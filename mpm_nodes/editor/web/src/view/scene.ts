/** The 3D view: points as shaded spheres, meshes, a grid; drawn when something has changed, not all the time. */
import {
  AmbientLight, Box3, BufferAttribute, BufferGeometry, Color, DirectionalLight, Float32BufferAttribute, GridHelper, Group, HemisphereLight, Mesh, MeshStandardMaterial,
  DoubleSide, type Object3D, PerspectiveCamera, Points, Scene, ShaderMaterial, Vector2, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import type { Cloud, Frame, Mesh as FrameMesh } from "./frame";
import { colourAt, RAMP } from "./ramp";

const VERTEX = /* glsl */ `
  attribute vec4 row;
  attribute vec4 rgba;
  uniform vec3 low; uniform vec3 size; uniform vec2 held; uniform vec2 shown; uniform vec3 colour; uniform vec3 ramp[5];
  uniform float radius; uniform float pixels; uniform int mode;
  varying vec3 tint;
  vec3 ramped(float t) {
    float x = clamp(t, 0.0, 1.0) * 4.0;
    int n = int(min(floor(x), 3.0));
    return n == 0 ? mix(ramp[0], ramp[1], x) : n == 1 ? mix(ramp[1], ramp[2], x - 1.0) : n == 2 ? mix(ramp[2], ramp[3], x - 2.0) : mix(ramp[3], ramp[4], x - 3.0);
  }
  void main() {
    vec4 place = modelViewMatrix * vec4(low + row.xyz * size, 1.0);
    gl_Position = projectionMatrix * place;
    gl_PointSize = max(1.5, 2.0 * radius * pixels / -place.z);
    float value = held.x + row.w * (held.y - held.x);
    tint = mode == 2 ? ramped((value - shown.x) / max(shown.y - shown.x, 1e-30)) : mode == 1 ? rgba.rgb : colour;
  }`;
const FRAGMENT = /* glsl */ `
  varying vec3 tint;
  void main() {
    vec2 at = 2.0 * gl_PointCoord - 1.0;
    float inside = 1.0 - dot(at, at);
    if (inside < 0.0) discard;
    vec3 normal = vec3(at.x, -at.y, sqrt(inside));
    float light = 0.38 + 0.62 * max(dot(normal, normalize(vec3(-0.35, 0.75, 0.55))), 0.0);
    gl_FragColor = vec4(tint * light, 1.0);
  }`;

export interface Colouring { attribute: string; range: [number, number] }

export class View {
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  private readonly camera = new PerspectiveCamera(40, 1, 0.001, 1000);
  private readonly controls: OrbitControls;
  private readonly content = new Group();
  private readonly guides = new Group();
  private grid: GridHelper | null = null;
  private queued = 0;
  private shown: Frame | null = null;
  private gridColours: [string, string] = ["#555", "#333"];

  constructor(private readonly host: HTMLElement) {
    this.renderer = new WebGLRenderer({ antialias: true, preserveDrawingBuffer: false });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    host.append(this.renderer.domElement);
    this.camera.position.set(1.1, 0.84, 2);
    this.controls = new OrbitControls(this.camera, this.renderer.domElement);
    this.controls.addEventListener("change", () => this.draw());
    const sun = new DirectionalLight(0xffffff, 1.9);
    sun.position.set(-2, 5, 4);
    this.scene.add(this.content, this.guides, new HemisphereLight(0xdde6f0, 0x55504a, 1.1), new AmbientLight(0xffffff, 0.25), sun);
    new ResizeObserver(() => this.resize()).observe(host);
    this.resize();
  }

  dispose(): void { cancelAnimationFrame(this.queued); this.controls.dispose(); this.renderer.dispose(); this.renderer.domElement.remove(); }

  theme(background: string, major: string, minor: string): void {
    this.scene.background = new Color(background);
    this.gridColours = [major, minor];
    this.placeGrid();
  }

  draw(): void {
    if (!this.queued) this.queued = requestAnimationFrame(() => { this.queued = 0; this.renderer.render(this.scene, this.camera); });
  }

  /** Show a frame; the camera moves only for the first one. */
  show(frame: Frame | null, colouring: Colouring, pointSize: number): void {
    const first = !this.shown && frame;
    this.shown = frame;
    clear(this.content);
    for (const cloud of frame?.clouds ?? []) this.content.add(this.points(frame!, cloud, colouring, pointSize));
    for (const mesh of frame?.meshes ?? []) this.content.add(surface(frame!, mesh, colouring));
    if (first) this.frameAll();
    this.draw();
  }

  showGuides(guides: Object3D[]): void {
    clear(this.guides);
    if (guides.length) this.guides.add(...guides);
    if (!this.shown) this.frameAll();
    this.draw();
  }

  setGuidesVisible(visible: boolean): void { this.guides.visible = visible; this.draw(); }

  /** Look at everything from where the camera looks. */
  frameAll(): void {
    const [low, high] = this.bounds(), centre = low.clone().add(high).multiplyScalar(0.5), reach = Math.max(low.distanceTo(high) / 2, 1e-6);
    const away = this.camera.position.clone().sub(this.controls.target).normalize();
    const half = Math.atan(Math.tan((this.camera.fov * Math.PI) / 360) * Math.min(1, this.camera.aspect));
    this.controls.target.copy(centre);
    this.camera.position.copy(centre).addScaledVector(away, (0.9 * reach) / Math.sin(half));
    this.camera.near = reach / 500;
    this.camera.far = reach * 200;
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.placeGrid();
    this.draw();
  }

  /** Return the box that is looked at: the matter with what is near it; floors reach far. */
  private bounds(): [Vector3, Vector3] {
    const low = new Vector3(Infinity, Infinity, Infinity), high = low.clone().negate();
    if (this.shown) {
      low.set(...this.shown.box[0]); high.set(...this.shown.box[1]);
      const matter = this.content.children.map((child) => child.userData.box as [Vector3, Vector3] | null).filter((box) => box !== null);
      if (matter.length) {
        const a = matter.reduce((sum, box) => sum.min(box[0]), matter[0][0].clone()), b = matter.reduce((sum, box) => sum.max(box[1]), matter[0][1].clone());
        const more = a.distanceTo(b) * 0.6;
        low.max(a.subScalar(more)); high.min(b.addScalar(more));
      }
    }
    const floors = this.guides.children.filter((each) => each.userData.floor && each.position.y < low.y);
    if (!this.shown) {
      const near = this.guides.children.filter((each) => !each.userData.floor);
      for (const guide of near.length ? near : this.guides.children) {
        const box = new Box3().setFromObject(guide);
        low.min(box.min); high.max(box.max);
      }
    }
    if (Number.isFinite(low.x) && floors.length) low.y = Math.min(low.y, Math.max(Math.min(...floors.map((each) => each.position.y)), low.y - low.distanceTo(high)));
    return Number.isFinite(low.x) ? [low, high] : [new Vector3(-0.5, 0, -0.5), new Vector3(0.5, 0.6, 0.5)];
  }

  private points(frame: Frame, cloud: Cloud, colouring: Colouring, pointSize: number): Points {
    const geometry = new BufferGeometry();
    geometry.setAttribute("row", new BufferAttribute(cloud.points, 4, true));
    if (cloud.rgba) geometry.setAttribute("rgba", new BufferAttribute(cloud.rgba, 4, true));
    geometry.setDrawRange(0, cloud.shown);
    const [low, high] = frame.box, ramped = colouring.attribute && cloud.has_values;
    const height = this.renderer.domElement.height;
    const material = new ShaderMaterial({
      vertexShader: VERTEX, fragmentShader: FRAGMENT,
      uniforms: {
        low: { value: new Vector3(...low) }, size: { value: new Vector3(...high.map((each, n) => each - low[n])) },
        held: { value: new Vector2(...frame.values) }, shown: { value: new Vector2(...colouring.range) },
        colour: { value: new Vector3(...cloud.colour.map((each) => each / 255)) }, ramp: { value: RAMP.map((stop) => new Vector3(...stop)) },
        radius: { value: cloud.radius * pointSize }, pixels: { value: height / (2 * Math.tan((this.camera.fov * Math.PI) / 360)) },
        mode: { value: ramped ? 2 : cloud.rgba ? 1 : 0 },
      },
    });
    const points = new Points(geometry, material);
    points.frustumCulled = false;
    points.userData = { matter: true, box: extent(cloud.points, low, high) };
    return points;
  }

  private placeGrid(): void {
    const [low, high] = this.bounds(), reach = Math.max(high.x - low.x, high.z - low.z, 0.01);
    const cell = 10 ** Math.round(Math.log10(reach / 8));
    if (this.grid) { this.scene.remove(this.grid); this.grid.dispose(); }
    this.grid = new GridHelper(cell * 60, 60, this.gridColours[0], this.gridColours[1]);
    this.grid.position.set(step((low.x + high.x) / 2, cell), Math.min(0, low.y) - reach * 1e-3, step((low.z + high.z) / 2, cell));
    this.scene.add(this.grid);
    this.host.dataset.cell = String(cell);
    this.host.dispatchEvent(new CustomEvent("cell", { detail: cell }));
    this.draw();
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !height) return;
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.draw();
  }
}

const step = (value: number, cell: number) => Math.round(value / cell) * cell;

function extent(rows: Uint16Array, low: number[], high: number[]): [Vector3, Vector3] {
  const least = [65535, 65535, 65535], most = [0, 0, 0];
  for (let at = 0; at < rows.length; at += 4) for (let n = 0; n < 3; n++) {
    const value = rows[at + n];
    if (value < least[n]) least[n] = value;
    if (value > most[n]) most[n] = value;
  }
  const place = (each: number[]) => new Vector3(...each.map((value, n) => low[n] + (value / 65535) * (high[n] - low[n])));
  return [place(least), place(most)];
}

/** Triangles of a mesh up to which it is a box or a plane, whose edges are seen. */
const FACETED = 100;

function surface(frame: Frame, mesh: FrameMesh, colouring: Colouring): Mesh {
  const [low, high] = frame.box, geometry = new BufferGeometry(), count = mesh.points;
  const places = new Float32Array(count * 3), ramped = colouring.attribute !== "" && mesh.has_values, colours = ramped ? new Float32Array(count * 3) : null;
  for (let n = 0; n < count; n++) {
    for (let axis = 0; axis < 3; axis++) places[3 * n + axis] = low[axis] + (mesh.rows[4 * n + axis] / 65535) * (high[axis] - low[axis]);
    if (colours) {
      const value = frame.values[0] + (mesh.rows[4 * n + 3] / 65535) * (frame.values[1] - frame.values[0]);
      colours.set(colourAt((value - colouring.range[0]) / Math.max(colouring.range[1] - colouring.range[0], 1e-30)), 3 * n);
    }
  }
  geometry.setAttribute("position", new Float32BufferAttribute(places, 3));
  geometry.setIndex(new BufferAttribute(mesh.indices, 1));
  if (colours) geometry.setAttribute("color", new Float32BufferAttribute(colours, 3));
  const smooth = mesh.matter || mesh.triangles > FACETED;
  if (smooth) geometry.computeVertexNormals();
  const [r, g, b] = mesh.colour;
  const material = new MeshStandardMaterial({
    color: ramped ? 0xffffff : new Color(`rgb(${r}, ${g}, ${b})`), vertexColors: ramped, flatShading: !smooth, roughness: mesh.matter ? 0.45 : 0.8, side: DoubleSide,
  });
  const made = new Mesh(geometry, material);
  made.userData = { matter: mesh.matter, box: mesh.matter ? extent(mesh.rows, low, high) : null };
  return made;
}

function clear(group: Group): void {
  group.traverse((each) => {
    const { geometry, material } = each as Mesh;
    geometry?.dispose();
    for (const one of Array.isArray(material) ? material : material ? [material] : []) one.dispose();
  });
  group.clear();
}
