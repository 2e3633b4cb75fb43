/** Handles of the chosen outline, and of the slice plane: three's gizmos, which turn the camera off while they are dragged. */
import { BufferGeometry, Group, Line, LineBasicMaterial, type Object3D, Vector3 } from "three";
import { TransformControls } from "three/examples/jsm/controls/TransformControls.js";
import type { Mode } from "./guides";
import type { View } from "./scene";

export class Handles {
  private readonly body: TransformControls;
  private readonly plane: TransformControls;
  private readonly sheet = new Group();
  private axis: number | null = null;
  private attached: Object3D | null = null;
  /** A drag of the outline ended; the slice plane was dragged to a place [m]. */
  onMoved: (outline: Object3D, mode: Mode) => void = () => {};
  onSliced: (at: number) => void = () => {};

  constructor(private readonly view: View) {
    this.body = this.made(() => { if (this.attached) this.onMoved(this.attached, this.body.mode as Mode); });
    this.plane = this.made(() => {});
    this.plane.addEventListener("objectChange", () => { if (this.axis !== null) this.onSliced(this.sheet.position.getComponent(this.axis)); });
    this.body.addEventListener("objectChange", () => {
      const scale = this.attached?.scale, modes = this.attached?.userData.even;
      if (!scale || this.body.mode !== "scale") return;
      for (const part of ["x", "y", "z"] as const) scale[part] = Math.max(scale[part], 0.01);
      if (modes) scale.setScalar([scale.x, scale.y, scale.z].reduce((most, each) => (Math.abs(each - 1) > Math.abs(most - 1) ? each : most), 1));
    });
    this.plane.setSize(0.7);
    view.scene.add(this.sheet);
  }

  private made(ended: () => void): TransformControls {
    const made = new TransformControls(this.view.camera, this.view.surface);
    made.addEventListener("dragging-changed", (event) => { this.view.controls.enabled = !event.value; if (!event.value) ended(); });
    made.addEventListener("change", () => this.view.draw());
    this.view.scene.add(made.getHelper());
    return made;
  }

  get dragging(): boolean { return this.body.dragging || this.plane.dragging; }
  /** Whether the pointer is over a handle. */
  get hovered(): boolean { return this.body.axis !== null || this.plane.axis !== null; }

  /** Put the handles on an outline, or take them away. */
  attach(outline: Object3D | null, mode: Mode): void {
    this.attached = outline;
    if (!outline) this.body.detach();
    else { this.body.setMode(mode); this.body.setSpace(mode === "translate" ? "world" : "local"); this.body.attach(outline); }
    this.view.draw();
  }

  /** Show where the slice is, with a handle along its axis. */
  slice(axis: number | null, at: number): void {
    this.axis = axis;
    if (axis === null) { this.plane.detach(); this.sheet.clear(); this.view.draw(); return; }
    if (this.plane.dragging) return;
    const [low, high] = this.view.bounds(), centre = low.clone().add(high).multiplyScalar(0.5), [u, v] = [0, 1, 2].filter((each) => each !== axis);
    this.sheet.position.copy(centre).setComponent(axis, at);
    const reach = high.clone().sub(low).multiplyScalar(0.55), corners = [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]].map(([a, b]) => new Vector3().setComponent(u, a * reach.getComponent(u)).setComponent(v, b * reach.getComponent(v)));
    for (const old of this.sheet.children) (old as Line).geometry.dispose();
    this.sheet.clear();
    this.sheet.add(new Line(new BufferGeometry().setFromPoints(corners), new LineBasicMaterial({ color: [0xf0857c, 0x74b356, 0x6a9be8][axis] })));
    this.plane.showX = axis === 0; this.plane.showY = axis === 1; this.plane.showZ = axis === 2;
    this.plane.attach(this.sheet);
    this.view.draw();
  }

  dispose(): void { this.body.dispose(); this.plane.dispose(); }
}
