// Costs by cluster, pool or type: now, at this rate, this month.
import { html } from "../vendor/preact-htm.js";
import { asCommand } from "../core/api.js";
import { useRead } from "../core/data.js";
import { bare, count, hour, month, monthName, NOTHING } from "../core/format.js";
import { setQuery, to } from "../core/router.js";
import { inOrder, Table } from "../parts/table.js";
import { Bar, Card, Copies, Empty, Figures, Note, Ready } from "../parts/ui.js";

const KEYS = { cluster: (line) => line.cluster || "without a cluster", pool: (line) => (line.pool ? `${line.cluster} / ${line.pool}` : line.kind === "cluster" ? `${line.cluster} / control plane and network` : `${line.cluster || "–"} / single claims`), type: (line) => (line.kind === "nodes" ? bare(line.type) : line.type) };

function summed(lines, by) {
  const sums = new Map();
  for (const line of lines) {
    const name = KEYS[by](line), sum = sums.get(name) || { name, cluster: line.cluster, nodes: 0, hour: 0, month: 0, spent: 0, known: true };
    if (line.hour === null) sum.known = false;
    sum.nodes += line.kind === "nodes" ? line.quantity : 0;
    sum.hour += line.hour || 0;
    sum.month += line.month_rate || 0;
    sum.spent += line.spent || 0;
    sums.set(name, sum);
  }
  return [...sums.values()];
}

const money = (row, field, write) => (row.known || row[field] ? write(row[field]) : "not known");
const columns = (by, most, name) => [
  { key: "name", head: by === "cluster" ? "Cluster" : by === "pool" ? "Pool" : "Type", kind: "name", cell: (row) => row.name, sort: (row) => row.name },
  { key: "nodes", head: "Nodes", num: true, cell: (row) => (row.nodes ? count(row.nodes) : NOTHING), sort: (row) => row.nodes },
  { key: "bar", head: "", unseen: "Share of the price", from: 900, cell: (row) => html`<${Bar} share=${most ? row.month / most : 0} />` },
  { key: "hour", head: "USD/hour", num: true, kind: "fact", cell: (row) => money(row, "hour", hour), sort: (row) => row.hour },
  { key: "month", head: "USD/month", num: true, kind: "fact", cell: (row) => money(row, "month", month), sort: (row) => row.month },
  { key: "spent", head: `${name} so far`, num: true, cell: (row) => money(row, "spent", month), sort: (row) => row.spent },
];

export function Costs({ query }) {
  const by = query.by in KEYS ? query.by : "cluster";
  const read = useRead("GetCosts", { cluster: query.cluster }, { news: (event) => event.detail_type === "NodeClaim", every: 60_000 });
  return html`<div class="head"><h1>Costs</h1><span class="quiet">${read.data ? `${monthName(read.data.month)}, in ${read.data.currency}` : ""}</span></div><${Ready} read=${read} what="costs">${(costs) => {
    const name = monthName(costs.month), rows = summed(costs.lines, by), cols = columns(by, Math.max(0, ...rows.map((row) => row.month)), name.slice(0, 3)), { rows: ordered, sorted } = inOrder(rows, cols, query.sort, "month");
    return html`<${Figures} items=${[["Now", hour(costs.hour ?? costs.known_hour), "USD/hour"], ["At this rate", month(costs.month_rate ?? costs.known_month_rate), "USD/month"], [`${name} so far`, month(costs.spent ?? costs.known_spent), "USD"], [`${name}, forecast`, month(costs.forecast ?? costs.known_forecast), "USD"]]} />
      ${!costs.complete && html`<${Note}>Some prices are not known. The sums are without them.<//>`}
      ${costs.budgets.length > 0 && html`<${Card} title="Budgets of the month"><ul class="body price-lines">${costs.budgets.map((each) => html`<li key=${`${each.scope} ${each.cluster} ${each.pool}`}><span class="row"><span class="strong break">${[each.scope, each.cluster, each.pool].filter(Boolean).join(" ")}${each.reached ? html` <span class="bad">reached</span>` : ""}</span><span>${month(each.spent)} of ${month(each.usd_month)} USD, forecast ${month(each.forecast)}</span></span><${Bar} share=${each.percent / 100} /></li>`)}</ul><//>`}
      <${Card} foot=${html`<span>Not included: ${costs.not_included.join("; ")}.</span><span class="end"><${Copies} command=${asCommand("cost", "--by", by)} ask=${["GetCosts", {}]} /></span>`}><div class="tools"><span class="segments" role="group" aria-label="By">${Object.keys(KEYS).map((key) => html`<button key=${key} type="button" aria-pressed=${String(key === by)} onClick=${() => setQuery({ by: key === "cluster" ? null : key })}>By ${key}</button>`)}</span></div>
        ${ordered.length ? html`<${Table} label="Costs" columns=${cols} rows=${ordered} sorted=${sorted} keyOf=${(row) => row.name} address=${(row) => (row.cluster && by !== "type" ? to(["clusters", row.cluster]) : null)} line=${(row) => ({ title: row.name, facts: [row.nodes ? `${row.nodes} nodes` : null, `${month(row.spent)} so far`], number: money(row, "month", month), unit: "USD/month" })} />` : html`<${Empty} title="Nothing is paid for now"><p>Clusters and nodes have their price here from the moment at which they are made.</p><//>`}<//>`;
  }}<//>`;
}
