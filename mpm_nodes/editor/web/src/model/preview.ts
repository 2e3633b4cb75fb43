/** Packaged previews: cooks that come with the program, coarser, and with some of the frames. See mpm_nodes/editor/previews.py. */

/** Whether what stands in place of a revision is a preview. */
export const isPreview = (revision: string): boolean => revision.startsWith("preview of ");

/** What a revision is called where its graph is known. */
export const revisionLabel = (revision: string): string => (isPreview(revision) ? "preview" : revision);

/** Return the last own cook, else the preview, "" where there is neither. */
export const newest = (revisions: string[]): string => revisions.findLast((each) => !isPreview(each)) ?? revisions.at(-1) ?? "";

/** Return the frame that is there for a wanted one: the last one before it, but never the shown one where another was asked for. */
export function frameOf(wanted: number, { first, now, step }: { first: number; now: number; step: number }): number {
  const found = first + Math.floor((wanted - first) / step) * step;
  return found === now && wanted > now ? now + step : found;
}
