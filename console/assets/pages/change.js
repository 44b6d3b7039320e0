// A change of a cluster with its plan: change, upgrade, resume, delete. Nothing is changed until it is applied.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asCommand, call, freshKey, may } from "../core/api.js";
import { useDraft, useRead } from "../core/data.js";
import { difference, month, since } from "../core/format.js";
import { go, Link, to } from "../core/router.js";
import { Form, patchOf, startOf } from "../parts/settings-form.js";
import { changeOf, PlanState, PlanView, usePlan } from "../parts/plan.js";
import { Button, Card, Copies, Failure, NameDialog, Note, Ready } from "../parts/ui.js";

const TITLES = { change: "Change", upgrade: "Upgrade", resume: "Resume", delete: "Delete" };
const NEED = { change: "ChangeCluster", upgrade: "ChangeCluster", resume: "ResumeCluster", delete: "DeleteCluster" };
const nextMinor = (version) => version.replace(/\d+$/, (minor) => Number(minor) + 1);

/** The text as JSON, or what is wrong with it. */
export function readJson(typed) {
  if (!typed.trim()) return { value: {} };
  try { return { value: JSON.parse(typed) }; } catch (error) { return { fault: `This is no JSON: ${error.message}` }; }
}

/** What a verb asks: [operation, args, {body, headers}], or null while there is nothing to ask. */
function asked(verb, cluster, etag, draft) {
  const id = cluster.id, headers = { "If-Match": etag || `"${cluster.version}"` };
  if (verb === "delete") return ["DeleteCluster", { id }, {}];
  if (verb === "upgrade") return ["ChangeCluster", { id }, { body: { kubernetes_version: nextMinor(cluster.kubernetes_version) }, headers }];
  const typed = draft.json !== undefined ? readJson(draft.json) : { value: patchOf(cluster, draft.form) };
  if (typed.fault) return null;
  if (verb === "resume") return ["ResumeCluster", { id }, { body: typed.value }];
  return Object.keys(typed.value).length ? ["ChangeCluster", { id }, { body: typed.value, headers }] : null;
}

const commandOf = (verb, cluster, body) => ({
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
      const { data } = await call(operation, args, { body: body && { ...body, ...extra }, headers: { ...headers, ...(verb === "resume" ? { "Idempotency-Key": key.current } : {}) } });
      put(null);
      go(data?.operation_id && verb === "delete" ? to(["operations", data.operation_id]) : to(["clusters", cluster.name]));
    } catch (raised) { fail(raised); setBusy(null); }
  };
  const press = () => (verb === "delete" ? ask(true) : apply());
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
      <section class="card sticky" aria-label="Plan" id="plan"><header><h2>Plan</h2>${state.at > 0 && html`<span class="quiet small">against version ${cluster.version}, ${since(new Date(state.at).toISOString())} ago</span>`}<div class="end small">${question && html`<${Copies} command=${commandOf(verb, cluster, question[2].body)} ask=${[question[0], { ...question[1], dry_run: true }, question[2].body]} />`}</div></header>
        <${PlanState} state=${state} idle="Change something, and the plan with its price stands here." />${after && html`<${PlanView} plan=${after} asking=${state.asking} before=${before} />`}
        ${error && error.status !== 412 && html`<div class="body"><${Failure} error=${error} />${error.status === 409 && verb === "change" && html`<p><${Button} onClick=${() => apply({ queue: true })}>Queue it<//></p>`}</div>`}
        <footer class="applied"><${Button} kind=${verb === "delete" ? "danger" : "primary"} writes busy=${busy} why=${why} onClick=${press}>${label}${verb === "delete" ? "…" : ""}<//><${Link} class="button quiet" to=${to(["clusters", cluster.name])}>Cancel<//><span class="end keys chips"><kbd>Ctrl Enter</kbd> apply <kbd>Esc</kbd> keep as draft</span></footer></section></div>
    ${confirm && html`<${NameDialog} name=${cluster.name} verb="Delete" busy=${busy} onClose=${() => ask(false)} onDone=${() => apply()}><p class="break">${plan?.verdict}</p>${error && html`<${Failure} error=${error} />`}<//>`}`;
}

export function Change({ name, verb }) {
  const read = useRead("GetCluster", { id: name });
  const what = verb === "delete" ? "nothing is deleted until you say so" : "nothing is changed until you apply";
  return html`<div class="head"><h1>${TITLES[verb]} ${name}</h1><span class="quiet">${what}</span></div>
    ${may(NEED[verb]) ? html`<${Ready} read=${read} what="the cluster">${(cluster) => html`<${Body} key=${read.etag} verb=${verb} cluster=${cluster} etag=${read.etag} again=${read.again} />`}<//>` : html`<${Note}>You need the role operator for this.<//>`}`;
}
