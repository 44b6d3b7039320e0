// One cluster: its head, its tabs.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { usePages, useRead } from "../core/data.js";
import { count, hour, month, monthly, monthName, NOTHING, plural, price, resources, since, unit } from "../core/format.js";
import { clusterState, isStuck, operationTitle, regionOf, unmet } from "../core/model.js";
import { go, Link, setQuery, to } from "../core/router.js";
import { Icon, State } from "../parts/icons.js";
import { EventList } from "../parts/latest.js";
import { offer } from "../parts/palette.js";
import { numberOf, Pages, Table } from "../parts/table.js";
import { Bar, Button, Card, Copies, Copy, Dialog, Empty, Failure, LinkButton, Menu, Note, Ready, Tabs } from "../parts/ui.js";
import { ClaimTable } from "./claim.js";
import { Approval } from "./change.js";
import { Disruption } from "./disruption.js";
import { FailedCard, OperationCard, OperationTable } from "./operations.js";

const MOST = 24;

/** What a pool has: {there, least, most, leaving}; `most` is null without a limit. */
export function sizes(pool) {
  const limit = Number(pool.limits?.nodes);
  const least = pool.kind === "static" ? pool.quantity : pool.floor;
  return { there: pool.nodes.available, claims: pool.nodes.claims, leaving: pool.nodes.leaving, least, most: pool.kind === "static" ? pool.quantity : Number.isFinite(limit) ? limit : null };
}

export function Boxes({ there, leaving, least, most }) {
  const room = Math.max(most ?? 0, there, least);
  const label = `${there} nodes, ${leaving} of them leave, at least ${least}${most === null ? "" : `, at most ${most}`}`;
  if (room > MOST) return html`<div role="img" aria-label=${label}><${Bar} share=${there / room} /></div>`;
  return html`<div class="boxes" role="img" aria-label=${label}>${[...Array(room)].map((_, n) => html`<span key=${n} class="box ${n < there - leaving ? "full" : n < there ? "leaves" : ""} ${least > 0 && n === least - 1 ? "least" : ""}"></span>`)}</div>`;
}

export function Conditions({ conditions }) {
  const [all, set] = useState(false);
  const bad = unmet(conditions), good = conditions.filter((each) => each.status === "True");
  const row = (each) => html`<li key=${each.type}><${State} kind=${each.status === "True" ? "ok" : each.status === "False" ? (/fail|error|could|denied|insufficient/i.test(each.reason) ? "failed" : "degraded") : "waits"} word=${each.status} bare /><span class="strong break">${each.type}</span><p class="small second break">${each.message || each.reason}</p></li>`;
  return html`<${Card} title="Conditions" end=${`${good.length} of ${conditions.length} hold`}><ul class="body conditions">${bad.map(row)}${all && good.map(row)}
    ${good.length > 0 && html`<li><span></span><button type="button" class="button link" aria-expanded=${String(all)} onClick=${() => set(!all)}>${all ? "Hide those that hold" : good.length === 1 ? "Show the one that holds" : bad.length ? `Show the ${good.length} that hold` : `All ${good.length} hold: show them`}</button></li>`}</ul><//>`;
}

/** Lines of the costs of one cluster, of equal names together, the dearest first. */
export function linesOf(costs) {
  const sums = new Map();
  for (const line of costs.lines) {
    const name = line.pool ? `Nodes of ${line.pool}, ${line.type.split(".").slice(1).join(".") || line.type}` : line.type.replace(/^./, (letter) => letter.toUpperCase());
    const sum = sums.get(name) || { name, quantity: 0, month: 0, hour: 0, known: true };
    sum.quantity += line.quantity;
    if (line.month_rate === null) sum.known = false;
    sum.month += line.month_rate || 0;
    sum.hour += line.hour || 0;
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => b.month - a.month);
}

