// Tabs of a cluster: claims, pools, tree, network, events, changes, settings.
import { html, useState } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { usePages, useRead } from "../core/data.js";
import { count, hour, NOTHING, plural, resources } from "../core/format.js";
import { Link, setQuery, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { EventList } from "../parts/latest.js";
import { Boxes, sizes } from "../parts/nodes.js";
import { Pages, Table } from "../parts/table.js";
import { Card, Copies, Empty, LinkButton, Ready } from "../parts/ui.js";
import { ClaimTable } from "./claim-table.js";
import { OperationTable } from "./operations.js";
import { poolState } from "./overview.js";

export function ClaimsTab({ cluster, query }) {
  const pages = usePages("ListNodeClaims", { cluster: cluster.id, order: "desc", phase: query.phase, pool: query.pool }, { news: (event) => event.detail_type === "NodeClaim" && event.cluster_id === cluster.id });
  return html`<${Card} foot=${html`<${Pages} pages=${pages} noun="claims" /><span class="end"><${Copies} command=${asCommand("claim", "list", "--cluster", cluster.name)} ask=${["ListNodeClaims", { cluster: cluster.name, order: "desc" }]} /></span>`}>
    <div class="tools"><${PhaseFilter} value=${query.phase} />${query.pool && html`<button type="button" class="chip on" onClick=${() => setQuery({ pool: null })}>pool ${query.pool} ×</button>`}</div>
    <${Ready} read=${{ ...pages, data: pages.items }} what="claims">${(items) => (items.length ? html`<${ClaimTable} claims=${items} />` : html`<${Empty} title="No claims here"><p>A claim is one machine that becomes a node. Pools make them; a person may too.</p><//>`)}<//><//>`;
}

export const PhaseFilter = ({ value }) => html`<span class="segments" role="group" aria-label="Phase">${[[null, "All"], ["Pending", "Waiting"], ["Available", "Available"], ["Failed", "Failed"]].map(([phase, label]) => html`<button key=${label} type="button" aria-pressed=${String((value || null) === phase)} onClick=${() => setQuery({ phase })}>${label}</button>`)}</span>`;

const POOLS = (cluster) => [
  { key: "name", head: "Pool", kind: "name", cell: (pool) => html`${pool.name} <span class="quiet">${pool.kind}</span>` },
  { key: "nodes", head: "Nodes", cell: (pool) => html`<${Boxes} ...${sizes(pool)} />` },
  { key: "have", head: "Have", num: true, kind: "fact", cell: (pool) => { const size = sizes(pool); return `${size.there} of ${size.least}–${size.most ?? "any"}`; } },
  { key: "hour", head: "USD/hour", num: true, kind: "fact", cell: (pool) => hour(pool.nodes.usd_hour) },
  { key: "state", head: "State", cell: (pool) => html`<${State} ...${poolState(pool)} />` },
  { key: "provider", head: "Provider", from: 900, cell: (pool) => pool.provider || "any" },
  { key: "why", head: "What it says", kind: "why", from: 1200, cell: (pool) => pool.conditions.map((each) => each.message).filter(Boolean)[0] || NOTHING },
  { key: "claims", head: "", unseen: "Claims", cell: (pool) => html`<${Link} to=${to(["clusters", cluster.name, "claims"], { pool: pool.name })}>Claims<//>` },
];

export const PoolsTab = ({ cluster, pools }) => html`<${Card} foot=${html`<span class="end"><${Copies} command=${asCommand("pool", "list", "--cluster", cluster.name)} ask=${["ListPools", { id: cluster.name }]} /></span>`}><${Ready} read=${pools} what="pools">${({ items }) => (items.length
  ? html`<${Table} label="Pools" columns=${POOLS(cluster)} rows=${items} keyOf=${(pool) => pool.name} address=${(pool) => to(["clusters", cluster.name, "disruption"], { pool: pool.name })}
      line=${(pool) => ({ icon: html`<${State} ...${poolState(pool)} bare />`, title: pool.name, word: pool.kind, facts: [pool.provider, resources(pool.limits)], why: pool.conditions[0]?.message, number: `${sizes(pool).there} of ${sizes(pool).most ?? "any"}`, unit: "nodes" })} />`
  : html`<${Empty} title="No pools"><p>A pool makes nodes by itself, as many as pods need or as it is told.</p><pre class="said" tabindex="0">${asCommand("apply", "-f", "pool.yaml")}</pre><//>`)}<//><//>`;

const KIND = { ready: "ok", succeeded: "ok", Available: "ok", made: "ok", Ready: "ok", running: "run", Pending: "run", failed: "failed", Failed: "failed", deleting: "leaves", skipped: "skipped" };

function Branch({ node, level = 1 }) {
  const children = node.children || [], [open, set] = useState(level < 2);
  const groups = new Map();
  for (const child of children) groups.set(child.kind, [...(groups.get(child.kind) || []), child]);
  const folded = [...groups].flatMap(([kind, items]) => (items.length > 5 ? [{ kind: `${kind}s`, name: plural(items.length, kind), status: "", children: items, fold: true }] : items));
  return html`<li role="treeitem" aria-level=${level} aria-expanded=${children.length ? String(open) : undefined} aria-selected="false">
    <div class="node">${children.length ? html`<button type="button" class="button quiet row" aria-label=${`${open ? "Fold" : "Open"} ${node.name}`} onClick=${() => set(!open)}>${open ? "−" : "+"}</button>` : null}
      ${node.status && html`<${State} kind=${KIND[node.status] || "idle"} word=${node.status} bare />`}<span class="quiet">${node.fold ? "" : node.kind}</span><span class="strong break">${node.name}</span>
      ${node.id && node.id !== node.name ? html`<code class="quiet break">${node.id}</code>` : null}${node.type ? html`<span class="second">${node.type}</span>` : null}<span class="small second break">${node.message}</span>
      ${node.usd_hour !== null && node.usd_hour !== undefined ? html`<span class="num">${hour(node.usd_hour)} <span class="small quiet">USD/h</span></span>` : null}</div>
    ${open && children.length > 0 && html`<ul role="group">${folded.map((child, n) => html`<${Branch} key=${child.id || `${child.kind} ${child.name} ${n}`} node=${child} level=${level + 1} />`)}</ul>`}</li>`;
}

export function TreeTab({ cluster }) {
  const read = useRead("GetClusterTree", { id: cluster.id }, { news: (event) => event.subject === cluster.id || event.cluster_id === cluster.id });
  return html`<${Card} title="What was made" end=${html`<${Copies} command=${asCommand("cluster", "tree", cluster.name)} ask=${["GetClusterTree", { id: cluster.name }]} />`}><${Ready} read=${read} what="the tree">${(tree) => html`<div class="tree"><ul role="tree" aria-label=${`Things of ${cluster.name}`}><${Branch} node=${tree} /></ul></div>`}<//><//>`;
}

const shown = (value) => (value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length) ? NOTHING : Array.isArray(value) ? value.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each))).join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value));
export const Facts = ({ rows }) => html`<dl class="body defs">${rows.filter(([, value]) => value !== undefined).map(([name, value]) => html`<dt key=${`t ${name}`}>${name}</dt><dd key=${`d ${name}`}>${shown(value)}</dd>`)}</dl>`;

