import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Problem } from "../api";
import { boxesOf, colourOf } from "../model/annotations";
import * as g from "../model/graph";
import { isObject, type Json, oneLine, parse, same } from "../model/json";
import { keyOf } from "../model/keymap";
import { frameOf, inSteps, isKeyed, type Keyed, sampled, withChangedKey, withKey, withoutKey } from "../model/keys";
import type { Knob } from "../model/spec";
import { unitText } from "../model/units";
import * as store from "../store";
import { editGraph, kindLookup, placeOf, problemsOf, say, set, shownGraph, useStore } from "../store";
import { BoxPanel, Swatches } from "./Boxes";
import { BranchOffer } from "./BranchOffer";
import { Icon } from "./Icon";
import { NumberField } from "./NumberField";
import { plain, Prose } from "./Prose";

export function KnobPanel() {
  const s = useStore((each) => each), { graph, own } = shownGraph(s), kinds = s.kinds!, [name] = s.selected.size === 1 ? s.selected : [undefined];
  const box = name === undefined ? undefined : boxesOf(graph).find((each) => each.id === name);
  if (box) return <BoxPanel key={box.id} box={box} own={own} focused={s.focusKnob === "text"} />;
  if (name === undefined || !Object.hasOwn(g.nodesOf(graph), name)) {
    return (
      <aside className="knobs" aria-label="Knobs">
        {s.selected.size > 1 && own && <div className="comment-field">Colour of the selected nodes<Swatches colour="" none="As their category" disabled={false} onChoose={(colour) => editGraph((each) => g.setColour(each, s.selected, colour))} /></div>}
        <h2>{s.selected.size > 1 ? `${s.selected.size} are selected; settings of the graph` : "Settings of the graph"}</h2>
        {kinds.spec.settings.map((knob) => {
          const settings = isObject(s.document!.settings) ? s.document!.settings : {};
          return <KnobRow key={knob.name} knob={{ ...knob, keyable: false }} value={settings[knob.name]} problems={[...s.checked.problems].filter((each) => each.place === `settings.${knob.name}`)}
            focused={s.focusKnob === knob.name} readOnly={false} node="" onChange={(value) => store.edit((document) => g.setSetting(document, knob.name, value), `settings.${knob.name}`)} />;
        })}
      </aside>
    );
  }
  const entry = g.entryOf(graph, name), kind = kindLookup(s)(name), values = g.knobsOf(entry), problems = problemsOf(s, name), depth = s.level.length;
  const known = new Set(kind?.knobs.map((knob) => knob.name)), rest = Object.keys(values).filter((each) => !known.has(each));
  const [plain, advanced] = [false, true].map((folded) => kind?.knobs.filter((knob) => (knob.advanced === true && knob.kind !== "substeps") === folded) ?? []) as [Knob[], Knob[]];
  const about = (knob: string) => problems.filter((each) => placeOf(each)[depth + 1] === knob);
  const wanted = (knob: Knob) => Object.hasOwn(values, knob.name) || s.focusKnob === knob.name || about(knob.name).length > 0;
  const row = (knob: Knob) => (
    <KnobRow key={`${name}.${knob.name}`} knob={knob} value={values[knob.name]} problems={about(knob.name)} focused={s.focusKnob === knob.name} readOnly={!own} node={name}
      onChange={(value, apart) => store.setKnob(name, knob.name, value, apart)} />
  );
  const ports = problems.filter((each) => !known.has(placeOf(each)[depth + 1] ?? "-"));
  return (
    <aside className="knobs" aria-label={`Knobs of ${name}`}>
      <NameField key={name} name={name} readOnly={!own} />
      <p className="kind"><b>{kind?.label ?? `unknown type ${g.typeOf(entry)}`}</b> <code>{g.typeOf(entry)}</code></p>
      <details className="about"><summary><Prose text={kind?.doc.split("\n")[0] ?? "It is kept as it is."} /></summary>{kind && <p><Prose text={kind.doc} /></p>}</details>
      {!own && <p className="note">A preset is not changed here.</p>}
      {ports.map((each, n) => <ProblemLine key={n} problem={each} />)}
      <label className="check"><input type="checkbox" checked={entry.bypass === true} disabled={!own} onChange={(event) => editGraph((each) => g.setField(each, name, "bypass", event.target.checked))} /> Bypass <kbd>{keyOf("bypass", s.keymap)}</kbd></label>
      {plain.map(row)}
      {advanced.length > 0 && <Folded key={`${name}/advanced`} title="Advanced" needed={advanced.filter(wanted).map((knob) => knob.name === s.focusKnob ? `to ${knob.name}` : knob.name).join()}>{advanced.map(row)}</Folded>}
      {rest.map((each) => <div className="knob" key={each}><div className="knob-head"><label>{each}</label><small>not known here</small></div><JsonField value={values[each]} readOnly={!own} label={each} onChange={(value) => store.setKnob(name, each, value)} /></div>)}
      {own && <div className="comment-field">Colour<Swatches colour={colourOf(entry)} none="As its category" disabled={!own} onChoose={(colour) => editGraph((each) => g.setColour(each, [name], colour))} /></div>}
      <label className="comment-field">Comment<textarea rows={2} value={typeof entry.comment === "string" ? entry.comment : ""} readOnly={!own} onChange={(event) => editGraph((graphNow) => g.setField(graphNow, name, "comment", event.target.value), `${name}/comment`)} /></label>
    </aside>
  );
}

