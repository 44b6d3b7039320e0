// Plan: pods, a NodePool, a history of pods. Nothing is made.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { useDraft, useRead } from "../core/data.js";
import { bare, count, duration, hour, HOURS, month, NOTHING, percent, plural, tenth } from "../core/format.js";
import { Link, setQuery, to } from "../core/router.js";
import { readDocuments } from "../core/yaml.js";
import { GapBar } from "../parts/explain.js";
import { PlanView } from "../parts/plan.js";
import { Table } from "../parts/table.js";
import { Bar, Button, Card, Copies, Failure, Figures, Note } from "../parts/ui.js";

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

const MOST_BYTES = 5 * 2 ** 20;
const EXAMPLES = {
  pods: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 6\n  template:\n    spec:\n      containers:\n        - name: web\n          resources:\n            requests: {cpu: 500m, memory: 1Gi}\n",
  pool: "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: general\nspec:\n  template:\n    spec:\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      requirements:\n        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}\n  limits:\n    nodes: \"10\"\n",
  history: "until: 8h\nnodeTypes:\n  - {name: small, resources: {cpu: \"2\", memory: 8Gi}, usdPerHour: 0.1}\n  - {name: large, resources: {cpu: \"8\", memory: 32Gi}, usdPerHour: 0.36}\npools:\n  - name: general\nevents:\n  - at: 0s\n    arrive:\n      - kind: Deployment\n        metadata: {name: web}\n        spec:\n          replicas: 12\n          template:\n            metadata: {labels: {app: web}}\n            spec:\n              containers:\n                - {name: web, resources: {requests: {cpu: 500m, memory: 1Gi}}}\n  - at: 4h\n    depart:\n      - {name: web, count: 8}\n",
};

export function Editor({ title, text, put, onRun, busy, end = null, fault }) {
  const lines = text.split("\n").length, gutter = useRef(null), file = useRef(null), [problem, complain] = useState(null);
  const load = async (list) => {
    const chosen = [...list];
    if (chosen.reduce((sum, each) => sum + each.size, 0) > MOST_BYTES) { complain("These files have more than 5 MiB."); return; }
    complain(null);
    put((await Promise.all(chosen.map((each) => each.text()))).join("\n---\n"));
  };
  const keys = (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); onRun(); } };
  return html`<${Card} title=${title} end=${html`<${Button} kind="quiet row" onClick=${() => file.current.click()}>Open file<//><input ref=${file} type="file" multiple hidden accept=".yaml,.yml,.json" onChange=${(event) => load(event.target.files)} />`}
      foot=${html`${end}<${Button} kind="primary" busy=${busy} why=${text.trim() ? null : "There is nothing to plan"} onClick=${onRun}>Plan<//><kbd class="keys">Ctrl Enter</kbd>`}>
    <div class="editor" onDragOver=${(event) => event.preventDefault()} onDrop=${(event) => { event.preventDefault(); load(event.dataTransfer.files); }}>
      <pre class="gutter" ref=${gutter} aria-hidden="true">${[...Array(Math.min(lines, 20_000))].map((_, n) => n + 1).join("\n")}</pre>
      <textarea aria-label=${title} spellcheck="false" wrap="off" value=${text} onInput=${(event) => put(event.target.value)} onKeyDown=${keys} onScroll=${(event) => { gutter.current.scrollTop = event.target.scrollTop; }}></textarea></div>
    ${(fault || problem) && html`<div class="body"><${Note} kind="bad">${fault || problem}<//></div>`}<//>`;
}

/** Pods by workload: "web ×22". */
function workloads(pods) {
  const sums = new Map();
  for (const pod of pods) { const name = pod.split("/").pop().replace(/-\d+$/, ""); sums.set(name, (sums.get(name) || 0) + 1); }
  return [...sums].map(([name, number]) => (number > 1 ? `${name} ×${number}` : name)).join(", ");
}

