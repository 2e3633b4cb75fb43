/** Which point is seen at a place of the canvas: the nearest one to the eye whose sphere is met, of those that are not cut away. */
import { type Object3D, type PerspectiveCamera, Matrix4, Points } from "three";
import { type Cloud, fullIndex, placeOf, type Triple } from "./frame";
import type { Shared } from "./shared";

export interface Picked { layer: string; path: string; index: number; place: Triple; radius: number }

/** Pixels that a pointer may be off. */
const SLACK = 4;

export function pickIn(shapes: Object3D[], camera: PerspectiveCamera, [x, y]: number[], [width, height]: number[], shared: Shared): Picked | null {
  const onto = new Matrix4().multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse).elements, cut = shared.cut.value;
  const pixels = height / (2 * Math.tan((camera.fov * Math.PI) / 360)), u = (2 * x) / width - 1, v = 1 - (2 * y) / height;
  let owner: Cloud | null = null, best = -1, size = 0, nearest = Infinity;
  for (const shape of shapes) {
    if (!(shape instanceof Points) || !shape.visible) continue;
    const cloud = shape.userData.cloud as Cloud, { points, box } = cloud, [lx, ly, lz] = box[0], [sx, sy, sz] = box[1].map((each, n) => (each - box[0][n]) / 65535);
    const radius = cloud.radius * Math.cbrt(cloud.count / cloud.shown) * shared.size.value;
    for (let n = 0; n < cloud.shown; n++) {
      const px = lx + points[4 * n] * sx, py = ly + points[4 * n + 1] * sy, pz = lz + points[4 * n + 2] * sz;
      const w = onto[3] * px + onto[7] * py + onto[11] * pz + onto[15];
      if (w <= 0 || w >= nearest) continue;
      const dx = ((onto[0] * px + onto[4] * py + onto[8] * pz + onto[12]) / w - u) * width * 0.5, dy = ((onto[1] * px + onto[5] * py + onto[9] * pz + onto[13]) / w - v) * height * 0.5;
      const reach = Math.max(SLACK, (radius * pixels) / w);
      if (dx * dx + dy * dy > reach * reach || cut.x * px + cut.y * py + cut.z * pz > cut.w) continue;
      nearest = w;
      best = n; owner = cloud; size = radius;
    }
  }
  return owner && { layer: owner.layer, path: owner.path, index: fullIndex(owner, best), place: placeOf(owner.box, owner.points, best), radius: size };
}
