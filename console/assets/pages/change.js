// A change of a cluster with its plan: change, upgrade, resume, delete. Nothing is changed until it is applied.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asCommand, call, freshKey, may } from "../core/api.js";
import { useDraft, useRead } from "../core/data.js";
import { count, difference, month, plural, since } from "../core/format.js";
import { go, Link, to } from "../core/router.js";
import { changeOf, PlanState, PlanView, usePlan } from "../parts/plan.js";
import { Button, Card, Copies, Failure, NameDialog, Note, Ready } from "../parts/ui.js";

const SIMPLE = [
  ["nat_gateways", "NAT gateways", ["one", "per_zone"]], ["repave_approval", "Changes that replace nodes", ["automatic", "required"]], ["control_plane_size", "Members of the control plane", [1, 3, 5]],
  ["support", "Support of old minors", ["standard", "extended"]], ["etcd_snapshots", "Snapshots that are kept", "number"], ["api_cidrs", "Who may reach the API", "list"], ["public_access_cidrs", "Who may reach the API", "list"], ["ssh_cidrs", "Who may use SSH", "list"],
];
const groupsKey = (settings) => ("autoscaler_node_groups" in settings ? "autoscaler_node_groups" : "node_groups" in settings ? "node_groups" : null);
const GROUP = [["instance_types", "Instance types", "list"], ["min_size", "At least", "number"], ["max_size", "At most", "number"], ["labels", "Labels", "pairs"]];

const listed = (text) => text.split(/[\s,]+/).filter(Boolean);
const shown = (value, kind) => (value === undefined || value === null ? "" : kind === "list" ? value.join(", ") : kind === "pairs" ? Object.entries(value).map(([key, each]) => `${key}=${each}`).join(", ") : String(value));
const parsed = (text, kind) => (kind === "list" ? listed(text) : kind === "pairs" ? Object.fromEntries(listed(text).map((each) => [each.split("=")[0], each.split("=").slice(1).join("=")])) : kind === "number" || Array.isArray(kind) && typeof kind[0] === "number" ? Number(text) : text);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** What may be changed of a cluster, as a record. */
export function startOf(cluster) {
  const settings = {}, key = groupsKey(cluster.settings);
  for (const [name] of SIMPLE) if (name in cluster.settings) settings[name] = cluster.settings[name];
  if (key) settings[key] = cluster.settings[key];
  return { description: cluster.description, settings };
}

/** Merge patch of what was typed; `form` has texts by path: `description`, `nat_gateways`, `group.workers.min_size`. */
export function patchOf(cluster, form = {}) {
  const patch = {}, settings = {}, key = groupsKey(cluster.settings);
  if (form.description !== undefined && form.description !== cluster.description) patch.description = form.description;
  for (const [name, , kind] of SIMPLE) {
    if (form[name] === undefined || !(name in cluster.settings)) continue;
    const value = parsed(form[name], kind);
    if (!same(value, cluster.settings[name])) settings[name] = value;
  }
  if (key) {
    const groups = cluster.settings[key].map((group) => {
      const changed = { ...group };
      for (const [field, , kind] of GROUP) { const typed = form[`group.${group.name}.${field}`]; if (typed !== undefined) changed[field] = parsed(typed, kind); }
      return changed;
    });
    if (!same(groups, cluster.settings[key])) settings[key] = groups;
  }
  if (Object.keys(settings).length) patch.settings = settings;
  return patch;
}

function Field({ path, label, kind, was, form, put, faults, pointer, whole }) {
  const text = form[path] ?? shown(was, kind), before = shown(was, kind), changed = form[path] !== undefined && form[path] !== before;
  const fault = faults.find((each) => each.pointer === pointer || each.pointer?.startsWith(`${pointer}/`));
  const undo = () => { const { [path]: _, ...rest } = form; put(rest); };
  const common = { class: `input ${changed ? "changed" : ""}`, value: text, "aria-invalid": fault ? "true" : undefined, "aria-describedby": fault ? `fault ${path}` : undefined, onInput: (event) => put({ ...form, [path]: event.target.value }), id: `field ${path}` };
  return html`<div class="field ${whole ? "whole" : ""}"><label for=${`field ${path}`}>${label}</label>
    ${Array.isArray(kind) ? html`<select ...${common}>${kind.map((each) => html`<option key=${each} value=${String(each)} selected=${String(each) === text}>${String(each).replace(/_/g, " ")}</option>`)}</select>` : html`<input ...${common} inputmode=${kind === "number" ? "numeric" : undefined} spellcheck="false" autocomplete="off" />`}
    ${fault && html`<span class="fault" id=${`fault ${path}`} role="alert">${fault.detail}</span>`}
    ${changed && html`<span class="was">was ${before || "nothing"} <button type="button" class="button link" onClick=${undo}>undo</button></span>`}</div>`;
}

