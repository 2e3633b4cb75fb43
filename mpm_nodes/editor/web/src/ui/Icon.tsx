/** A drawing of 16 by 16: fonts of other machines lack half of the signs for players. */
export function Icon({ d }: { d: string }) {
  return <svg className="icon" aria-hidden viewBox="0 0 16 16" width="14" height="14"><path d={d} /></svg>;
}
