import { useEffect, useState } from "react";
import { api, type Sample } from "../api";
import * as store from "../store";
import { say, useStore } from "../store";

export function Start() {
  const hello = useStore((s) => s.hello), [typed, setName] = useState<string | null>(null), [filter, setFilter] = useState("");
  if (!hello) return null;
  let n = 1;
  while (hello.graphs.includes(`shot${n > 1 ? n : ""}.json`)) n++;
  const name = typed ?? `shot${n > 1 ? n : ""}.json`;
  const topics = new Map<string, Sample[]>();
  for (const sample of hello.samples) {
    if (`${sample.name} ${sample.doc} ${sample.topic}`.toLowerCase().includes(filter.toLowerCase())) topics.set(sample.topic, [...(topics.get(sample.topic) ?? []), sample]);
  }
  const create = () => {
    const path = name.trim().endsWith(".json") ? name.trim() : `${name.trim()}.json`;
    if (hello.graphs.includes(path)) say(`${path} is there already: open it, or choose another name.`);
    else void store.create(path);
  };
  return (
    <div className="start">
      <h1>mpm_nodes</h1>
      <p className="folder">Folder {hello.root}</p>
      <div className="begin">
        <section aria-labelledby="new"><h2 id="new">A new graph</h2>
          <form onSubmit={(event) => { event.preventDefault(); create(); }}>
            <input aria-label="Name of the file" value={name} onChange={(event) => setName(event.target.value)} spellCheck={false} />
            <button className="primary">Begin</button>
          </form>
        </section>
        <section aria-labelledby="open"><h2 id="open">Graphs in this folder</h2>
          {hello.graphs.length ? <ul className="files">{hello.graphs.map((path) => <li key={path}><button onClick={() => void store.open(path)}>{path}</button></li>)}</ul> : <p>There are none yet.</p>}
        </section>
      </div>
      {hello.drafts.length > 0 && <section className="lost" aria-labelledby="lost"><h2 id="lost">Never saved</h2><ul className="files">{hello.drafts.map((path) => <li key={path}><button onClick={() => void store.openLost(path)}>{path}</button></li>)}</ul></section>}
      <h2>A material to play with</h2>
      <p className="folder">A box of it falls to the ground: the graph is written here under its name, and cooks at once.</p>
      <ul className="quick">{hello.quick.map((each) => <li key={each.name}><button onClick={() => void store.openQuick(each.name)}>
        <span className="swatch" aria-hidden style={{ background: `rgb(${each.colour.map((part) => Math.round(255 * (part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055))).join(" ")})` }} /><b>{each.label}</b><span>{each.doc}</span></button></li>)}</ul>
      <div className="samples-head"><h2>Packaged shots</h2><input type="search" placeholder="Search shots" aria-label="Search shots" value={filter} onChange={(event) => setFilter(event.target.value)} /></div>
      <p className="folder">A shot is copied into a folder of its own here, with the files that it reads.</p>
      {[...topics].map(([topic, samples]) => (
        <section key={topic} aria-label={topic}><h3>{topic}</h3>
          <ul className="samples">{samples.map((sample) => <li key={sample.name}><button onClick={() => void store.openSample(sample.name)} title={sample.doc}>
            <Picture sample={sample} /><b>{sample.name.replaceAll("_", " ")}</b><span>{sample.doc}</span></button></li>)}</ul>
        </section>
      ))}
    </div>
  );
}

function Picture({ sample: { name, picture } }: { sample: Sample }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    let made = "";
    if (!picture) return;
    api.picture(name).then((blob) => setUrl((made = URL.createObjectURL(blob)))).catch(() => {});
    return () => URL.revokeObjectURL(made);
  }, [name]);
  return <span className="picture">{url ? <img src={url} alt="" /> : <span aria-hidden>{name.slice(0, 1).toUpperCase()}</span>}</span>;
}