function Price({ cluster }) {
  const byHour = !monthly(), [all, showAll] = useState(false);
  const read = useRead("GetCosts", { cluster: cluster.id }, { news: (event) => event.detail_type === "NodeClaim" || event.subject === cluster.id, every: 60_000 });
  return html`<${Card} title="Price" end=${html`<button type="button" class="button link" onClick=${() => setQuery({ unit: byHour ? "month" : null })}>${unit()}</button>`}><${Ready} read=${read} what="costs">${(costs) => {
    const lines = linesOf(costs), most = lines[0]?.month || 0;
    return html`<div class="body"><p class="spread"><span class="figure">${byHour ? hour(costs.hour ?? costs.known_hour) : month(costs.month_rate ?? costs.known_month_rate)}</span><span class="second">${byHour ? `${month(costs.month_rate ?? costs.known_month_rate)} USD/month` : `${hour(costs.hour ?? costs.known_hour)} USD/hour`}</span></p>
      ${!costs.complete && html`<p class="small warn">Without prices that are not known.</p>`}
      <ul class="price-lines">${(all ? lines : lines.slice(0, 8)).map((line) => html`<li key=${line.name}><span class="row"><span class="second break">${line.name}${line.quantity > 1 ? `, ${line.quantity} ×` : ""}</span><span>${line.known || line.month ? (byHour ? hour(line.hour) : month(line.month)) : "not known"}</span></span><${Bar} share=${most ? line.month / most : 0} /></li>`)}</ul>
      ${lines.length > 8 && html`<button type="button" class="button link" onClick=${() => showAll(!all)}>${all ? "Fewer lines" : `${lines.length - 8} more lines`}</button>`}
      <p class="spread quiet"><span>${monthName(costs.month)} so far</span><span>${month(costs.spent ?? costs.known_spent)} USD</span></p></div>`;
  }}<//><//>`;
}

export function poolState(pool) {
  if (pool.deleting) return { kind: "leaves", word: "leaves" };
  if (pool.nodes.leaving) return { kind: "leaves", word: `${pool.nodes.leaving} leave` };
  const bad = unmet(pool.conditions).find((each) => each.status === "False");
  if (bad) return { kind: "waits", word: bad.reason === "Satisfied" ? "waits" : "waits" };
  return pool.nodes.available < pool.nodes.claims ? { kind: "run", word: "comes" } : { kind: "ok", word: "ready" };
}

/** What the pods of nodes ask for: the greatest part as a bar, cpu, memory and what else is asked for in words. */
export function Used({ used }) {
  if (!used) return html`<span class="quiet">${NOTHING}</span>`;
  const parts = Object.entries(used).filter(([name, part]) => name === "cpu" || name === "memory" || (part > 0 && name.includes("/"))), most = Math.max(0, ...parts.map(([, part]) => part));
  return html`<${Bar} share=${most} /><span class="small second">${parts.map(([name, part]) => `${name.split("/").pop()} ${Math.round(part * 100)} %`).join(", ")}</span>`;
}

/** Use of the nodes of a cluster, read again each minute while it is seen. */
export const useUsage = (id) => useRead(id ? "GetUsage" : null, { id }, { every: 60_000 });

function Pools({ cluster, read }) {
  const usage = useUsage(cluster.status === "ready" && read.data?.items.length ? cluster.id : null), usedOf = (pool) => usage.data?.pools.find((each) => each.pool === pool.name)?.used;
  return html`<${Card} title="Pools" end="boxes: at most, line: at least"><${Ready} read=${read} what="pools">${({ items }) => (items.length
    ? html`<ul class="pool-rows">${items.map((pool) => {
      const size = sizes(pool);
      return html`<li key=${pool.name}><${State} ...${poolState(pool)} bare /><span><${Link} class="strong break" to=${to(["clusters", cluster.name, "disruption"], { pool: pool.name })}>${pool.name}<//> <span class="quiet">${pool.kind}</span></span>
        <span class="num">${size.there} of ${size.most ?? "any number"}</span><${Boxes} ...${size} /><span class="num small second">${pool.nodes.usd_hour === null ? "not known" : `${hour(pool.nodes.usd_hour)} USD/h`}</span>${usedOf(pool) && html`<div class="used"><${Used} used=${usedOf(pool)} /></div>`}</li>`;
    })}</ul>`
    : html`<p class="aside quiet">No pool. Nodes come by single claims.</p>`)}<//><//>`;
}

function Claims({ cluster }) {
  const about = (event) => event.detail_type === "NodeClaim" && event.cluster_id === cluster.id;
  const pages = usePages("ListNodeClaims", { cluster: cluster.id, order: "desc" }, { news: about });
  const read = { ...pages, data: pages.items };
  const rank = (claim) => (claim.phase === "Failed" ? 0 : claim.phase === "Pending" ? 1 : claim.deleting ? 2 : 3);
  return html`<${Card} title="Claims" about=${pages.items && (pages.total ? numberOf(pages.total) : pages.more ? "" : String(pages.items.length))} end=${html`<${Link} to=${to(["clusters", cluster.name, "claims"])}>All claims<//>`}>
    <${Ready} read=${read} what="claims">${(items) => (items.length ? html`<${ClaimTable} claims=${[...items].sort((a, b) => rank(a) - rank(b)).slice(0, 10)} />` : html`<p class="aside quiet">No claim: no machine is a node of it beside the control plane.</p>`)}<//><//>`;
}

