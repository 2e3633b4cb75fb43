/** What the newest cook is doing: how far it is, what limits its time step, memory, time left. */
import { useStore } from "../store";
import { short } from "../model/curves";

export function CookFacts() {
  const { cook, path } = useStore((s) => s), { facts } = cook;
  if (!cook.running) return null;
  const rows: [string, string][] = [];
  const frame = facts.frame !== undefined && cook.frames ? `${facts.frame} of ${cook.frames[1]}` : "";
  if (frame) rows.push(["Frame", frame]);
  if (facts.substep) rows.push(["Substep", facts.expected ? `${facts.substep} of about ${Math.round(facts.expected)}` : String(facts.substep)]);
  if (facts.dt) rows.push(["Time step", `${short(facts.dt)} s`]);
  if (facts.particles) rows.push(["Particles", facts.particles.toLocaleString("en")]);
  if (facts.limit) rows.push(["Limited by", facts.limit]);
  if (facts.memory) rows.push(["Memory", `${gigabytes(facts.memory)}${facts.needs ? ` of about ${gigabytes(facts.needs)} expected` : ""}`]);
  if (facts.seconds) rows.push(["Last frame", `${short(facts.seconds)} s`]);
  if (facts.left) rows.push(["Time left", duration(facts.left)]);
  return (
    <section className="cook-facts" aria-label="Cook">
      <h2>{cook.path === path ? "Cooking" : `Cooking ${cook.path}`} {cook.revision}</h2>
      <progress max={1} value={cook.share} aria-label="frames cooked, of all" />
      <dl>{rows.map(([name, value]) => <div key={name} className={name === "Limited by" || name === "Memory" ? "wide" : ""}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    </section>
  );
}

const gigabytes = (bytes: number) => (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${Math.round(bytes / 1e6)} MB`);

function duration(seconds: number): string {
  const whole = Math.ceil(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60, rest = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest} h` : minutes ? `${minutes}:${rest} min` : `${whole} s`;
}
