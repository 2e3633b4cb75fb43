import { useEffect, useRef } from "react";
import { ACTIONS, ALWAYS } from "../model/keymap";
import { set, useStore } from "../store";

/** The keys of the graph, and the switch between the two maps. */
export function HelpSheet() {
  const { help, keymap } = useStore((s) => s), dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { if (help) dialog.current!.showModal(); else dialog.current!.close(); }, [help]);
  const choose = (now: "blender" | "houdini") => { localStorage.setItem("keys", now); set({ keymap: now }); };
  return (
    <dialog ref={dialog} className="help" aria-label="Keys" onClose={() => set({ help: false })} onKeyDown={(event) => event.stopPropagation()} onClick={(event) => { if (event.target === dialog.current) set({ help: false }); }}>
      <div>
        <header><h2>Keys</h2><fieldset><legend className="sr">As in</legend>
          {(["blender", "houdini"] as const).map((each) => <label key={each} className="check"><input type="radio" name="keymap" checked={keymap === each} onChange={() => choose(each)} /> As in {each === "blender" ? "Blender" : "Houdini"}</label>)}
        </fieldset><button onClick={() => set({ help: false })}>Close</button></header>
        <div className="columns">
          <table><tbody>{ACTIONS.map((each) => <tr key={each.name}><td>{each[keymap].map((key) => <kbd key={key}>{key.replaceAll("+", " ")}</kbd>)}</td><td>{each.label}</td></tr>)}</tbody></table>
          <table><tbody>{ALWAYS.map(([keys, label]) => <tr key={keys}><td><kbd>{keys.replaceAll("+", " ")}</kbd></td><td>{label}</td></tr>)}</tbody></table>
        </div>
      </div>
    </dialog>
  );
}