const IN_NETWORK = new Set(["vpc", "subnet", "internet_gateway", "nat_gateway", "route_table", "address", "load_balancer", "target_group", "listener", "security_group", "network"]);
const found = (node) => [...(IN_NETWORK.has(node.kind) ? [node] : []), ...(node.children || []).flatMap(found)];

export function NetworkTab({ cluster }) {
  const read = useRead("GetClusterTree", { id: cluster.id });
  const { settings } = cluster;
  const reach = settings.api_cidrs || settings.public_access_cidrs;
  return html`<div class="columns half"><${Card} title="Network"><${Facts} rows=${[["API address", cluster.endpoint], ["Who may reach the API", reach?.includes("0.0.0.0/0") ? "everybody" : reach], ["Region", settings.region_name], ["VPC", settings.vpc_id || "its own"], ["Addresses", settings.vpc_cidr],
      ["Zones", settings.zones], ["Subnets of yours", settings.subnets], ["NAT gateways", settings.nat_gateways], ["Who may reach machines by SSH", settings.ssh_cidrs], ["Bastion", settings.bastion]]} /><//>
    <${Card} title="Things of the network"><${Ready} read=${read} what="the tree">${(tree) => { const things = found(tree); return things.length ? html`<ul class="body">${things.map((thing) => html`<li key=${`${thing.kind} ${thing.id || thing.name}`} class="spread"><span>${thing.kind.replace(/_/g, " ")}</span><code class="break">${thing.id || thing.name}</code></li>`)}</ul>` : html`<p class="aside quiet">None is known.</p>`; }}<//><//></div>`;
}

export function EventsTab({ cluster, query }) {
  const pages = usePages("ListEvents", { subject: query.all ? undefined : cluster.id, order: "desc", page_size: 100 }, { news: (event) => event.subject === cluster.id });
  return html`<${Card} title="Events" end=${html`<${Copies} command=${asCommand("cluster", "events", cluster.name)} ask=${["ListEvents", { subject: cluster.id, order: "desc" }]} />`} foot=${html`<${Pages} pages=${pages} noun="events" />`}>
    <${Ready} read=${{ ...pages, data: pages.items }} what="events">${(items) => (items.length ? html`<${EventList} events=${items} />` : html`<p class="aside quiet">Nothing has happened yet.</p>`)}<//><//>`;
}

export function ChangesTab({ cluster }) {
  const pages = usePages("ListOperations", { subject: cluster.id, order: "desc", page_size: 50 }, { news: (event) => event.detail_type === "Operation" });
  return html`<${Card} title="Changes" foot=${html`<${Pages} pages=${pages} noun="operations" /><span class="end"><${Copies} command=${asCommand("operation", "list", "--cluster", cluster.name)} ask=${["ListOperations", { subject: cluster.id, order: "desc" }]} /></span>`}>
    <${Ready} read=${{ ...pages, data: pages.items }} what="operations">${(items) => (items.length ? html`<${OperationTable} operations=${items} withSubject=${false} />` : html`<p class="aside quiet">Nothing was changed yet.</p>`)}<//><//>`;
}

export function SettingsTab({ cluster }) {
  const { settings, ...rest } = cluster;
  return html`<div class="columns half"><${Card} title="Settings" end=${may("ChangeCluster") && html`<${LinkButton} kind="row" to=${to(["clusters", cluster.name, "change"])}>Change…<//>`}><${Facts} rows=${Object.entries(settings)} /><//>
    <${Card} title="Whole record" about=${`version ${count(cluster.version)}`} end=${html`<${Copies} command=${asCommand("cluster", "get", cluster.name, "-o", "json")} ask=${["GetCluster", { id: cluster.name }]} />`}><div class="body"><pre class="said" tabindex="0">${JSON.stringify({ ...rest, settings }, null, 2)}</pre></div><//></div>`;
}
