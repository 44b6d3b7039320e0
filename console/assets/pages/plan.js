// Plan: pods, a NodePool, a history of pods. Nothing is made.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { useDraft, useRead } from "../core/data.js";
import { bare, count, hour, HOURS, month, percent, plural } from "../core/format.js";
import { Link, setQuery, to } from "../core/router.js";
import { readDocuments } from "../core/yaml.js";
import { GapBar } from "../parts/explain.js";
import { PlanView } from "../parts/plan.js";
import { Table } from "../parts/table.js";
import { Bar, Button, Card, Copies, Failure, Figures, Note } from "../parts/ui.js";
import { History } from "./history.js";

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