export function Form({ cluster, form, put, faults }) {
  const key = groupsKey(cluster.settings), common = { form, put, faults };
  const about = (group) => [group.role, `${group.min_size} to ${group.max_size}`, (group.instance_types || []).slice(0, 3).join(" or ")].filter(Boolean).join(", ");
  const touched = (group) => Object.keys(form).filter((path) => path.startsWith(`group.${group.name}.`)).length;
  return html`<${Field} path="description" label="Description" was=${cluster.description} pointer="/description" ...${common} />
    ${(key ? cluster.settings[key] : []).map((group, n) => html`<details class="group-fields" key=${group.name} open=${touched(group) > 0 || (n === 1 && cluster.settings[key].length < 4) || undefined}><summary><span class="strong">Group ${group.name}</span><span class="quiet">${about(group)}</span>${touched(group) > 0 && html`<span class="chip">${touched(group)} changed</span>`}</summary>
      <div class="inside">${GROUP.filter(([field]) => field in group).map(([field, label, kind]) => html`<${Field} key=${field} path=${`group.${group.name}.${field}`} label=${label} kind=${kind} was=${group[field]} pointer=${`/settings/${key}/${n}/${field}`} whole=${kind !== "number"} ...${common} />`)}</div></details>`)}
    <details class="group-fields" open=${SIMPLE.some(([name]) => form[name] !== undefined) || undefined}><summary><span class="strong">Network, control plane, approval</span></summary><div class="inside">${SIMPLE.filter(([name]) => name in cluster.settings).map(([name, label, kind]) => html`<${Field} key=${name} path=${name} label=${label} kind=${kind} was=${cluster.settings[name]} pointer=${`/settings/${name}`} whole=${kind === "list"} ...${common} />`)}</div></details>`;
}

/** By verb: {title, need, text, ask(id, draft), command(name, draft), danger}. */
export const DAY_TWO = {
  repave: {
    title: "Repave", need: "StartRepave", ask: (id) => ["StartRepave", { id }, {}], command: (name) => asCommand("cluster", "repave", name, "--start"),
    text: "Every machine is replaced by a new one that is as it is to be: members of the control plane first, one by one, then nodes within the budgets of their pools. The cluster serves meanwhile.",
  },
  renew: {
    title: "Renew certificates", need: "RenewCertificates", ask: (id) => ["RenewCertificates", { id }, {}], command: (name) => asCommand("cluster", "certificates", name, "--renew"),
    text: "Members of the control plane are replaced one after the other, and each new one has certificates for another year. Who has a kubeconfig keeps it.",
  },
  restore: {
    title: "Restore", need: "RestoreCluster", danger: true, ask: (id, draft) => ["RestoreCluster", { id }, { body: { snapshot: draft.snapshot || "latest" } }],
    command: (name, draft) => asCommand("cluster", "restore", name, "--snapshot", draft.snapshot || "latest"),
    text: "The control plane begins anew from a snapshot of etcd. What was written after it is forgotten.",
  },
};

function Snapshots({ cluster, draft, put }) {
  const read = useRead("ListSnapshots", { id: cluster.id });
  return html`<${Ready} read=${read} what="snapshots" rows=${1}>${({ items, failure }) => html`${failure && html`<p class="warn break">${failure}</p>`}${items.length ? html`<label class="field"><span>Snapshot</span><select class="input" onChange=${(event) => put({ ...draft, snapshot: event.target.value })}>
    <option value="latest" selected=${!draft.snapshot}>the latest</option>${items.map((each) => html`<option key=${each.id} value=${each.id} selected=${each.id === draft.snapshot}>${since(each.taken_at)} ago, ${count(Math.round(each.size / 2 ** 20))} MiB</option>`)}</select></label>` : html`<p class="second">There is no snapshot yet.</p>`}`}<//>`;
}