/** What sets how it is computed, folded away until something in it is needed: a value of the graph's, or the way to a problem. */
function Folded({ title, needed, children }: { title: string; needed: string; children: ReactNode }) {
  const [open, setOpen] = useState(needed !== ""), [before, setBefore] = useState(needed);
  if (needed !== before) { setBefore(needed); if (needed) setOpen(true); } // before it is drawn, so that what is within can take the focus
  return <details className="folded" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}><summary>{title}</summary>{children}</details>;
}

function NameField({ name, readOnly }: { name: string; readOnly: boolean }) {
  const [text, setText] = useState(name);
  const put = () => {
    const { graph } = shownGraph(store.get()), spec = store.get().kinds!.spec;
    if (text === name) return;
    const fault = !new RegExp(`^(?:${spec.name_pattern})$`, "u").test(text) ? "Letters, digits, _ and - may be in a name, which begins with no digit."
      : Object.hasOwn(g.nodesOf(graph), text) || (store.get().level.length && spec.reserved_names.includes(text)) ? `${text} is taken.` : "";
    if (fault) { say(fault); setText(name); return; }
    editGraph((each) => g.renamed(each, name, text));
    store.select([text]);
  };
  return <input className="name" aria-label="Name of the node" value={text} readOnly={readOnly} spellCheck={false} onChange={(event) => setText(event.target.value)} onBlur={put}
    onKeyDown={(event) => { if (event.key === "Enter") event.currentTarget.blur(); if (event.key === "Escape") { setText(name); } }} />;
}

function ProblemLine({ problem }: { problem: Problem }) {
  return <p className="problem" role="note"><Prose text={`${problem.message}${problem.allowed ? ` (${problem.allowed})` : ""}${problem.cure ? `; ${problem.cure}` : ""}`} /></p>;
}

interface RowProps { knob: Knob; value: Json | undefined; problems: Problem[]; focused: boolean; readOnly: boolean; /** "" of the settings; none of what stands within a knob. */ node?: string; onChange: (value: Json | undefined, apart?: boolean) => void }

export function KnobRow({ knob, value, problems, focused, readOnly, node, onChange }: RowProps) {
  const row = useRef<HTMLDivElement>(null), given = value !== undefined, shown = given ? value : knob.default, keyed = isKeyed(shown);
  useEffect(() => {
    if (!focused) return;
    row.current!.scrollIntoView({ block: "center" });
    row.current!.querySelector<HTMLElement>("input, select, textarea")?.focus();
  }, [focused]);
  const start = store.get().document?.settings, current = useStore((s) => s.frame), frame = current ?? (isObject(start) && typeof start.start === "number" ? start.start : 1);
  const here = keyed ? shown.keys.findIndex((key) => frameOf(key) === frame) : -1;
  const toggle = () => {
    if (keyed && here >= 0) onChange(withoutKey(shown, here), true);
    else { onChange(withKey(shown, frame, keyed ? sampled(shown, frame) : shown, knob), true); if (node) set({ curve: { node, knob: knob.name } }); }
  };
  const changed = given && !same(value, knob.default);
  return (
    <div className={`knob${changed ? " changed" : ""}${problems.length ? " failing" : ""}${readOnly ? " fixed" : ""}`} ref={row} data-knob={knob.name}>
      <div className="knob-head">
        <label htmlFor={`knob-${knob.name}`} title={plain(knob.doc)}>{knob.label}{knob.unit && <span className="unit"> {unitText(knob.unit)}</span>}</label>
        {knob.keyable && !readOnly && shown !== null && (
          <button className="diamond" title={here >= 0 ? `Take away the key at frame ${frame}` : `Key at frame ${frame}`} aria-pressed={here >= 0} onClick={toggle}><Icon d="M8 3l5 5-5 5-5-5z" /><span className="sr">Key of {knob.label} at frame {frame}</span></button>
        )}
        {keyed && node && <button title="Show its curve" onClick={() => set({ curve: { node, knob: knob.name } })}><Icon d="M2 13c5 0 6-10 12-10" /><span className="sr">Curve of {knob.label}</span></button>}
        {given && !readOnly && !knob.required && <button title={`Back to the default, ${oneLine(knob.default)}`} onClick={() => onChange(undefined, true)}><Icon d="M3 3v4h4M3.5 7a5 5 0 1 1 .5 4" /><span className="sr">Default of {knob.label}</span></button>}
      </div>
      {keyed ? <Keys knob={knob} value={shown} readOnly={readOnly} onChange={onChange} /> : <Field knob={knob} value={shown} readOnly={readOnly} node={node} onChange={onChange} />}
      {node !== undefined && <BranchOffer node={node} knob={knob.name} value={shown} usual={knob.default} />}
      <p className="doc"><Prose text={knob.doc.split("\n")[0]} /></p>
      {problems.map((each, n) => <ProblemLine key={n} problem={each} />)}
    </div>
  );
}

