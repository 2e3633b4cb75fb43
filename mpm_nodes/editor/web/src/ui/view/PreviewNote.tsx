import type { PreviewFacts } from "../../view/frame";

/** Says what a packaged preview is, so that nobody takes it for a cook of the graph as it stands. */
export function PreviewNote({ resolution, points, frames, of }: PreviewFacts) {
  return (
    <p className="preview-note" role="note">
      <b>Packaged preview</b><span>: {points.toLocaleString("en")} points at {resolution} of the resolution, {frames} of {of} frames. Your own cook takes its place.</span>
    </p>
  );
}