export const DayTwo = ({ verb, cluster, draft, put }) => html`<${Card} title=${DAY_TWO[verb].title}><div class="body"><p class="prose">${DAY_TWO[verb].text}</p>${verb === "restore" && html`<${Snapshots} cluster=${cluster} draft=${draft} put=${put} /><p class="prose strong">This cannot be undone.</p>`}</div><//>`;

/** A change that replaces nodes and waits for somebody to approve. */
export function Approval({ cluster, operation }) {
  const waits = cluster.settings.repave_approval === "required" && operation?.status === "running" && operation.kind !== "create_cluster";
  const read = useRead(waits ? "GetRepave" : null, { id: cluster.id }, { news: (event) => event.subject === cluster.id || event.subject === operation?.id });
  const [busy, set] = useState(null), [error, fail] = useState(null);
  if (read.data?.state !== "Pending") return null;
  const decide = async (approved) => {
    set(approved ? "Approving" : "Taking back");
    fail(null);
    try { await call("DecideRepave", { id: cluster.id }, { body: { approved } }); read.again(); } catch (raised) { fail(raised); }
    set(null);
  };
  return html`<${Card} kind="waits" title="This change waits for approval" end=${html`<${Copies} command=${asCommand("cluster", "repave", cluster.name, "--approve")} ask=${["DecideRepave", { id: cluster.id }, { approved: true }]} />`}><div class="body">
    <p class="prose">It replaces ${plural(read.data.nodes.length, "node")}: ${read.data.reasons.map((each) => each.message || each.detail || each.reason).join("; ")}.</p>
    ${may("DecideRepave") ? html`<span class="chips"><${Button} kind="primary" writes busy=${busy} onClick=${() => decide(true)}>Approve<//><${Button} writes busy=${busy} onClick=${() => decide(false)}>Take the change back<//></span>` : html`<p class="second">Somebody with the role operator or admin may approve it.</p>`}${error && html`<${Failure} error=${error} />`}</div><//>`;
}

const later = (field) => Object.fromEntries(Object.entries(DAY_TWO).map(([verb, each]) => [verb, each[field]]));
const TITLES = { change: "Change", upgrade: "Upgrade", resume: "Resume", delete: "Delete", ...later("title") };
const NEED = { change: "ChangeCluster", upgrade: "ChangeCluster", resume: "ResumeCluster", delete: "DeleteCluster", ...later("need") };
const KEYED = new Set(["resume", ...Object.keys(DAY_TWO)]);
const nextMinor = (version) => version.replace(/\d+$/, (minor) => Number(minor) + 1);

/** The text as JSON, or what is wrong with it. */
export function readJson(typed) {
  if (!typed.trim()) return { value: {} };
  try { return { value: JSON.parse(typed) }; } catch (error) { return { fault: `This is no JSON: ${error.message}` }; }
}

/** What a verb asks: [operation, args, {body, headers}], or null while there is nothing to ask. */
function asked(verb, cluster, etag, draft) {
  const id = cluster.id, headers = { "If-Match": etag || `"${cluster.version}"` };
  if (verb in DAY_TWO) return DAY_TWO[verb].ask(id, draft);
  if (verb === "delete") return ["DeleteCluster", { id }, {}];
  if (verb === "upgrade") return ["ChangeCluster", { id }, { body: { kubernetes_version: nextMinor(cluster.kubernetes_version) }, headers }];
  const typed = draft.json !== undefined ? readJson(draft.json) : { value: patchOf(cluster, draft.form) };
  if (typed.fault) return null;
  if (verb === "resume") return ["ResumeCluster", { id }, { body: typed.value }];
  return Object.keys(typed.value).length ? ["ChangeCluster", { id }, { body: typed.value, headers }] : null;
}

const commandOf = (verb, cluster, body, draft) => (verb in DAY_TWO ? DAY_TWO[verb].command(cluster.name, draft) : {
  change: asCommand("cluster", "update", cluster.name, "--with", "patch.json", "--dry-run"), upgrade: asCommand("cluster", "upgrade", cluster.name, "--dry-run"),
  resume: asCommand("cluster", "resume", cluster.name, ...(body && Object.keys(body).length ? ["--with", "patch.json"] : []), "--dry-run"), delete: asCommand("cluster", "delete", cluster.name, "--dry-run"),
}[verb]);

