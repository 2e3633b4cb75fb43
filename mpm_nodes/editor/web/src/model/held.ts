/** Things of some size that were asked for: each is read once, and the ones that were looked at longest ago are given up first. */
export class Held<T extends { bytes: number }> {
  private readonly held = new Map<string, T>();
  private readonly coming = new Map<string, Promise<T>>();
  private turn = 0;
  bytes = 0;

  constructor(private readonly most: number) {}

  get(key: string): T | undefined {
    const found = this.held.get(key);
    if (found) { this.held.delete(key); this.held.set(key, found); }
    return found;
  }

  has(key: string): boolean { return this.held.has(key); }

  put(key: string, thing: T): void {
    this.bytes += thing.bytes - (this.held.get(key)?.bytes ?? 0);
    this.held.delete(key);
    this.held.set(key, thing);
    for (const [old, { bytes }] of this.held) {
      if (this.bytes <= this.most || old === key) break;
      this.held.delete(old);
      this.bytes -= bytes;
    }
  }

  /** Return what is held, or what `read` gives; who asks meanwhile gets the same. */
  load(key: string, read: () => Promise<T>, keyOf: (thing: T) => string = () => key): Promise<T> {
    const found = this.get(key);
    if (found) return Promise.resolve(found);
    const begun = this.coming.get(key);
    if (begun) return begun;
    const turn = this.turn;
    const reading = read().then((thing) => { if (turn === this.turn) this.put(keyOf(thing), thing); return thing; }).finally(() => { if (this.coming.get(key) === reading) this.coming.delete(key); });
    this.coming.set(key, reading);
    return reading;
  }

  /** Forget everything, also what is being read. */
  clear(): void {
    this.held.clear();
    this.coming.clear();
    this.bytes = 0;
    this.turn++;
  }
}
