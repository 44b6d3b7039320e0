// Create a cluster or a claim: a form or a document, and the plan beside it. Nothing is made until it is applied.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asCommand, call, freshKey, may } from "../core/api.js";
import { useDraft, useRead } from "../core/data.js";
import { difference, since } from "../core/format.js";
import { go, Link, to } from "../core/router.js";
import { readDocuments } from "../core/yaml.js";
import { monthOf, PlanState, PlanView, usePlan } from "../parts/plan.js";
import { Button, Card, Copies, Empty, Failure, LinkButton, Note, Ready } from "../parts/ui.js";

/** The one document of a text, or what is wrong with it. */
export function readOne(typed) {
  if (!typed.trim()) return { value: null };
  try {
    const all = readDocuments(typed);
    return all.length === 1 && typeof all[0] === "object" ? { value: all[0] } : { fault: "One document is needed here." };
  } catch (error) { return { fault: error.message }; }
}

function PlanCard({ ask, command, draft, verb, done, onDone }) {
  const state = usePlan(ask), plan = state.plan, [busy, set] = useState(null), [error, fail] = useState(null), key = useRef(freshKey());
  const why = !ask ? "The document is not whole yet" : state.error ? "The plan was refused" : !plan || state.asking ? "The plan is made" : plan.rejected?.length ? "The plan is rejected" : null;
  const apply = async () => {
    set("Applying");
    fail(null);
    try {
      const { data } = await call(ask[0], ask[1], { ...ask[2], headers: { ...ask[2].headers, "Idempotency-Key": key.current } });
      onDone(data);
    } catch (raised) { fail(raised); set(null); if (raised.status && raised.status < 500) key.current = freshKey(); }
  };
  useEffect(() => {
    const keys = (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && !why && !busy) { event.preventDefault(); apply(); } };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  return html`<section class="card sticky" aria-label="Plan" id="plan"><header><h2>Plan</h2>${state.at > 0 && html`<span class="quiet small">${since(new Date(state.at).toISOString())} ago</span>`}<div class="end small">${ask && html`<${Copies} command=${command} ask=${[ask[0], { ...ask[1], dry_run: true }, ask[2].body]} />`}</div></header>
    <${PlanState} state=${state} idle="What would be made, and its price, stand here while you type." />${plan && html`<${PlanView} plan=${plan} asking=${state.asking} />`}${error && html`<div class="body"><${Failure} error=${error} /></div>`}
    <footer class="applied"><${Button} kind="primary" writes busy=${busy} why=${why} onClick=${apply}>${verb}${plan ? `, ${difference(monthOf(plan.price))} USD/month` : ""}<//><${Link} class="button quiet" to=${done}>Cancel<//><span class="end keys chips"><kbd>Ctrl Enter</kbd> apply</span></footer></section>`;
}

const Document = ({ draft, put, fault, rows = 24, label }) => html`<label class="field"><span>${label}</span><textarea class="input" rows=${rows} spellcheck="false" value=${draft} onInput=${(event) => put(event.target.value)}></textarea>${fault && html`<span class="fault" role="alert">${fault}</span>`}</label>`;

const worker = { name: "workers", role: "worker", min_size: 1, max_size: 3 }, control = { name: "control-plane", role: "control", min_size: 1, max_size: 1 };
const cudo = { data_center_id: "us-dallas-1", machine_type: "intel-broadwell" };
const SIZES = [["groups.0.min_size", "Members of the control plane"]], WORKERS = [["groups.1.min_size", "Workers at least"], ["groups.1.max_size", "Workers at most"]], COMMON = [["name", "Name"], ["description", "Description"]];
/** By kind of cluster: {label, cloud, key: name of its groups, settings, fields, needs}. */
const KINDS = {
  ec2: {
    label: "own control plane on EC2", cloud: "aws", key: "autoscaler_node_groups", needs: ["key_pair"],
    settings: { region_name: "us-east-1", key_pair: "", autoscaler_node_groups: [{ ...control, instance_types: ["t3.xlarge"] }, { ...worker, instance_types: ["t3.large", "t3.xlarge"] }] },
    fields: [...COMMON, ["settings.region_name", "Region"], ["settings.key_pair", "Key pair of the account"], ["groups.0.instance_types", "Type of the control plane"], ...SIZES, ["groups.1.instance_types", "Types of workers"], ...WORKERS],
  },
  eks: {
    label: "EKS", cloud: "aws", driver: "eks", key: "node_groups", needs: [],
    settings: { region_name: "us-east-1", node_groups: [{ name: "system", role: "system", instance_type: "m6i.large", count: 2, min_size: 1, max_size: 4 }] },
    fields: [...COMMON, ["settings.region_name", "Region"], ["groups.0.instance_type", "Type of nodes"], ["groups.0.count", "Nodes at first"], ["groups.0.min_size", "Nodes at least"], ["groups.0.max_size", "Nodes at most"]],
  },
  cudo: {
    label: "Cudo", cloud: "cudo", key: "autoscaler_node_groups", needs: [],
    settings: { control_plane_size: "sm", autoscaler_node_groups: [{ id: "control-plane", role: "control", min_size: 1, max_size: 1, vcpus: 4, memory_gib: 8, boot_disk_size_gib: 50, ...cudo }, { id: "workers", role: "worker", min_size: 1, max_size: 3, vcpus: 4, memory_gib: 8, boot_disk_size_gib: 50, ...cudo }] },
    fields: [...COMMON, ["settings.control_plane_size", "Size of the control plane: sm, md, lg"], ["groups.all.data_center_id", "Data center"], ["groups.all.machine_type", "Machine type"], ["groups.1.vcpus", "CPU of a worker"], ["groups.1.memory_gib", "GiB of a worker"], ["groups.1.boot_disk_size_gib", "Disk of a worker, GiB"], ...WORKERS],
  },
};
const kindsOf = (account) => Object.entries(KINDS).filter(([, kind]) => kind.cloud === account?.provider);
const start = (account, name) => {
  const [, kind] = kindsOf(account).find(([key]) => key === name) || kindsOf(account)[0] || ["ec2", KINDS.ec2];
  return { name: "", description: "", cloud_account_id: account.id, cluster_type: "k8s", ...(kind.driver ? { driver: kind.driver } : {}), settings: structuredClone(kind.settings) };
};
const kindOf = (body) => (body.driver === "eks" ? "eks" : body.settings.autoscaler_node_groups?.some((group) => "machine_type" in group) ? "cudo" : "ec2");
const whole = (body) => Boolean(body.name) && KINDS[kindOf(body)].needs.every((field) => body.settings[field]);

const groupsOf = (body) => body.settings[KINDS[kindOf(body)].key];
function readField(body, path) {
  const [first, n, field] = path.split(".");
  if (first === "settings") return body.settings[n] ?? "";
  if (first !== "groups") return body[path];
  const value = groupsOf(body)[n === "all" ? 0 : n]?.[field];
  return Array.isArray(value) ? value.join(", ") : String(value ?? "");
}
function writeField(body, path, text) {
  const next = structuredClone(body), [first, n, field] = path.split(".");
  if (first === "settings") next.settings[n] = text;
  else if (first !== "groups") next[path] = text;
  else for (const [at, group] of groupsOf(next).entries()) {
    if (n !== "all" && Number(n) !== at) continue;
    group[field] = field === "instance_types" ? text.split(/[\s,]+/).filter(Boolean) : /type|center/.test(field) ? text : Number(text) || 0;
    if (group.role === "control" && field === "min_size") group.max_size = group.min_size;
  }
  return next;
}

function ClusterForm({ body, put, accounts, faults }) {
  const kind = KINDS[kindOf(body)], account = accounts.find((each) => each.id === body.cloud_account_id), kinds = kindsOf(account);
  const fault = (path) => { const pointer = path.startsWith("groups.") ? `/settings/${kind.key}/${path.split(".").slice(1).join("/").replace("all", "0")}` : `/${path.replace(".", "/")}`; return faults.find((each) => each.pointer?.startsWith(pointer))?.detail; };
  const begin = (next, name) => put({ ...start(next, name), name: body.name, description: body.description });
  return html`<label class="field"><span>Cloud account</span><select class="input" onChange=${(event) => begin(accounts.find((each) => each.id === Number(event.target.value)))}>${accounts.map((each) => html`<option key=${each.id} value=${each.id} selected=${each.id === body.cloud_account_id}>${each.name}, ${each.provider}</option>`)}</select></label>
    ${kinds.length > 1 && html`<label class="field"><span>Control plane</span><select class="input" onChange=${(event) => begin(account, event.target.value)}>${kinds.map(([key, each]) => html`<option key=${key} value=${key} selected=${key === kindOf(body)}>${each.label}</option>`)}</select></label>`}
    ${kind.fields.map(([path, label]) => html`<label class="field" key=${path}><span>${label}</span><input class="input" value=${readField(body, path)} inputmode=${/size|count|gib|cpus/.test(path) && !path.startsWith("settings") ? "numeric" : undefined} aria-invalid=${fault(path) ? "true" : undefined} autocomplete="off" spellcheck="false" onInput=${(event) => put(writeField(body, path, event.target.value))} />${fault(path) && html`<span class="fault">${fault(path)}</span>`}</label>`)}`;
}

export function CreateCluster() {
  const read = useRead("ListCloudAccounts", { page_size: 50 });
  const [draft, put] = useDraft("New cluster", {});
  if (!may("CreateCluster")) return html`<div class="head"><h1>New cluster</h1></div><${Note}>You need the role operator for this.<//>`;
  return html`<div class="head"><h1>New cluster</h1><span class="quiet">nothing is made until you apply</span></div><${Ready} read=${read} what="accounts">${({ items }) => {
    if (!items.length) return html`<${Empty} title="No cloud account yet"><p>A cluster stands in a cloud account of yours. An admin registers one first.</p><${LinkButton} to=${to("accounts")}>To the accounts<//><//>`;
    const account = items.find((each) => each.provider === "aws" && each.verification === "verified") || items[0], body = draft.body || start(account), typed = draft.text !== undefined;
    const one = typed ? readOne(draft.text) : { value: body };
    const ask = one.value && (typed || whole(body)) ? (one.value.kind ? ["ApplyManifests", {}, { body: one.value }] : ["CreateCluster", {}, { body: { ...one.value, description: one.value.description || one.value.name } }]) : null;
    const done = (data) => { put(null); go(to(["clusters", data?.name || data?.results?.[0]?.name || one.value.name || one.value.metadata?.name])); };
    return html`<div class="columns wide"><${Card} title="Settings" end=${html`<span class="segments"><button type="button" aria-pressed=${String(!typed)} onClick=${() => put({ body: one.value?.settings?.autoscaler_node_groups || one.value?.settings?.node_groups ? one.value : body })}>Form</button><button type="button" aria-pressed=${String(typed)} onClick=${() => put({ ...draft, text: JSON.stringify(body, null, 2) })}>JSON or YAML</button></span>`}>
        <div class="body">${typed ? html`<${Document} label="Document" draft=${draft.text} put=${(text) => put({ ...draft, text })} fault=${one.fault} />` : html`<${ClusterForm} body=${body} put=${(next) => put({ body: next })} accounts=${items} faults=${[]} />`}</div><//>
      <${PlanCard} ask=${ask} verb="Create" done=${to("")} onDone=${done} command=${asCommand("cluster", "create", "-f", "cluster.json", "--dry-run")} /></div>`;
  }}<//>`;
}