function Conflict({ cluster, mine, onMine, onTheirs }) {
  const now = useRead("GetCluster", { id: cluster.id });
  const rows = Object.entries(mine).flatMap(([key, value]) => (key === "settings" ? Object.entries(value).map(([name, each]) => [`settings.${name}`, cluster.settings[name], now.data?.settings[name], each]) : [[key, cluster[key], now.data?.[key], value]]));
  return html`<${Card} kind="waits" title="Somebody has changed it meanwhile"><div class="scroll" tabindex="0" role="region" aria-label="Three versions"><table aria-label="Three versions"><thead><tr><th scope="col">Field</th><th scope="col">Was</th><th scope="col">Theirs</th><th scope="col">Yours</th></tr></thead><tbody>${rows.map(([name, ...values]) => html`<tr key=${name}><td class="name">${name}</td>${values.map((value, n) => html`<td key=${n}><code class="break">${JSON.stringify(value)}</code></td>`)}</tr>`)}</tbody></table></div>
    <div class="body"><span class="chips"><${Button} onClick=${onTheirs}>Take theirs<//><${Button} kind="primary" onClick=${() => onMine(now)}>Keep mine<//></span></div><//>`;
}

function Left({ verb, cluster, draft, put, fields }) {
  const json = draft.json !== undefined;
  if (verb in DAY_TWO) return html`<${DayTwo} verb=${verb} cluster=${cluster} draft=${draft} put=${put} />`;
  if (verb === "upgrade") return html`<${Card} title="Upgrade"><div class="body"><p class="prose">From Kubernetes ${cluster.kubernetes_version} to ${nextMinor(cluster.kubernetes_version)}. A cluster goes on by one minor at a time, and serves meanwhile.</p><p class="second prose">Members of the control plane are replaced one by one, then nodes within the budgets of their pools.</p></div><//>`;
  if (verb === "delete") return html`<${Card} title="Delete"><div class="body"><p class="prose">All that was made for this cluster goes: its machines, disks, networks and records. What your own pods made through it goes too, where it is known.</p><p class="prose strong">This cannot be undone.</p></div><//>`;
  if (verb === "resume") return html`<${Card} title="Settings" about=${json ? "a merge patch" : "as they are"}><div class="body"><p class="second prose">It goes on from the step that failed. Where that step reads a setting, another one may be given here.</p>
    <label class="field"><span>Other settings, JSON</span><textarea class="input" rows="14" spellcheck="false" value=${draft.json ?? JSON.stringify({ settings: startOf(cluster).settings }, null, 2)} onInput=${(event) => put({ ...draft, json: event.target.value })}></textarea>${json && readJson(draft.json).fault && html`<span class="fault" role="alert">${readJson(draft.json).fault}</span>`}</label>
    ${json && html`<p><${Button} kind="row" onClick=${() => put({ ...draft, json: undefined })}>As they were<//></p>`}</div><//>`;
  return html`<${Card} title="Settings" end=${html`<span class="segments"><button type="button" aria-pressed=${String(!json)} onClick=${() => put({ ...draft, json: undefined })}>Form</button><button type="button" aria-pressed=${String(json)} onClick=${() => put({ ...draft, json: JSON.stringify(patchOf(cluster, draft.form), null, 2) })}>JSON</button></span>`}>
    <div class="body">${json ? html`<label class="field"><span>Merge patch</span><textarea class="input" rows="18" spellcheck="false" value=${draft.json} onInput=${(event) => put({ ...draft, json: event.target.value })}></textarea>${readJson(draft.json).fault && html`<span class="fault" role="alert">${readJson(draft.json).fault}</span>`}</label>` : html`<${Form} cluster=${cluster} form=${draft.form || {}} put=${(form) => put({ ...draft, form })} faults=${fields} />`}</div><//>`;
}