export function Overview({ cluster, operation, pools }) {
  const events = useRead(cluster.operation_id ? "ListEvents" : null, { subject: cluster.id, order: "desc", page_size: 20, reason: "Progress" }, { news: (event) => event.subject === cluster.id });
  const data = operation.data;
  return html`<div class="columns"><div class="stack">
      ${data?.status === "failed" && data.error && html`<${FailedCard} cluster=${cluster} operation=${data} />`}
      <${Approval} cluster=${cluster} operation=${data} />
      ${data && html`<${OperationCard} cluster=${cluster} operation=${data} lines=${events.data?.items || []} />`}
      ${cluster.queue.length > 0 && html`<${Note} kind="plain">${plural(cluster.queue.length, "change")} queued: ${cluster.queue.map((id) => html`<${Link} key=${id} to=${to(["operations", id])}>${id}<//> `)}<//>`}
      <${Claims} cluster=${cluster} /></div>
    <div class="stack">${cluster.status === "failed" && html`<${Note}>What stands costs money while the cluster is failed.<//>`}<${Conditions} conditions=${cluster.conditions} /><${Price} cluster=${cluster} /><${Pools} cluster=${cluster} read=${pools} /></div></div>`;
}

export function ClaimsTab({ cluster, query }) {
  const usage = useUsage(cluster.id), used = usage.data && new Map(usage.data.nodes.map((node) => [node.claim_id, node.used]));
  const pages = usePages("ListNodeClaims", { cluster: cluster.id, order: "desc", phase: query.phase, pool: query.pool }, { news: (event) => event.detail_type === "NodeClaim" && event.cluster_id === cluster.id });
  return html`<${Card} foot=${html`<${Pages} pages=${pages} noun="claims" /><span class="end"><${Copies} command=${asCommand("claim", "list", "--cluster", cluster.name)} ask=${["ListNodeClaims", { cluster: cluster.name, order: "desc" }]} /></span>`}>
    <div class="tools"><${PhaseFilter} value=${query.phase} />${query.pool && html`<button type="button" class="chip on" onClick=${() => setQuery({ pool: null })}>pool ${query.pool} ×</button>`}</div>
    <${Ready} read=${{ ...pages, data: pages.items }} what="claims">${(items) => (items.length ? html`<${ClaimTable} claims=${items} used=${used} />` : html`<${Empty} title="No claims here"><p>A claim is one machine that becomes a node. Pools make them; a person may too.</p><//>`)}<//><//>`;
}

export const PhaseFilter = ({ value }) => html`<span class="segments" role="group" aria-label="Phase">${[[null, "All"], ["Pending", "Waiting"], ["Available", "Available"], ["Failed", "Failed"]].map(([phase, label]) => html`<button key=${label} type="button" aria-pressed=${String((value || null) === phase)} onClick=${() => setQuery({ phase })}>${label}</button>`)}</span>`;

const POOLS = (cluster, usage) => [
  { key: "name", head: "Pool", kind: "name", cell: (pool) => html`${pool.name} <span class="quiet">${pool.kind}</span>` },
  { key: "nodes", head: "Nodes", cell: (pool) => html`<${Boxes} ...${sizes(pool)} />` },
  { key: "have", head: "Have", num: true, kind: "fact", cell: (pool) => { const size = sizes(pool); return `${size.there} of ${size.least}–${size.most ?? "any"}`; } },
  { key: "used", head: "Pods ask for", cell: (pool) => html`<${Used} used=${usage?.pools.find((each) => each.pool === pool.name)?.used} />` },
  { key: "hour", head: unit(), num: true, kind: "fact", cell: (pool) => price(pool.nodes.usd_hour) },
  { key: "state", head: "State", cell: (pool) => html`<${State} ...${poolState(pool)} />` },
  { key: "provider", head: "Provider", from: 900, cell: (pool) => pool.provider || "any" },
  { key: "why", head: "What it says", kind: "why", from: 1200, cell: (pool) => pool.conditions.map((each) => each.message).filter(Boolean)[0] || NOTHING },
  { key: "claims", head: "", unseen: "Claims", cell: (pool) => html`<${Link} to=${to(["clusters", cluster.name, "claims"], { pool: pool.name })}>Claims<//>` },
];

