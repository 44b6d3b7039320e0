// What is set up: providers, accounts, sites, profiles, quotas. A row opens its record beside the list.
import { html } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { usePages } from "../core/data.js";
import { count, NOTHING, since } from "../core/format.js";
import { setUpState } from "../core/model.js";
import { Link, setQuery, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Pages, Table } from "../parts/table.js";
import { Bar, Button, Card, Copies, Empty, Note, Ready, Time } from "../parts/ui.js";
import { OFFERED, offeredLine } from "./fleet.js";

const KINDS = { done: "ok", accepted: "ok", refused: "failed", denied: "failed", failed: "failed" };
const state = (each) => ({ kind: KINDS[each.outcome] || (/den|refus|fail|error/i.test(each.outcome) ? "failed" : "ok"), word: each.outcome });
const columns = [
  { key: "time", head: "Time", kind: "tight", cell: (each) => html`<${Time} at=${each.time} />` },
  { key: "actor", head: "Who", kind: "name", cell: (each) => html`<button type="button" class="button link plain" onClick=${() => setQuery({ actor: each.actor })}>${each.actor}</button>` },
  { key: "action", head: "What", kind: "fact", cell: (each) => html`<button type="button" class="button link plain" onClick=${() => setQuery({ action: each.action })}>${each.action}</button>` },
  { key: "subject", head: "Of", kind: "break", cell: (each) => html`<code>${each.subject}</code>` },
  { key: "outcome", head: "Outcome", cell: (each) => html`<${State} ...${state(each)} />` },
  { key: "detail", head: "Detail", kind: "why", from: 900, cell: (each) => each.detail },
  { key: "request", head: "Request", from: 1200, cell: (each) => html`<code class="quiet">${each.request_id}</code>` },
];

export function Audit({ query }) {
  const args = { order: "desc", page_size: 100, actor: query.actor, action: query.action, subject: query.subject, outcome: query.outcome };
  const pages = usePages(may("ListAudit") ? "ListAudit" : null, args, { every: 30_000 });
  if (!may("ListAudit")) return html`<div class="head"><h1>Audit</h1></div><${Note}>You need the role admin for this.<//>`;
  const filters = ["actor", "action", "subject", "outcome"].filter((key) => query[key]);
  return html`<div class="head"><h1>Audit</h1><span class="quiet">who did what, the newest first</span></div>
    <${Card} foot=${html`<${Pages} pages=${pages} noun="records" /><span class="end"><${Copies} command=${asCommand("audit", "list")} ask=${["ListAudit", args]} /></span>`}>
      <div class="tools"><label class="filter"><span class="unseen">Subject, by its id</span><input class="input plain" data-filter type="search" placeholder="Subject, by its id" value=${query.subject || ""} onChange=${(event) => setQuery({ subject: event.target.value.trim() || null })} /></label>${filters.map((key) => html`<button key=${key} type="button" class="chip on" onClick=${() => setQuery({ [key]: null })}>${key} ${query[key]} ×</button>`)}</div>
      <${Ready} read=${{ ...pages, data: pages.items }} what="the audit" rows=${8}>${(items) => (items.length ? html`<${Table} label="Audit" columns=${columns} rows=${items} keyOf=${(each) => each.id} line=${(each) => ({ icon: html`<${State} ...${state(each)} bare />`, title: each.action, facts: [each.actor, each.subject], why: each.detail, number: html`<${Time} at=${each.time} />`, unit: each.outcome })} />`
        : html`<${Empty} title=${filters.length ? "No record is like this." : "Nothing was done yet"}>${filters.length > 0 && html`<${Button} onClick=${() => setQuery({ actor: null, action: null, subject: null, outcome: null })}>Clear filter<//>`}<//>`)}<//><//>`;
}