interface FieldProps { knob: Knob; value: Json; readOnly: boolean; node?: string; onChange: (value: Json | undefined) => void; id?: string }

function Field({ knob, value, readOnly, node, onChange, id = `knob-${knob.name}` }: FieldProps) {
  if (value === null && knob.optional) return <button id={id} disabled={readOnly} onClick={() => onChange(knob.kind === "vector" ? Array(knob.size).fill(0) : knob.kind === "int" || knob.kind === "float" ? knob.range?.soft_min ?? 0 : knob.kind === "table" || knob.kind === "strings" ? [] : "")}>None; set a value</button>;
  const none = knob.optional && !readOnly ? <button className="none" onClick={() => onChange(null)}>None</button> : null;
  switch (knob.kind) {
    case "bool": return <label className="check"><input id={id} type="checkbox" checked={value === true} disabled={readOnly} onChange={(event) => onChange(event.target.checked)} /> {value === true ? "On" : "Off"}</label>;
    case "int": case "float":
      return typeof value === "number" ? <><NumberField id={id} label={knob.label} value={value} range={knob.range} whole={knob.kind === "int"} slider readOnly={readOnly} onChange={onChange} />{none}</> : <JsonField id={id} value={value} readOnly={readOnly} label={knob.label} onChange={onChange} />;
    case "vector":
      return Array.isArray(value) && value.every((part) => typeof part === "number")
        ? <div className="vector">{value.map((part, n) => <NumberField key={n} id={n ? undefined : id} label={`${knob.label} ${"xyzw"[n] ?? n}`} axis={value.length === 4 ? "wxyz"[n] : "xyz"[n]} value={part as number} range={knob.range} whole={knob.element === "int"} readOnly={readOnly} onChange={(now) => onChange(value.map((each, m) => (m === n ? now : each)))} />)}{none}</div>
        : <JsonField id={id} value={value} readOnly={readOnly} label={knob.label} onChange={onChange} />;
    case "enum":
      return <><select id={id} value={JSON.stringify(value)} disabled={readOnly} onChange={(event) => onChange(JSON.parse(event.target.value))}>
        {!knob.menu.some((each) => same(each.value, value)) && <option value={JSON.stringify(value)}>{String(value)}</option>}
        {knob.menu.map((each) => <option key={String(each.value)} value={JSON.stringify(each.value)}>{each.label}</option>)}
      </select>{none}</>;
    case "str": case "path": case "output_path":
      return typeof value === "string" || value === null ? <><input id={id} value={value ?? ""} readOnly={readOnly} spellCheck={false} placeholder={knob.kind === "path" ? "file, relative to the graph" : ""} onChange={(event) => onChange(event.target.value)} />{none}</> : <JsonField id={id} value={value} readOnly={readOnly} label={knob.label} onChange={onChange} />;
    case "substeps": return <Substeps id={id} value={value} readOnly={readOnly} node={node} knob={knob} onChange={onChange} />;
    default: return <><JsonField id={id} value={value} readOnly={readOnly} label={knob.label} onChange={onChange} />{none}</>;
  }
}