export function PoolsTab({ cluster, pools }) {
  const usage = useUsage(cluster.id);
  return html`<${Card} foot=${html`<span class="end"><${Copies} command=${asCommand("pool", "list", "--cluster", cluster.name)} ask=${["ListPools", { id: cluster.name }]} /></span>`}><${Ready} read=${pools} what="pools">${({ items }) => (items.length
  ? html`<${Table} label="Pools" columns=${POOLS(cluster, usage.data)} rows=${items} keyOf=${(pool) => pool.name} address=${(pool) => to(["clusters", cluster.name, "disruption"], { pool: pool.name })}
      line=${(pool) => ({ icon: html`<${State} ...${poolState(pool)} bare />`, title: pool.name, word: pool.kind, facts: [pool.provider, resources(pool.limits)], why: pool.conditions[0]?.message, number: `${sizes(pool).there} of ${sizes(pool).most ?? "any"}`, unit: "nodes" })} />`
  : html`<${Empty} title="No pools"><p>A pool makes nodes by itself, as many as pods need or as it is told.</p><pre class="said" tabindex="0">${asCommand("apply", "-f", "pool.yaml")}</pre><//>`)}<//><//>`;
}

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

function Kubeconfig({ cluster, onClose }) {
  const read = useRead("ReadKubeconfig", { id: cluster.id });
  const command = asCommand("cluster", "kubeconfig", cluster.name, "--use");
  return html`<${Dialog} label="Kubeconfig" onClose=${onClose} kind="broad"><div class="inside"><h2>Kubeconfig of ${cluster.name}</h2>
    <p class="second">It holds no secret: kubectl asks the command line for the token of your login.</p><pre class="said" tabindex="0">${command}</pre>
    <${Ready} read=${read} what="the kubeconfig">${(data) => html`<pre class="said" tabindex="0">${data.kubeconfig}</pre>
      <div class="buttons"><${Copy} text=${command} label="Copy command" kind="" icon="command" /><${Copy} text=${data.kubeconfig} label="Copy file" kind="primary" /></div>`}<//></div><//>`;
}

/** Verbs of a cluster by role and state: [label, action, {why, danger}], the first is the primary one. */
function verbsOf(cluster, operation, show) {
  const page = (part) => () => go(to(["clusters", cluster.name, part]));
  const running = operation?.status === "running", failed = operation?.status === "failed" || operation?.status === "cancelled";
  const busy = running ? `${operationTitle(operation)} runs; stop it first, or queue the change` : null;
  const ready = cluster.status === "ready" ? null : "The cluster is not ready";
  return [
    failed && may("ResumeCluster") && ["Resume…", page("resume"), {}],
    may("ReadKubeconfig") && ["Kubeconfig", () => show("kubeconfig"), { why: cluster.endpoint ? null : "There is no API server yet" }],
    may("ChangeCluster") && ["Change…", page("change"), { why: ready || busy, key: "e" }],
    may("ChangeCluster") && ["Upgrade…", page("upgrade"), { why: ready || busy }],
    may("StartRepave") && ["Repave…", page("repave"), { why: ready || busy, rare: true }],
    may("RenewCertificates") && cluster.driver !== "eks" && ["Renew certificates…", page("renew"), { why: ready || busy, rare: true }],
    may("RestoreCluster") && cluster.driver !== "eks" && ["Restore…", page("restore"), { why: ready || busy, rare: true, danger: true }],
    may("SetDisruption") && ["Pause disruption…", page("disruption"), { rare: true }],
    may("DeleteCluster") && ["Delete…", page("delete"), { danger: true, why: cluster.status === "deleting" ? "It is being deleted" : null }],
  ].filter(Boolean);
}

