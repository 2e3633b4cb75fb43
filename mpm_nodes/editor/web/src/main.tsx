import "@xyflow/react/dist/style.css";
import "./style.css";
import "./graph.css";
import "./view.css";
import "./plots.css";
import "./keys.css";
import "./start.css";
import { createRoot } from "react-dom/client";
import { begin } from "./store";
import { App } from "./ui/App";
import { ErrorBoundary } from "./ui/ErrorBoundary";

createRoot(document.getElementById("page")!).render(<ErrorBoundary><App /></ErrorBoundary>);
void begin();
