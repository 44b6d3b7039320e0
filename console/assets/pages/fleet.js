// Fleet: clusters, who needs a look first, the price beside each.
import { html, useEffect, useMemo } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { usePages, useRead } from "../core/data.js";
import { count, hour, month, monthName, NOTHING, plural, since } from "../core/format.js";
import { clusterState, clusterWhy, isStuck, rankOf, regionOf, setUpState, unmet } from "../core/model.js";
import { setQuery, to } from "../core/router.js";
import { Icon, State } from "../parts/icons.js";
import { Latest } from "../parts/latest.js";
import { inOrder, numberOf, Pages, Table } from "../parts/table.js";
import { Bar, Button, Card, Copies, Copy, Empty, Figures, LinkButton, Ready } from "../parts/ui.js";
import { Facts } from "./cluster.js";

const EXAMPLE = asCommand("cluster", "create", "-f", "examples/aws-cluster.json", "--dry-run");

export function FirstSteps() {
  const read = useRead("ListCloudAccounts", { page_size: 50 });
  return html`<div class="prose"><h2 class="large">No clusters yet</h2><p class="second">A cluster stands in your own cloud account. You see its plan and price before anything is made, and deleting it removes all that was made.</p></div>
    <${Ready} read=${read} what="accounts">${({ items }) => {
      const good = items.find((each) => each.verification === "verified");
      if (!may("CreateCluster")) return html`<p>${good ? `Account ${good.name} is connected. ` : ""}Somebody with the role operator or admin may create the first one.</p>`;
      return html`<ol class="steps"><li class=${good ? "" : "now"}><span class=${good ? "ok" : "run"}>${good ? html`<${Icon} name="ok" size=${14} />` : "1"}</span><div><p class="strong">Connect a cloud account</p>
          <p class="small second">${good ? `${good.name}, ${good.provider}, verified ${since(good.verified_at)} ago.` : "An admin registers it, and the API proves that its role can be assumed."}</p>
          ${!good && html`<p><${LinkButton} to=${to("accounts")}>To the accounts<//></p>`}</div></li>
        <li class=${good ? "now" : ""}><span class="run">2</span><div><div class="head"><p class="strong">See what a cluster would cost</p>${good && html`<span class="verbs"><${LinkButton} kind="primary" to=${to("new")}>Create cluster…<//></span>`}</div>
          <p class="small second">The form shows the plan and its price while you type; nothing is made.</p><pre class="said" tabindex="0">${EXAMPLE}</pre><p><${Copy} text=${EXAMPLE} label="Copy" /></p></div></li>
        <li><span class="quiet">3</span><div><p class="strong second">Apply the plan and watch it come up</p></div></li></ol>`;
    }}<//>`;
}

const leastOf = (each) => (!each.offers ? NOTHING : each.offers.usd_hour === null ? "not known" : hour(each.offers.usd_hour));
/** Numbers of what a provider offers, for lists of providers: columns, and what a phone's row has of them. */
export const OFFERED = [
  { key: "types", head: "Types", num: true, kind: "fact", cell: (each) => (each.offers ? count(each.offers.types) : NOTHING) },
  { key: "from", head: "From USD/h", num: true, kind: "fact tight", cell: leastOf },
];
export const offeredLine = (each) => (each.offers ? { number: leastOf(each), unit: `USD/h, ${plural(each.offers.types, "type")}` } : {});
const PROVIDERS = [
  { key: "name", head: "Name", kind: "name", cell: (each) => each.name },
  { key: "kind", head: "Kind", cell: (each) => each.kind },
  { key: "state", head: "State", cell: (each) => html`<${State} ...${setUpState(each.phase)} />` },
  ...OFFERED,
];
const providerLine = (each) => ({ icon: html`<${State} ...${setUpState(each.phase)} bare />`, title: each.name, facts: [each.kind, each.message], ...offeredLine(each) });

export function ProvidersCard() {
  const read = useRead("ListNodeProviders", { page_size: 50, offers: true }, { news: (event) => event.detail_type === "NodeProvider" });
  return html`<${Card} title="Providers" end=${read.data?.items.length}><${Ready} read=${read} what="providers">${(data) => (data.items.length
    ? html`<${Table} label="Providers" columns=${PROVIDERS} rows=${data.items} keyOf=${(each) => each.id} line=${providerLine} address=${(each) => to("offers", { provider: each.name })} />`
    : html`<p class="aside quiet">No provider yet. A cluster brings those of its account.</p>`)}<//><//>`;
}

const about = (kind) => (event) => event.detail_type === kind;

/** Whether a row has all words of the filter: free ones, `state:`, `tag:k=v`, `provider:`, `version:`. */
export function fits(row, typed) {
  return typed.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const [, key, value] = /^(state|tag|provider|version):(.*)$/.exec(word) || [];
    if (key === "state") return row.state.word.startsWith(value) || row.state.word.includes(value);
    if (key === "provider") return `${row.cluster.provider} ${row.cluster.driver}`.includes(value);
    if (key === "version") return row.cluster.kubernetes_version.startsWith(value);
    if (key === "tag") return row.tags.includes(value);
    return row.text.includes(word);
  });
}