function grouped(nodes) {
  const groups = new Map();
  for (const node of nodes) {
    const key = `${node.pool} ${node.type} ${node.zone} ${node.capacity_type}`, group = groups.get(key) || { ...node, key, number: 0, pods: [], total: 0 };
    group.number++;
    group.pods = [...group.pods, ...node.pods];
    group.total = group.total === null || node.usd_hour === null ? null : group.total + node.usd_hour;
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => (b.total ?? 0) - (a.total ?? 0));
}

const columns = (most) => [
  { key: "number", head: "Nodes", num: true, kind: "fact", cell: (each) => count(each.number) },
  { key: "type", head: "Type", kind: "name", cell: (each) => html`${bare(each.type)}<span class="small quiet about">${each.provider}</span>` },
  { key: "capacity", head: "Capacity", kind: "tight", cell: (each) => html`${each.capacity_type}<span class="small quiet about">${each.zone === "*" ? "any zone" : each.zone}</span>` },
  { key: "pods", head: "Pods", kind: "why", cell: (each) => workloads(each.pods) },
  { key: "others", head: "Other types", num: true, from: 1200, cell: (each) => count(each.alternatives) },
  { key: "each", head: "USD/hour each", num: true, kind: "fact", from: 900, cell: (each) => hour(each.usd_hour) },
  { key: "together", head: "Together", num: true, kind: "fact", cell: (each) => html`${hour(each.total)}<${Bar} share=${most && each.total ? each.total / most : 0} />` },
];