function Body({ verb, cluster, etag, again }) {
  const name = `${TITLES[verb]} of ${cluster.name}`;
  const [draft, put] = useDraft(name, {}), [busy, setBusy] = useState(null), [error, fail] = useState(null), [confirm, ask] = useState(false);
  const key = useRef(freshKey()), question = asked(verb, cluster, etag, draft), state = usePlan(question), plan = state.plan;
  const costs = useRead(verb === "resume" || verb === "delete" ? "GetCosts" : null, { cluster: cluster.id });
  const before = plan && (plan.price_before || (costs.data ? { month: costs.data.month_rate ?? costs.data.known_month_rate, items: [] } : null));
  const after = plan && verb === "delete" ? { ...plan, price: plan.price?.items?.length ? plan.price : { month: 0, items: [], complete: true } } : plan;
  const by = after ? changeOf(after, before) : 0;
  const money = after ? `, ${difference(by)} USD/month` : "";
  const fields = state.error?.fields || [];
  const apply = async (extra = {}) => {
    setBusy("Applying");
    fail(null);
    try {
      const [operation, args, { body, headers }] = question;
      const { data } = await call(operation, args, { body: body && { ...body, ...extra }, headers: { ...headers, ...(KEYED.has(verb) ? { "Idempotency-Key": key.current } : {}) } });
      put(null);
      go(data?.operation_id && verb === "delete" ? to(["operations", data.operation_id]) : to(["clusters", cluster.name]));
    } catch (raised) { fail(raised); setBusy(null); }
  };
  const final = verb === "delete" || DAY_TWO[verb]?.danger;
  const press = () => (final ? ask(true) : apply());
  useEffect(() => {
    const keys = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && after && !state.asking) { event.preventDefault(); press(); }
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) go(to(["clusters", cluster.name]));
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  const why = !question ? "Nothing is changed yet" : fields.length ? `${fields.length} fields to mend` : state.error ? "The plan was refused" : !after || state.asking ? "The plan is made" : after.rejected?.length ? "The plan is rejected" : null;
  const label = fields.length ? `${fields.length} field${fields.length === 1 ? "" : "s"} to mend` : `${verb === "change" ? "Apply" : TITLES[verb]}${money}`;
  return html`${error?.status === 412 && html`<${Conflict} cluster=${cluster} mine=${question?.[2].body || {}} onTheirs=${() => { put(null); fail(null); again(); }} onMine=${() => { fail(null); again(); }} />`}
    <div class="columns wide"><${Left} verb=${verb} cluster=${cluster} draft=${draft} put=${put} fields=${fields} />
      <section class="card sticky" aria-label="Plan" id="plan"><header><h2>Plan</h2>${state.at > 0 && html`<span class="quiet small">against version ${cluster.version}, ${since(new Date(state.at).toISOString())} ago</span>`}<div class="end small">${question && html`<${Copies} command=${commandOf(verb, cluster, question[2].body, draft)} ask=${[question[0], { ...question[1], dry_run: true }, question[2].body]} />`}</div></header>
        <${PlanState} state=${state} idle="Change something, and the plan with its price stands here." />${after && html`<${PlanView} plan=${after} asking=${state.asking} before=${before} />`}
        ${error && error.status !== 412 && html`<div class="body"><${Failure} error=${error} />${error.status === 409 && verb === "change" && html`<p><${Button} onClick=${() => apply({ queue: true })}>Queue it<//></p>`}</div>`}
        <footer class="applied"><${Button} kind=${final ? "danger" : "primary"} writes busy=${busy} why=${why} onClick=${press}>${label}${final ? "…" : ""}<//><${Link} class="button quiet" to=${to(["clusters", cluster.name])}>Cancel<//><span class="end keys chips"><kbd>Ctrl Enter</kbd> apply <kbd>Esc</kbd> keep as draft</span></footer></section></div>
    ${confirm && html`<${NameDialog} name=${cluster.name} verb=${TITLES[verb]} busy=${busy} onClose=${() => ask(false)} onDone=${() => apply()}><p class="break">${plan?.verdict}</p>${error && html`<${Failure} error=${error} />`}<//>`}`;
}

export function Change({ name, verb }) {
  const read = useRead("GetCluster", { id: name });
  const what = verb === "delete" ? "nothing is deleted until you say so" : "nothing is changed until you apply";
  return html`<div class="head"><h1>${TITLES[verb]} ${name}</h1><span class="quiet">${what}</span></div>
    ${may(NEED[verb]) ? html`<${Ready} read=${read} what="the cluster">${(cluster) => html`<${Body} key=${read.etag} verb=${verb} cluster=${cluster} etag=${read.etag} again=${read.again} />`}<//>` : html`<${Note}>You need the role operator for this.<//>`}`;
}