function rowsOf(clusters, failed, waiting) {
  const seen = new Set();
  return [...failed, ...clusters].filter((cluster) => !seen.has(cluster.id) && seen.add(cluster.id)).map((cluster) => {
    const own = waiting.filter((claim) => claim.cluster_id === cluster.id), stuck = own.filter(isStuck);
    const state = clusterState(cluster, stuck), tags = Object.entries(cluster.tags || {}).map(([key, value]) => `${key}=${value}`.toLowerCase()).join(" ");
    const sum = cluster.costs && { ...cluster.costs, month: cluster.costs.month_rate, known: cluster.costs.complete }, region = regionOf(cluster);
    return {
      cluster, state, tags, sum, region, why: clusterWhy(cluster, stuck), nodes: sum?.nodes || 0, wanted: (sum?.nodes || 0) + stuck.length,
      text: `${cluster.name} ${cluster.description} ${tags} ${cluster.kubernetes_version} ${region}`.toLowerCase(),
    };
  });
}

const money = (sum, field, write) => (sum === null ? NOTHING : sum.known || sum[field] ? write(sum[field]) : "not known");

function columnsOf(most, costs) {
  return [
    { key: "state", head: "State", cell: ({ state }) => html`<${State} ...${state} />`, sort: (row) => -rankOf(row.state) },
    { key: "name", head: "Cluster", kind: "name", cell: ({ cluster }) => html`${cluster.name}<span class="to-1200 small quiet">${cluster.kubernetes_version} · ${cluster.provider} ${regionOf(cluster)}</span>`, sort: (row) => row.cluster.name },
    { key: "version", head: "Version", from: 1200, cell: ({ cluster }) => cluster.kubernetes_version, sort: (row) => row.cluster.kubernetes_version },
    { key: "where", head: "Where", kind: "tight", from: 1200, cell: ({ cluster, region }) => html`<span class="fact">${cluster.provider}${cluster.driver === "eks" ? " eks" : ""}</span> ${region}` },
    { key: "nodes", head: "Nodes", num: true, cell: (row) => (row.sum ? `${count(row.nodes)}/${count(row.wanted)}` : NOTHING), sort: (row) => row.nodes },
    { key: "why", head: "What happens, and why", kind: "why", cell: (row) => (row.why ? row.why : html`<span class="quiet">${row.cluster.description}</span>`) },
    { key: "bar", head: "", unseen: "Share of the price", from: 1200, cell: (row) => html`<${Bar} share=${row.sum && most ? row.sum.hour / most : 0} />` },
    { key: "hour", head: "USD/hour", num: true, kind: "fact", from: 900, cell: (row) => money(row.sum, "hour", hour), sort: (row) => row.sum?.hour || 0 },
    { key: "month", head: "USD/month", num: true, kind: "fact", cell: (row) => money(row.sum, "month", month), sort: (row) => row.sum?.month || 0 },
    { key: "spent", head: `${monthName(costs?.month).slice(0, 3)} so far`, num: true, from: 1200, cell: (row) => money(row.sum, "spent", month), sort: (row) => row.sum?.spent || 0 },
  ];
}

const line = (row) => ({
  icon: html`<${State} ...${row.state} bare />`, title: row.cluster.name, word: html`<span class=${{ failed: "bad", waits: "warn", degraded: "warn", leaves: "warn", run: "run", ok: "ok" }[row.state.kind]}>${row.state.word}</span>`,
  facts: [row.cluster.kubernetes_version, row.cluster.provider, row.region, row.sum && `${row.nodes}/${row.wanted} nodes`], why: row.why, number: money(row.sum, "month", month), unit: "USD/month",
});

const rowVerbs = ({ cluster }) => [
  ["Open", to(["clusters", cluster.name])], may("ChangeCluster") && cluster.status === "ready" && ["Change…", to(["clusters", cluster.name, "change"])], may("ChangeCluster") && cluster.status === "ready" && ["Upgrade…", to(["clusters", cluster.name, "upgrade"])],
  may("ResumeCluster") && cluster.status === "failed" && ["Resume…", to(["clusters", cluster.name, "resume"])], may("DeleteCluster") && ["Delete…", to(["clusters", cluster.name, "delete"])],
].filter(Boolean);

/** Details of a cluster beside the list. */
const Peek = ({ row: { cluster, state, why, sum, nodes, wanted, region } }) => html`<h2 class="break">${cluster.name}</h2><p><${State} ...${state} /></p>${why && html`<p class="break">${why}</p>`}<p class="second break">${cluster.description}</p>
  <${Facts} rows=${[["Kubernetes", cluster.kubernetes_version], ["On", `${cluster.provider} ${region}`], ["Nodes", `${count(nodes)} of ${count(wanted)}`], ["USD/hour", money(sum, "hour", hour)], ["USD/month", money(sum, "month", month)], ["Does not hold", unmet(cluster.conditions).map((each) => `${each.type}: ${each.message || each.reason}`)]]} />`;

