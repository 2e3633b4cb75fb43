/** Frames as the server packs them; see mpm_nodes/editor/frames.py. Nothing is unpacked here: the arrays are views for the GPU. */

export type Triple = [number, number, number];
export type Span = [number, number];
export interface Look { colour: number[]; opacity: number; roughness: number; metallic: number }
export interface LayerFacts { name: string; label: string; kind: "points" | "surface" | "level_set" | "fog" | "bodies" }
interface Shape { layer: string; box: [Triple, Triple]; colours: boolean; has_values: boolean; values: Span; rgba: Uint8Array | null }
export interface Cloud extends Shape { path: string; count: number; shown: number; block: number; radius: number; look: Look; points: Uint16Array }
export interface Mesh extends Shape { points: number; triangles: number; matter: boolean; looks: (Look & { count: number })[]; rows: Uint16Array; indices: Uint32Array }
export interface Fog { layer: string; size: Triple; matrix: number[]; most: number; coarser: number; look: Look; voxels: Uint8Array }
/** `resolution` of that of the graph, and `frames` of so many. */
export interface PreviewFacts { resolution: number; points: number; frames: number; of: number }
export interface Frame {
  frame: number; first: number; last: number; fps: number; values: Span; attribute: string; unit: string; attributes: string[];
  layers: LayerFacts[]; shown: string[]; clouds: Cloud[]; meshes: Mesh[]; fogs: Fog[]; bytes: number;
  /** Of a packaged preview: from which frame to which the next one is, and what is told of it. */
  step?: number; preview?: PreviewFacts;
}

export function unpack(data: ArrayBuffer): Frame {
  const length = new DataView(data).getUint32(0, true);
  const frame = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))) as Frame;
  let at = 4 + length;
  const take = <T>(Kind: new (buffer: ArrayBuffer, offset: number, length: number) => T, count: number, size: number): T => {
    const view = new Kind(data, at, count);
    at += Math.ceil((count * size) / 4) * 4;
    return view;
  };
  for (const cloud of frame.clouds) {
    cloud.points = take(Uint16Array, cloud.shown * 4, 2);
    cloud.rgba = cloud.colours ? take(Uint8Array, cloud.shown * 4, 1) : null;
  }
  for (const mesh of frame.meshes) {
    mesh.rows = take(Uint16Array, mesh.points * 4, 2);
    mesh.indices = take(Uint32Array, mesh.triangles * 3, 4);
    mesh.rgba = mesh.colours ? take(Uint8Array, mesh.points * 4, 1) : null;
  }
  for (const fog of frame.fogs) fog.voxels = take(Uint8Array, fog.size[0] * fog.size[1] * fog.size[2], 1);
  frame.bytes = data.byteLength;
  return frame;
}

/** Points of a cloud while one scrubs or plays, and otherwise. */
export const DRAFT = 120_000, FULL = 5_000_000;
/** Whether more points of a frame can be had. */
export const isDraft = (frame: Frame): boolean => frame.clouds.some((cloud) => cloud.shown < 0.9 * Math.min(cloud.count, FULL));

/** Return which of the cache's points the one is that was sent as number `index`: the rule of `even_order` in quantised.py. */
export function fullIndex({ count, block }: { count: number; block: number }, index: number): number {
  const bits = Math.log2(block), blocks = Math.ceil(count / block), turn = (at: number) => Math.imul(at, 2654435761) >>> (32 - bits);
  for (let n = 0; n < block; n++) {
    let reversed = 0;
    for (let bit = 0; bit < bits; bit++) if (n & (1 << bit)) reversed |= 1 << (bits - 1 - bit);
    const size = (blocks - 1) * block + (reversed ^ turn(blocks - 1)) < count ? blocks : blocks - 1;
    if (index < size) return index * block + (reversed ^ turn(index));
    index -= size;
  }
  return -1;
}

/** Return the place [m] of a row of 16 bits. */
export function placeOf(box: [Triple, Triple], rows: Uint16Array, index: number): Triple {
  return [0, 1, 2].map((axis) => box[0][axis] + (rows[4 * index + axis] / 65535) * (box[1][axis] - box[0][axis])) as Triple;
}