function Placements({ answer, ask }) {
  const groups = grouped(answer.nodes), left = answer.left_out.reduce((sum, each) => sum + each.count, 0);
  return html`<${Figures} items=${[["Pods", count(answer.pods)], ["New nodes", count(answer.nodes.length)], ["Price", hour(answer.usd_hour), `USD/hour, ${answer.usd_hour === null ? "not known" : month(answer.usd_hour * HOURS)} a month`], ["Left out", count(left), left ? "have no place" : "every pod has a place"]]} />
    ${!answer.complete && html`<${Note}>The search stopped before its end: the plan is good, and may not be the best that was in reach.<//>`}
    ${answer.warnings.map((each) => html`<${Note} key=${each.detail} kind="plain">${each.detail}<//>`)}
    <${Card} title="Gap to the bound" end=${answer.gap === null ? null : html`<span>at most <b>${percent(answer.gap)}</b> above the best possible, USD/hour</span>`}>${answer.bound === null || answer.usd_hour === null ? html`<p class="body second">${left ? "No bound: pods are left out." : "No bound is known for these pods and pools."}</p>` : html`<${GapBar} usd=${answer.usd_hour} bound=${answer.bound} />`}${answer.opt_in && html`<p class="aside second">${answer.opt_in}</p>`}<//>
    <${Card} title="Nodes that would be made" end=${html`<${Copies} command=${asCommand("plan", "-f", "pods.yaml")} ask=${ask} />`}>${groups.length ? html`<${Table} label="Nodes that would be made" columns=${columns(Math.max(...groups.map((each) => each.total || 0)))} rows=${groups} keyOf=${(each) => each.key} line=${(each) => ({ title: `${each.number} × ${bare(each.type)}`, facts: [each.capacity_type, each.zone === "*" ? "any zone" : each.zone, each.provider], why: workloads(each.pods), number: hour(each.total), unit: "USD/hour" })} />` : html`<p class="aside second">No new node is needed.</p>`}<//>
    ${answer.existing.length > 0 && html`<${Card} title="On nodes that are there"><ul class="body">${answer.existing.map((each) => html`<li key=${each.node} class="spread"><span class="strong break">${each.node}</span><span class="second break">${workloads(each.pods)}</span></li>`)}</ul><//>`}
    ${answer.left_out.length > 0 && html`<${Card} kind="waits" title="Left out" about=${plural(left, "pod")}><ul class="body">${answer.left_out.map((each) => html`<li key=${each.pods.join()}><p class="strong break">${count(each.count)} × ${workloads(each.pods)}</p>${each.reasons.map((reason) => html`<p key=${reason.pool + reason.rule} class="second break">${reason.pool && reason.pool !== "*" ? `Pool ${reason.pool}: ` : ""}${reason.message}</p>`)}</li>`)}</ul><//>`}`;
}

function Pods({ query }) {
  const [text, put] = useDraft("Plan of pods", EXAMPLES.pods), [answer, set] = useState(null), [error, fail] = useState(null), [busy, work] = useState(null), clusters = useRead("ListClusters", { page_size: 200 });
  const read = () => { try { return { manifests: readDocuments(text) }; } catch (raised) { return { fault: raised.message }; } };
  const now = read(), ask = ["PlanPlacements", {}, { manifests: now.manifests || [], ...(query.cluster ? { cluster: query.cluster } : {}) }];
  const run = async () => {
    if (now.fault || busy) return;
    work("Planning");
    fail(null);
    try { set((await call(ask[0], {}, { body: ask[2] })).data); } catch (raised) { fail(raised); }
    work(null);
  };
  useEffect(() => { if (query.cluster !== undefined && answer) run(); }, [query.cluster]);
  return html`<div class="columns planned"><${Editor} title="Manifests" text=${text} put=${put} onRun=${run} busy=${busy} fault=${now.fault} end=${html`<label class="for">For <select class="input" aria-label="For" onChange=${(event) => setQuery({ cluster: event.target.value || null })}><option value="">all providers</option>${(clusters.data?.items || []).map((each) => html`<option key=${each.id} value=${each.name} selected=${each.name === query.cluster}>${each.name}</option>`)}</select></label>`} />
    <div class="stack">${error && html`<${Failure} error=${error} again=${run} />`}${answer ? html`<${Placements} answer=${answer} ask=${ask} />` : !error && html`<${Card}><p class="body second prose">Paste pods, Deployments or Jobs, or drop files. The plan says which nodes they would need, at what price, how far that is from the best possible, and why a pod would be left out.</p><//>`}</div></div>`;
}

function Pool() {
  const [text, put] = useDraft("Plan of a NodePool", EXAMPLES.pool), [answer, set] = useState(null), [error, fail] = useState(null), [busy, work] = useState(null);
  const read = () => { try { return { manifests: readDocuments(text) }; } catch (raised) { return { fault: raised.message }; } }, now = read();
  const run = async () => {
    if (now.fault || busy) return;
    work("Planning");
    fail(null);
    try { set((await call("ApplyManifests", { dry_run: true }, { body: now.manifests })).data); } catch (raised) { fail(raised); }
    work(null);
  };
  if (!may("ApplyManifests")) return html`<${Note}>You need the role operator for this.<//>`;
  return html`<div class="columns planned"><${Editor} title="Manifests" text=${text} put=${put} onRun=${run} busy=${busy} fault=${now.fault} /><div class="stack">${error && html`<${Failure} error=${error} again=${run} />`}
    ${answer ? html`<${Card} title="Plan" end=${html`<${Copies} command=${asCommand("diff", "-f", "pool.yaml")} ask=${["ApplyManifests", { dry_run: true }, now.manifests]} />`}><${PlanView} plan=${answer.plan} /><//>` : !error && html`<${Card}><p class="body second prose">Paste a NodePool or another manifest. The plan says what would be made or changed, field by field, and the price.</p><//>`}</div></div>`;
}

export function Plan({ kind, query }) {
  const View = { pods: Pods, pool: Pool, history: History }[kind];
  return html`<div class="head"><h1>Plan</h1><span class="quiet">nothing is made</span><div class="verbs"><nav class="segments" aria-label="Kind of plan">${[["pods", "Pods", "plan"], ["pool", "NodePool", ["plan", "pool"]], ["history", "History of pods", ["plan", "history"]]].map(([key, label, place]) => html`<${Link} key=${key} to=${to(place)} aria-current=${key === kind ? "page" : undefined}>${label}<//>`)}</nav></div></div><${View} key=${kind} query=${query} example=${EXAMPLES[kind]} />`;
}
