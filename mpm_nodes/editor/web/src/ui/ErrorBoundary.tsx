import { Component, type ReactNode } from "react";
import { set } from "../store";

/** Takes what fails while the page is drawn: a sentence, and a way on, in place of an empty page. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { fault: string }> {
  override state = { fault: "" };
  static getDerivedStateFromError(error: unknown) { return { fault: String(error) }; }
  override render() {
    if (!this.state.fault) return this.props.children;
    const leave = () => { set({ document: null, saved: null, path: "", drafts: [] }); this.setState({ fault: "" }); };
    return (
      <div className="waiting" role="alert"><p>The page has a defect: {this.state.fault}. Changes that were not saved are offered when the graph is opened again. Please report it together with the graph file.</p>
        <button onClick={() => location.reload()}>Load the page again</button><button onClick={leave}>Choose another graph</button></div>
    );
  }
}