function Head({ cluster, operation, state, onShow }) {
  const verbs = verbsOf(cluster, operation, onShow);
  const failed = verbs[0]?.[0] === "Resume…", seen = failed ? [verbs[0], verbs[verbs.length - 1]] : verbs.filter(([label, , more]) => label !== "Delete…" && !more.rare);
  const rest = verbs.filter((verb) => !seen.includes(verb));
  useEffect(() => { offer("cluster", verbs.filter(([, , more]) => !more.why).map(([label, action, more]) => [label, action, more.key])); return () => offer("cluster", null); });
  const upgrade = operation?.status === "running" && (operation.changes || []).find((each) => /kubernetes_version/.test(each.pointer));
  const region = regionOf(cluster);
  return html`<div class="head"><h1>${cluster.name}</h1><${State} ...${state} />
      <div class="verbs">${seen.map(([label, action, more], n) => html`<${Button} key=${label} kind="${failed && n === 0 ? "primary" : ""} ${more.danger ? "danger" : ""} ${n > 0 ? "from-700" : failed || label === "Kubeconfig" ? "" : "from-700"}"
          icon=${label === "Kubeconfig" ? "command" : null} why=${more.why} onClick=${action} data-change=${label === "Change…" ? "" : undefined}>${label}<//>`)}
        ${rest.length > 0 && html`<span class="from-700"><${Menu} label="More verbs" items=${rest}><${Icon} name="more" /><//></span>`}
        ${verbs.length > 1 && html`<span class="to-700"><${Menu} label="All verbs" items=${verbs}><${Icon} name="more" /><//></span>`}</div></div>
    <div class="facts">${cluster.description && html`<span class="second break">${cluster.description}</span>`}
      <span>Kubernetes <b>${upgrade ? `${upgrade.before} → ${upgrade.after}` : cluster.kubernetes_version}</b></span>
      <span>on <b>${cluster.provider}${cluster.driver === "eks" ? " eks" : ""}, account ${cluster.cloud_account_id}${region ? `, ${region}` : ""}</b></span>
      ${cluster.endpoint && html`<span class="chips">API <b class="break">${cluster.endpoint.replace(/^https:\/\//, "")}</b> <${Copy} text=${cluster.endpoint} label="Copy" /></span>`}
      <span>Age <b>${since(cluster.created_at)}</b></span>
      ${Object.entries(cluster.tags || {}).map(([key, value]) => html`<span key=${key} class="chip">${key}=${value}</span>`)}</div>`;
}

const TABS = { overview: Overview, claims: ClaimsTab, pools: PoolsTab, disruption: Disruption, tree: TreeTab, network: NetworkTab, events: EventsTab, changes: ChangesTab, settings: SettingsTab };

export function Cluster({ name, tab = "overview", query }) {
  const about = (event) => event.subject === read.data?.id || event.cluster_id === read.data?.id;
  const read = useRead("GetCluster", { id: name }, { news: (event) => about(event) || event.detail_type === "Operation" });
  const cluster = read.data;
  const operation = useRead(cluster?.operation_id ? "GetOperation" : null, { id: cluster?.operation_id }, { news: (event) => event.subject === cluster?.operation_id || about(event) });
  const pools = useRead(cluster ? "ListPools" : null, { id: cluster?.id, page_size: 200 }, { news: about });
  const waiting = useRead(cluster ? "ListNodeClaims" : null, { cluster: cluster?.id, phase: "Pending", order: "desc", page_size: 200 }, { news: (event) => event.detail_type === "NodeClaim", full: true });
  const [shown, show] = useState(null);
  useEffect(() => { if (cluster && name === cluster.id) go(to(["clusters", cluster.name, ...(tab === "overview" ? [] : [tab])], query), { replace: true }); }, [cluster?.id]);
  if (read.error && !cluster) {
    if (read.error.status !== 404) return html`<div class="head"><h1>${name}</h1></div><${Failure} error=${read.error} again=${read.again} />`;
    return html`<${Empty} page title=${`No cluster ${name}`}><p>It was never made, or it is deleted. Its operations may still be there.</p><span class="chips"><${LinkButton} to=${to("")}>To the fleet<//><${LinkButton} to=${to("operations")}>To the operations<//></span><//>`;
  }
  if (!cluster) return html`<div class="head"><h1>${name}</h1></div><${Ready} read=${read} what="the cluster">${() => null}<//>`;
  const stuck = (waiting.data?.items || []).filter(isStuck), running = operation.data?.status === "running" && cluster.status === "ready";
  const state = running ? { kind: "run", word: operation.data.kind === "upgrade_cluster" ? "upgrading" : "changing" } : clusterState(cluster, stuck);
  const View = TABS[tab];
  const items = [["overview", "Overview"], ["claims", "Claims"], ["pools", "Pools", pools.data?.items.length], ["disruption", "Disruption"], ["tree", "Tree"], ["network", "Network"], ["events", "Events"], ["changes", "Changes"], ["settings", "Settings"]];
  return html`<${Head} cluster=${cluster} operation=${operation.data} state=${state} onShow=${show} />
    <${Tabs} items=${items} current=${tab} address=${(key) => to(["clusters", cluster.name, ...(key === "overview" ? [] : [key])])} />
    ${read.error && html`<${Failure} error=${read.error} again=${read.again} />`}
    <${View} cluster=${cluster} operation=${operation} pools=${pools} waiting=${waiting} query=${query} />
    ${shown === "kubeconfig" && html`<${Kubeconfig} cluster=${cluster} onClose=${() => show(null)} />`}`;
}