function Strip({ costs, rows, waiting }) {
  const there = rows.reduce((sum, row) => sum + row.nodes, 0), stuck = waiting.filter(isStuck).length;
  const gap = costs && !costs.complete ? "without prices that are not known" : null;
  return html`<${Figures} items=${[
    ["Now", costs ? hour(costs.hour ?? costs.known_hour) : NOTHING, "USD/hour", gap], ["At this rate", costs ? month(costs.month_rate ?? costs.known_month_rate) : NOTHING, "USD/month", gap],
    [`${monthName(costs?.month)} so far`, costs ? month(costs.spent ?? costs.known_spent) : NOTHING, gap ? `USD, ${gap}` : "USD"],
    ["Nodes", count(there), `of ${count(there + stuck)}${stuck ? `, ${plural(stuck, "claim waits", "claims wait")}` : ""}`],
  ]} />`;
}

export function Fleet({ query, count: setCount }) {
  const typed = query.q || "", apiTag = /(?:^|\s)tag:([\w./-]+=[^\s]+)/.exec(typed)?.[1];
  const pages = usePages("ListClusters", { tag: apiTag, costs: true }, { news: about("Cluster"), every: 60_000 });
  const bad = useRead(pages.more ? "ListClusters" : null, { status: "failed", costs: true, page_size: 200 }, { news: about("Cluster"), full: true });
  const costs = useRead("GetCosts", { max_age: 60 }, { every: 60_000 });
  const pending = useRead("ListNodeClaims", { phase: "Pending", order: "desc", page_size: 200 }, { news: about("NodeClaim"), full: true });
  const waiting = pending.data?.items || [];
  const rows = useMemo(() => rowsOf(pages.items || [], bad.data?.items || [], waiting), [pages.items, bad.data, pending.data]);
  const [chosenSort] = [query.sort || "state"];
  const look = rows.filter((row) => rankOf(row.state) < 2).length;
  useEffect(() => { if (pages.items) setCount("", rows.length); }, [pages.items, rows.length]);
  const shown = rows.filter((row) => fits(row, typed));
  const columns = columnsOf(Math.max(0, ...rows.map((row) => row.sum?.hour || 0)), costs.data);
  const { rows: ordered, sorted } = inOrder(shown, columns, chosenSort, "state");
  if (pages.items && !pages.items.length && !typed && pages.from === 1) return html`<div class="head"><h1>Fleet</h1></div><${FirstSteps} />`;
  return html`<div class="head"><h1>Fleet</h1><span class="quiet">${pages.items ? `${plural(rows.length, "cluster")}${pages.total ? ` of ${numberOf(pages.total)}` : ""}${look ? `, ${count(look)} ${look === 1 ? "needs" : "need"} a look` : ""}` : ""}</span>
      ${may("CreateCluster") && html`<div class="verbs"><${LinkButton} kind="primary" icon="plus" to=${to("new")}>Create cluster<//></div>`}</div>
    <${Strip} costs=${costs.data} rows=${rows} waiting=${waiting} />
    <${Card} foot=${html`<${Pages} pages=${pages} shown=${shown.length} noun="clusters" /><span class="end"><span class="keys chips"><kbd>j</kbd><kbd>k</kbd> move <kbd>Enter</kbd> open</span><${Copies} command=${asCommand("cluster", "list")} ask=${["ListClusters", { costs: true, page_size: 200 }]} /></span>`}>
      <div class="tools"><label class="filter"><span class="unseen">Filter clusters</span><${Icon} name="search" size=${14} /><input class="input" data-filter type="search" placeholder="Filter by name, tag, state, provider" value=${typed} onInput=${(event) => setQuery({ q: event.target.value || null })} /><kbd>/</kbd></label>
        ${chosenSort !== "state" && html`<${Button} kind="row" onClick=${() => setQuery({ sort: null })}>Needs a look first<//>`}</div>
      <${Ready} read=${{ ...pages, data: pages.items }} rows=${6} what="clusters">${() => (ordered.length
        ? html`<${Table} label="Clusters" columns=${columns} rows=${ordered} sorted=${sorted} keyOf=${(row) => row.cluster.id} line=${line} address=${(row) => to(["clusters", row.cluster.name])} verbs=${rowVerbs} peek=${(row) => html`<${Peek} row=${row} />`} />`
        : html`<${Empty} title=${`No cluster has ${typed}.`}><p>${pages.more ? "Only the clusters of this page were looked at." : ""}</p><${Button} onClick=${() => setQuery({ q: null })}>Clear filter<//><//>`)}<//><//>
    <div class="columns half"><${Latest} /><${ProvidersCard} /></div>`;
}
