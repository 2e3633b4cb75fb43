import { useEffect, useState } from "react";
import { api, type Sample } from "../api";
import * as store from "../store";
import { say, useStore } from "../store";
import { plain, Prose } from "./Prose";

/** Why a JSON file is not offered. */
const WHY: Record<string, string> = { other: "It holds JSON of another kind.", damaged: "It is not whole JSON; a text editor shows where.", large: "It is larger than a graph file may be.", unreadable: "It may not be read, or is a link." };

export function Start() {
  const hello = useStore((s) => s.hello), [typed, setName] = useState<string | null>(null), [filter, setFilter] = useState("");
  if (!hello) return null;
  let n = 1;
  while (hello.graphs.includes(`shot${n > 1 ? n : ""}.json`)) n++;
  const name = typed ?? `shot${n > 1 ? n : ""}.json`;
  const topics = new Map<string, Sample[]>(), sought = (sample: Sample) => `${sample.name} ${sample.doc} ${sample.topic}`.toLowerCase().includes(filter.toLowerCase());
  for (const sample of hello.samples.filter((each) => !each.cooked && sought(each))) topics.set(sample.topic, [...(topics.get(sample.topic) ?? []), sample]);
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
          {hello.graphs.length + hello.others.length ? <ul className="files">{hello.graphs.map((path) => <li key={path}><button onClick={() => void store.open(path)}>{path}</button></li>)}
            {hello.others.map(({ name: other, why }) => <li key={other} className="other" title={WHY[why]}>{other} <small>{why}</small></li>)}</ul> : <p>There are none yet.</p>}
        </section>
      </div>
      {hello.drafts.length > 0 && <section className="lost" aria-labelledby="lost"><h2 id="lost">Never saved</h2><ul className="files">{hello.drafts.map((path) => <li key={path}><button onClick={() => void store.openLost(path)}>{path}</button></li>)}</ul></section>}
      <h2>Shots that open cooked</h2>
      <p className="folder">A coarser cook comes with them: play and turn it at once, change what you like, and cook your own. A shot is copied into a folder of its own here.</p>
      <Shots samples={hello.samples.filter((each) => each.cooked)} />
      <h2>A material to play with</h2>
      <p className="folder">A box of it falls to the ground: the graph is written here under its name, and cooks at once. Pictured on a head, as Blender’s Quick menu drops it.</p>
      <ul className="tiles quick">{hello.quick.map((each) => <li key={each.name}><button onClick={() => void store.openQuick(each.name)}>
        <Picture name={each.name} of="quick" /><b>{each.label}</b><span><Prose text={each.doc} /></span></button></li>)}</ul>
      <div className="samples-head"><h2>More packaged shots</h2><input type="search" placeholder="Search shots" aria-label="Search shots" value={filter} onChange={(event) => setFilter(event.target.value)} /></div>
      {[...topics].map(([topic, samples]) => <section key={topic} aria-label={topic}><h3>{topic}</h3><Shots samples={samples} /></section>)}
    </div>
  );
}

function Shots({ samples }: { samples: Sample[] }) {
  return (
    <ul className="tiles samples">{samples.map(({ name, doc, picture }) => <li key={name}><button onClick={() => void store.openSample(name)} title={plain(doc)}>
      {picture ? <Picture name={name} /> : <Letter name={name} />}<b>{name.replaceAll("_", " ")}</b><span><Prose text={doc} /></span></button></li>)}</ul>
  );
}

const Letter = ({ name }: { name: string }) => <span className="picture"><span aria-hidden>{name.slice(0, 1).toUpperCase()}</span></span>;

function Picture({ name, of }: { name: string; of?: "quick" }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    let made = "";
    api.picture(name, of).then((blob) => setUrl((made = URL.createObjectURL(blob)))).catch(() => {});
    return () => URL.revokeObjectURL(made);
  }, [name, of]);
  return url ? <span className="picture"><img src={url} alt="" /></span> : <Letter name={name} />;
}
