/** What `mpm-nodes host spec` prints, as far as the page reads it; see mpm_nodes/hosts/spec.py. */
import type { Json, JsonObject } from "./json";

export interface Range { min: number | null; max: number | null; soft_min: number; soft_max: number; log: boolean; exclusive_min: boolean }

export interface Knob {
  name: string; label: string; kind: string; default: Json; required: boolean; unit: string; range: Range | null; doc: string;
  menu: { value: Json; label: string }[]; size: number; optional: boolean; keyable: boolean; element?: string;
  /** Of nodes: whether it sets how something is computed, and not what happens. */
  advanced?: boolean;
}

export interface Input { name: string; label: string; type: string; accepts: string[]; optional: boolean; many: boolean; doc: string }
export interface Output { name: string; label: string; type: string; internal: boolean }

export interface Kind {
  id: string; label: string; version: number; doc: string; words?: string[]; category: string; inputs: Input[]; outputs: Output[]; knobs: Knob[];
}

export interface Preset { name: string; label: string; doc: string; document: JsonObject; parameters: Knob[]; candidates: string[] }

export interface Spec {
  format: string; version: number; package_version: string; graph_format: { name: string; version: number }; name_pattern: string;
  reserved_names: string[]; interpolations: string[]; settings: Knob[]; types: { id: string; label: string; doc: string; colour: number[] }[];
  nodes: Kind[]; stages: Kind[]; categories: { name: string; colour: number[] }[]; presets: Preset[];
  attributes: { name: string; doc: string; unit: string }[];
}

export const SPEC_FORMAT = "mpm_nodes.host_spec", SPEC_VERSION = 1;

/** A specification with what is looked up often. */
export class Kinds {
  readonly nodes: Map<string, Kind>;
  readonly stages: Map<string, Kind>;
  readonly presets: Map<string, Preset>;
  private readonly typeColours: Map<string, string>;
  private readonly typeLabels: Map<string, string>;
  private readonly categoryColours: Map<string, string>;

  constructor(readonly spec: Spec) {
    this.nodes = new Map(spec.nodes.map((kind) => [kind.id, kind]));
    this.stages = new Map(spec.stages.map((kind) => [kind.id, kind]));
    this.presets = new Map(spec.presets.map((preset) => [preset.name, preset]));
    this.typeColours = new Map(spec.types.map((type) => [type.id, css(type.colour)]));
    this.typeLabels = new Map(spec.types.map((type) => [type.id, type.label]));
    this.categoryColours = new Map(spec.categories.map((each) => [each.name, css(each.colour)]));
  }

  typeColour(type: string): string { return this.typeColours.get(type) ?? "#999"; }
  typeLabel(type: string): string { return type.split(" | ").map((each) => this.typeLabels.get(each) ?? each).join(" or "); }
  categoryColour(name: string): string { return this.categoryColours.get(name) ?? "#555"; }
}

function css(colour: number[]): string {
  return `rgb(${colour.map((part) => Math.round(part * 255)).join(" ")})`;
}