/** A list page. `kind`: {title, operation, command, columns, keyOf, line, empty: [title, text, command], news, row}. */
function ListPage({ kind, query }) {
  const pages = usePages(kind.operation, kind.args || {}, { news: (event) => event.detail_type === kind.news });
  const chosen = (pages.items || []).find((each) => String(kind.keyOf(each)) === query.row);
  const address = (each) => to(kind.path, { ...query, row: kind.keyOf(each) });
  return html`<div class="head"><h1>${kind.title}</h1>${kind.about && html`<span class="quiet">${kind.about}</span>`}</div>
    <div class=${chosen ? "columns pane" : ""}><${Card} foot=${html`<${Pages} pages=${pages} noun=${kind.title.toLowerCase()} /><span class="end"><${Copies} command=${asCommand(...kind.command)} ask=${[kind.operation, {}]} /></span>`}>
      <${Ready} read=${{ ...pages, data: pages.items }} what=${kind.title.toLowerCase()}>${(items) => (items.length ? html`<${Table} label=${kind.title} columns=${kind.columns} rows=${items} keyOf=${kind.keyOf} line=${kind.line} address=${address} chosen=${(each) => each === chosen} />`
        : html`<${Empty} title=${kind.empty[0]}><p class="prose">${kind.empty[1]}</p>${kind.empty[2] && (may(kind.empty[3]) ? html`<pre class="said" tabindex="0">${kind.empty[2]}</pre>` : html`<p>An admin may do it.</p>`)}<//>`)}<//><//>
    ${chosen && html`<${Card} title=${String(chosen.name)} end=${html`<${Button} kind="quiet row" onClick=${() => setQuery({ row: null })}>Close<//>`}><div class="body"><pre class="said" tabindex="0">${JSON.stringify(chosen, null, 2)}</pre></div><//>`}</div>`;
}

const name = (head = "Name") => ({ key: "name", head, kind: "name", cell: (each) => each.name });
const stateOfLists = (word) => ({ key: "state", head: "State", cell: (each) => html`<${State} ...${setUpState(word(each))} />` });
const age = { key: "age", head: "Age", num: true, from: 900, cell: (each) => html`<span title=${each.created_at}>${since(each.created_at)}</span>` };
const says = { key: "says", head: "What it says", kind: "why", from: 900, cell: (each) => each.message || each.description || each.display_name || NOTHING };

const PROVIDERS = {
  title: "Providers", path: "providers", operation: "ListNodeProviders", args: { offers: true }, command: ["provider", "list"], news: "NodeProvider", keyOf: (each) => each.name,
  columns: [name(), { key: "kind", head: "Kind", cell: (each) => each.kind }, stateOfLists((each) => each.phase), { key: "shared", head: "Whose", cell: (each) => (each.shared ? "the platform's" : each.implicit ? "of a cluster's account" : "yours") }, says, ...OFFERED, { key: "offers", head: "", unseen: "Offers", cell: (each) => html`<${Link} to=${to("offers", { provider: each.name })}>Offers<//>` }, age],
  line: (each) => ({ icon: html`<${State} ...${setUpState(each.phase)} bare />`, title: each.name, facts: [each.kind, each.shared ? "the platform's" : null], why: each.message, ...offeredLine(each) }),
  empty: ["No providers yet", "A provider makes nodes: a cloud, a host of virtual machines, machines of your own. A cluster brings those of its account by itself.", asCommand("provider", "create", "-f", "examples/lab.yaml"), "CreateNodeProvider"],
};
const ACCOUNTS = {
  title: "Accounts", path: "accounts", operation: "ListCloudAccounts", command: ["account", "list"], news: "CloudAccount", keyOf: (each) => each.name,
  columns: [{ key: "id", head: "Id", num: true, cell: (each) => each.id }, name(), { key: "provider", head: "Cloud", cell: (each) => each.provider }, stateOfLists((each) => each.verification), { key: "says", head: "What was proved", kind: "why", from: 900, cell: (each) => each.warnings[0] || each.verification_message || NOTHING }, { key: "verified", head: "Verified", num: true, cell: (each) => (each.verified_at ? html`<${Time} at=${each.verified_at} />` : NOTHING) }, age],
  line: (each) => ({ icon: html`<${State} ...${setUpState(each.verification)} bare />`, title: each.name, word: html`<span class="second">${each.verification}</span>`, facts: [each.provider, `id ${each.id}`], why: each.verification_message }),
  empty: ["No cloud accounts yet", "Clusters stand in an account of yours. Its owner deploys a template with a role, and an admin registers it here.", asCommand("account", "create", "--help"), "RegisterCloudAccount"],
};
const SITES = {
  title: "Sites", path: "sites", operation: "ListSites", command: ["site", "list"], news: "Site", keyOf: (each) => each.name,
  columns: [name(), stateOfLists((each) => each.state), says, { key: "contact", head: "Last contact", num: true, cell: (each) => (each.contact_at ? html`<${Time} at=${each.contact_at} />` : NOTHING) }, { key: "version", head: "Connector", from: 900, cell: (each) => each.connector_version || NOTHING }, age],
  line: (each) => ({ icon: html`<${State} ...${setUpState(each.state)} bare />`, title: each.name, word: html`<span class="second">${setUpState(each.state).word}</span>`, facts: [each.connector_version && `connector ${each.connector_version}`], why: each.description }),
  empty: ["No sites yet", "A site is a place that only a connector there reaches: it fetches what is asked of it, and nothing comes in.", asCommand("site", "create", "--name", "hall"), "CreateSite"],
};
const PROFILES = {
  title: "Profiles", path: "profiles", operation: "ListClusterProfiles", command: ["profile", "list"], news: "ClusterProfile", keyOf: (each) => each.name,
  columns: [name(), { key: "cloud", head: "Cloud", cell: (each) => each.cloud }, { key: "version", head: "Version", cell: (each) => each.version }, { key: "versions", head: "Versions", num: true, cell: (each) => count(each.versions?.length) }, says, age],
  line: (each) => ({ title: each.name, facts: [each.cloud, each.version], why: each.description }),
  empty: ["No cluster profiles yet", "A profile says what stands in clusters, in versions that never change.", asCommand("profile", "create", "-f", "examples/profile.yaml"), "CreateClusterProfile"],
};
const QUOTAS = {
  title: "Quotas", path: "quotas", operation: "ListQuotas", command: ["quota", "list"], news: "Quota", keyOf: (each) => each.name, about: "set by the platform",
  columns: [{ key: "name", head: "Quota", kind: "name", cell: (each) => each.name.replace(/_/g, " ") }, { key: "used", head: "Used", num: true, kind: "fact", cell: (each) => count(each.used) }, { key: "limit", head: "Limit", num: true, cell: (each) => (each.limit === null ? "none" : count(each.limit)) }, { key: "bar", head: "", unseen: "Share that is used", cell: (each) => (each.limit ? html`<${Bar} share=${each.used / each.limit} />` : null) }, { key: "left", head: "Left", num: true, cell: (each) => (each.limit === null ? NOTHING : count(Math.max(0, each.limit - each.used))) }],
  line: (each) => ({ title: each.name.replace(/_/g, " "), facts: [each.limit === null ? "no limit" : `${Math.max(0, each.limit - each.used)} left`], number: `${count(each.used)}${each.limit === null ? "" : ` of ${count(each.limit)}`}`, unit: "used" }),
  empty: ["No quotas", "The platform has set no limit."],
};

export const Providers = ({ query }) => html`<${ListPage} kind=${PROVIDERS} query=${query} />`;
export const Accounts = ({ query }) => html`<${ListPage} kind=${ACCOUNTS} query=${query} />`;
export const Sites = ({ query }) => html`<${ListPage} kind=${SITES} query=${query} />`;
export const Profiles = ({ query }) => html`<${ListPage} kind=${PROFILES} query=${query} />`;
export const Quotas = ({ query }) => html`<${ListPage} kind=${QUOTAS} query=${query} />`;
