// A history of pods against policies of disruption: money against moves.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asCommand, call } from "../core/api.js";
import { useDraft } from "../core/data.js";
import { count, duration, month, NOTHING, percent, tenth } from "../core/format.js";
import { readDocuments } from "../core/yaml.js";
import { Card, Copies, Failure, Note } from "../parts/ui.js";
import { Editor } from "./plan.js";

const OWN = [["never", { consolidationPolicy: "None" }], ["empty", { consolidationPolicy: "WhenEmpty" }], ["balanced", { consolidationPolicy: "Balanced" }], ["full", { consolidationPolicy: "WhenEmptyOrUnderutilized" }]];

/** Points that nothing beats in both money and moves, by moves. */
export function front(points) {
  return points.filter((a) => !points.some((b) => b !== a && b.usd <= a.usd && b.evictions <= a.evictions && (b.usd < a.usd || b.evictions < a.evictions))).sort((a, b) => a.evictions - b.evictions);
}

/** Points of equal numbers as one, with all their names. */
function merged(points) {
  const all = new Map();
  for (const each of points) {
    const key = `${each.usd.toFixed(4)} ${each.evictions}`, was = all.get(key);
    all.set(key, was ? { ...was, name: `${was.name}, ${each.name}` } : { ...each, first: each });
  }
  return [...all.values()];
}

function Chart({ points }) {
  const node = useRef(null), [width, set] = useState(560);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => set(Math.max(240, entry.contentRect.width)));
    watch.observe(node.current);
    return () => watch.disconnect();
  }, []);
  const height = 300, left = 48, right = 16, top = 28, bottom = 44;
  const most = Math.max(...points.map((each) => each.evictions), 1), low = Math.min(...points.map((each) => each.usd)), high = Math.max(...points.map((each) => each.usd));
  const step = 10 ** Math.floor(Math.log10(Math.max(high - low, high * 0.1, 0.01))) * 1, from = Math.floor(low / step) * step, until = Math.max(from + step, Math.ceil(high / step) * step);
  const x = (moves) => left + (moves / most) * (width - left - right - 12), y = (usd) => top + (1 - (usd - from) / (until - from)) * (height - top - bottom);
  const lines = [...Array(Math.min(12, Math.round((until - from) / step)) + 1)].map((_, n) => from + n * step), best = front(points), digits = step < 1 ? 2 : 0;
  return html`<div ref=${node} class="chart"><svg width=${width} height=${height} role="img" aria-label="Money against moves of each policy; the table has the same numbers">
    <text x="0" y="14">USD</text>${lines.map((usd) => html`<g key=${usd}><line x1=${left} x2=${width - right} y1=${y(usd)} y2=${y(usd)} class="grid" /><text x=${left - 8} y=${y(usd) + 4} text-anchor="end">${usd.toFixed(digits)}</text></g>`)}
    ${[0, 0.5, 1].map((part) => html`<text key=${part} x=${x(most * part)} y=${height - 24} text-anchor="middle">${Math.round(most * part)}</text>`)}<text x=${width - right} y=${height - 6} text-anchor="end">pods that had to move</text>
    <polyline points=${best.map((each) => `${x(each.evictions)},${y(each.usd)}`).join(" ")} class="front" />
    ${merged(points).map((each) => html`<g key=${each.name}><circle cx=${x(each.evictions)} cy=${y(each.usd)} r="5" class=${best.includes(each.first) ? "best" : "beaten"} /><text x=${x(each.evictions) + (x(each.evictions) > width / 2 ? -9 : 9)} y=${y(each.usd) - 8} text-anchor=${x(each.evictions) > width / 2 ? "end" : "start"} class="name">${each.name} ${month(each.usd)}</text></g>`)}</svg></div>`;
}

export function History({ example }) {
  const [text, put] = useDraft("Plan of a history", example), [rows, set] = useState([]), [error, fail] = useState(null), [busy, work] = useState(null);
  let trace = null, fault = null;
  try { [trace] = readDocuments(text); } catch (raised) { fault = raised.message; }
  const { policies, ...body } = trace || {};
  const named = (Array.isArray(policies) ? policies.map(({ name, ...policy }, n) => [name || `policy ${n + 1}`, policy]) : policies ? Object.entries(policies) : OWN).slice(0, 12);
  const run = async () => {
    if (fault || busy || !trace) return;
    work("Replaying");
    fail(null);
    set([]);
    const waiting = [...named];
    const worker = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const [name, policy] = next;
        try {
          const { data } = await call("SimulateDisruption", {}, { body: { ...body, policy } });
          set((was) => [...was, { ...data, name }].sort((a, b) => named.findIndex(([each]) => each === a.name) - named.findIndex(([each]) => each === b.name)));
        } catch (raised) { fail(raised); waiting.length = 0; }
      }
    };
    await Promise.all([worker(), worker()]);
    work(null);
  };
  const dearest = Math.max(...rows.map((row) => row.usd), 0);
  return html`<div class="columns planned"><${Editor} title="Trace" text=${text} put=${put} onRun=${run} busy=${busy} fault=${fault} />
    <div class="stack">${error && html`<${Failure} error=${error} again=${run} />`}${rows.length ? html`<${Card} title=${`Money against moves, ${duration(rows[0].hours * 3_600_000)}`} end="dashed: nothing is better in both"><${Chart} points=${rows} /><//>
      ${rows.some((row) => !row.complete) && html`<${Note}>The trace takes more work than one request has: the numbers count up to an earlier moment.<//>`}
      <${Card} title="Policies" end=${html`<${Copies} command=${asCommand("simulate", "-f", "trace.yaml")} ask=${["SimulateDisruption", {}, { ...body, policy: named[0][1] }]} />`}><div class="scroll" tabindex="0" role="region" aria-label="Policies"><table aria-label="Policies"><thead><tr><th scope="col">Policy</th><th scope="col" class="num">USD</th><th scope="col" class="num">Saved</th><th scope="col" class="num">Mean nodes</th><th scope="col" class="num">Moves</th><th scope="col" class="num">Decisions</th><th scope="col" class="num">Longest wait</th></tr></thead>
        <tbody>${rows.map((row) => html`<tr key=${row.name}><td class="name">${row.name}</td><td class="num fact">${month(row.usd)}</td><td class="num">${dearest && row.usd < dearest ? percent(1 - row.usd / dearest) : NOTHING}</td><td class="num">${tenth(row.mean_nodes)}</td><td class="num fact">${count(row.evictions)}</td><td class="num">${count(row.decision_count)}</td><td class="num">${duration(row.waits.longest_seconds * 1000)}</td></tr>`)}</tbody></table></div><//>`
      : !error && html`<${Card}><p class="body second prose">${busy ? "Each policy is replayed; rows come as they are done." : "A trace is a history of pods. Each policy of disruption is replayed against it: what nodes would have cost, and how many pods would have had to move."}</p><//>`}</div></div>`;
}