const parse = (text) => { try { return JSON.parse(text); } catch { return null; } };

export function CreateClaim({ query }) {
  const clusters = useRead("ListClusters", { page_size: 200 }), like = useRead(query.like ? "GetNodeClaim" : null, { id: query.like });
  const [draft, put] = useDraft("New claim", {});
  const first = query.body ? parse(query.body) : like.data ? { cluster: like.data.cluster_id, resources: like.data.resources, requirements: like.data.requirements.map(({ key, operator, values }) => ({ key, operator, values })) } : query.type ? { type: query.type, resources: {} } : null;
  const body = draft.body || { cluster: clusters.data?.items[0]?.name || "", resources: { cpu: "2", memory: "4Gi" }, ...first };
  const typed = draft.text !== undefined, one = typed ? readOne(draft.text) : { value: body };
  const set = (next) => put({ body: next });
  const amount = (name, label) => html`<label class="field"><span>${label}</span><input class="input" value=${body.resources?.[name] ?? ""} autocomplete="off" onInput=${(event) => { const { [name]: _, ...rest } = body.resources || {}; set({ ...body, resources: event.target.value ? { ...rest, [name]: event.target.value } : rest }); }} /></label>`;
  if (!may("CreateNodeClaim")) return html`<div class="head"><h1>New claim</h1></div><${Note}>You need the role operator for this.<//>`;
  return html`<div class="head"><h1>Claim a node</h1><span class="quiet">nothing is made until you apply</span></div>
    <div class="columns wide"><${Card} title="What it asks for" end=${html`<span class="segments"><button type="button" aria-pressed=${String(!typed)} onClick=${() => put({ body: one.value || body })}>Form</button><button type="button" aria-pressed=${String(typed)} onClick=${() => put({ ...draft, text: JSON.stringify(body, null, 2) })}>JSON or YAML</button></span>`}>
        <div class="body">${typed ? html`<${Document} label="Document" draft=${draft.text} put=${(text) => put({ ...draft, text })} fault=${one.fault} rows=${16} />` : html`
          <label class="field"><span>Cluster</span><select class="input" onChange=${(event) => set({ ...body, cluster: event.target.value })}>${(clusters.data?.items || []).map((each) => html`<option key=${each.id} value=${each.name} selected=${each.name === body.cluster || each.id === body.cluster}>${each.name}</option>`)}</select></label>
          <label class="field"><span>Name, or empty for one that is made</span><input class="input" value=${body.name || ""} autocomplete="off" onInput=${(event) => set({ ...body, name: event.target.value || undefined })} /></label>${amount("cpu", "CPU")}${amount("memory", "Memory, such as 16Gi")}${amount("nvidia.com/gpu", "GPUs")}
          ${body.type && html`<p class="chips">Type <span class="chip">${body.type}</span><${Button} kind="row" onClick=${() => set({ ...body, type: undefined })}>Any type<//></p>`}`}</div><//>
      <${PlanCard} ask=${one.value?.cluster ? ["CreateNodeClaim", {}, { body: one.value }] : null} verb="Claim" done=${to("claims")} command=${asCommand("claim", "create", "-f", "claim.json", "--dry-run")} onDone=${(data) => { put(null); go(to(["claims", data.name || data.id])); }} /></div>`;
}
