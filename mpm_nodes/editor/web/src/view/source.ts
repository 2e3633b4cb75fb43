/** Frames of one cache as they are asked for: one is read at a time, the newest wish first, and few points before all of them. */
import { Held } from "../model/held";
import { DRAFT, type Frame, FULL, isDraft, type Span } from "./frame";

const MOST_BYTES = 400e6, QUICK = 250;

export type Read = (frame: number | null, layers: string[] | null, attribute: string, most: number) => Promise<Frame>;

export class Source {
  /** Called when a frame has come. */
  onLoaded: () => void = () => {};
  private readonly held = new Held<Frame>(MOST_BYTES);
  private readonly spans = new Map<string, Span>();
  private busy: Promise<unknown> | null = null;
  private turn = 0;
  private layers: string[] | null = null;
  private attribute = "";
  /** Milliseconds that a frame with all points took, as a moving mean. */
  private took = 0;

  constructor(private readonly read: Read) {}

  /** Say what of frames is wanted from now on. */
  choose(layers: string[] | null, attribute: string): void { this.layers = layers; this.attribute = attribute; }

  private key(frame: number | null, most: number): string { return `${this.layers?.join() ?? "first"}/${this.attribute}/${frame}/${most}`; }
  /** Return a frame that is held: with all its points, or some. */
  get(frame: number | null, draft = false): Frame | undefined { return this.held.get(this.key(frame, FULL)) ?? (draft ? this.held.get(this.key(frame, DRAFT)) : undefined); }
  has(frame: number): boolean { return this.held.has(this.key(frame, FULL)) || this.held.has(this.key(frame, DRAFT)); }
  /** Values that were seen so far of the attribute. */
  get span(): Span | undefined { return this.spans.get(this.attribute); }
  /** Whether frames with all points come as fast as they play. */
  keepsUp(fps: number): boolean { return this.took < 900 / fps; }

  /** Whether frames with all points come at once, so that none need be left out before. */
  get quick(): boolean { return this.took > 0 && this.took < QUICK; }

  /** Return a frame; null where another one was asked for meanwhile. */
  async want(frame: number | null, draft: boolean): Promise<Frame | null> {
    const turn = ++this.turn, { layers, attribute } = this;
    while (this.busy) {
      await this.busy.catch(() => {});
      if (turn !== this.turn) return null;
    }
    const found = this.get(frame, draft) ?? (await this.load(frame, draft ? DRAFT : FULL));
    return turn === this.turn && layers === this.layers && attribute === this.attribute ? found : null;
  }

  /** Read frames that will be wanted, as long as nothing else is. */
  async ahead(frames: number[], draft: boolean): Promise<void> {
    const turn = this.turn;
    for (const frame of frames) {
      if (turn !== this.turn || this.busy) return;
      if (!this.get(frame, draft)) await this.load(frame, draft ? DRAFT : FULL).catch(() => {});
    }
  }

  private async load(frame: number | null, most: number): Promise<Frame> {
    const begin = performance.now(), { attribute } = this, key = this.key(frame, most), named = (found: Frame) => this.key(found.frame, isDraft(found) ? most : FULL);
    const reading = this.held.load(key, () => this.read(frame, this.layers, attribute, most), named);
    this.busy = reading;
    try {
      const found = await reading;
      if (most === FULL || !isDraft(found)) this.took = this.took ? 0.7 * this.took + 0.3 * (performance.now() - begin) : performance.now() - begin;
      if (attribute && [...found.clouds, ...found.meshes].some((each) => each.has_values)) {
        const before = this.spans.get(attribute);
        this.spans.set(attribute, before ? [Math.min(before[0], found.values[0]), Math.max(before[1], found.values[1])] : found.values);
      }
      return found;
    } finally {
      if (this.busy === reading) this.busy = null;
      this.onLoaded();
    }
  }

  /** Forget what was read. */
  clear(): void { this.held.clear(); this.spans.clear(); this.turn++; this.took = 0; }
}
