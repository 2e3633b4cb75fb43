/** Frames as the server packs them; see mpm_nodes/editor/frames.py. Nothing is unpacked here: the arrays are views for the GPU. */

export type Triple = [number, number, number];
export interface Cloud { path: string; count: number; shown: number; radius: number; colour: number[]; colours: boolean; has_values: boolean; points: Uint16Array; rgba: Uint8Array | null }
export interface Mesh { path: string; points: number; triangles: number; matter: boolean; colour: number[]; has_values: boolean; rows: Uint16Array; indices: Uint32Array }
export interface Frame {
  frame: number; first: number; last: number; fps: number; box: [Triple, Triple]; values: [number, number]; attribute: string; unit: string; attributes: string[];
  clouds: Cloud[]; meshes: Mesh[]; bytes: number;
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
  }
  frame.bytes = data.byteLength;
  return frame;
}