/** Tables, lists of text and what is not understood: as JSON, which is taken when it is whole. */
function JsonField({ value, readOnly, label, onChange, id }: { value: Json; readOnly: boolean; label: string; onChange: (value: Json) => void; id?: string }) {
  const [text, setText] = useState(() => oneLine(value)), [bad, setBad] = useState(false);
  useEffect(() => { setText(oneLine(value)); setBad(false); }, [value]);
  const put = () => { try { const read = parse(text).root.value; setBad(false); if (!same(read, value)) onChange(read); } catch { setBad(true); } };
  return <textarea id={id} className={bad ? "bad" : ""} aria-invalid={bad} aria-label={`${label} as JSON`} rows={Math.min(5, 1 + Math.floor(text.length / 36))} value={text} readOnly={readOnly} spellCheck={false} onChange={(event) => setText(event.target.value)} onBlur={put} />;
}

function Keys({ knob, value, readOnly, onChange }: { knob: Knob; value: Keyed; readOnly: boolean; onChange: (value: Json, apart?: boolean) => void }) {
  const modes = store.get().kinds!.spec.interpolations, put = (keys: Json[][]) => onChange({ ...value, keys: [...keys].sort((a, b) => Number(a[0]) - Number(b[0])) });
  const change = (n: number, part: number, now: Json) => put(value.keys.map((key, m) => (m === n ? key.map((each, p) => (p === part ? now : each)) : key)));
  const shift = (n: number, frame: number) => { const found = withChangedKey(value, n, frame, value.keys[n][1]).value; if (found === value) say(`There is a key at frame ${frame}.`); else onChange(found); };
  return (
    <table className="keys"><thead><tr><th scope="col">Frame</th><th scope="col">Value</th><th scope="col">To the next</th><th /></tr></thead><tbody>
      {value.keys.map((key, n) => (
        <tr key={n}>
          <td><NumberField label={`Frame of key ${n + 1}`} value={Number(key[0])} range={null} whole={false} readOnly={readOnly} onChange={(now) => shift(n, now)} /></td>
          <td><Field knob={knob} value={key[1]} readOnly={readOnly} id={`key-${knob.name}-${n}`} onChange={(now) => change(n, 1, now ?? null)} /></td>
          <td><select aria-label={`Interpolation of key ${n + 1}`} value={String(key[2] ?? "linear")} disabled={readOnly || inSteps(knob)} onChange={(event) => change(n, 2, event.target.value)}>{modes.map((each) => <option key={each}>{each}</option>)}</select></td>
          <td><button disabled={readOnly || value.keys.length < 2} aria-label={`Remove key ${n + 1}`} onClick={() => onChange(withoutKey(value, n), true)}><Icon d="M4 4l8 8M12 4l-8 8" /></button></td>
        </tr>
      ))}
      </tbody><tfoot><tr><td colSpan={4}><button disabled={readOnly} onClick={() => { const last = value.keys.at(-1)!; onChange(withKey(value, frameOf(last) + 10, last[1], knob), true); }}>Add a key</button></td></tr></tfoot>
    </table>
  );
}

function Substeps({ id, value, readOnly, node, knob, onChange }: FieldProps) {
  const kinds = store.get().kinds!, recipe = isObject(value) ? value : { preset: value }, own = isObject(value) && isObject(value.nodes);
  const preset = own ? undefined : kinds.presets.get(String(recipe.preset)), given = isObject(recipe.set) ? recipe.set : {};
  const choose = (name: string) => { if (name) onChange(name); };
  const set = (parameter: string, now: Json | undefined) => {
    const { [parameter]: _, ...rest } = given, next = now === undefined ? rest : { ...given, [parameter]: now };
    const { set: __, ...others } = recipe as { [key: string]: Json };
    onChange(Object.keys(next).length ? { ...others, set: next } : Object.keys(others).length > 1 ? others : others.preset);
  };
  return (
    <div className="substeps">
      <select id={id} value={own ? "" : String(recipe.preset)} disabled={readOnly} onChange={(event) => choose(event.target.value)}>
        {own && <option value="">Its own graph</option>}
        {!own && !preset && <option value={String(recipe.preset)}>{String(recipe.preset)} (unknown)</option>}
        {[...kinds.presets.values()].map((each) => <option key={each.name} value={each.name}>{each.label}</option>)}
      </select>
      {node && <button onClick={() => store.dive([node, knob.name])}>Show its stages</button>}
      {preset && <p className="doc"><Prose text={preset.doc} /></p>}
      {preset && preset.parameters.length > 0 && (
        <Folded key={preset.name} title="Settings" needed={Object.keys(given).join()}>
          {preset.parameters.map((each) => <KnobRow key={each.name} knob={{ ...each, keyable: false }} value={given[each.name]} problems={[]} focused={false} readOnly={readOnly} onChange={(now) => set(each.name, now)} />)}
        </Folded>
      )}
    </div>
  );
}
