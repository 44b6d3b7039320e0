// Overview of a cluster: what happens, conditions, price, pools, claims.
import { html, useState } from "../vendor/preact-htm.js";
import { useRead } from "../core/data.js";
import { hour, month, monthName, plural } from "../core/format.js";
import { unmet } from "../core/model.js";
import { Link, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Boxes, sizes } from "../parts/nodes.js";
import { Bar, Card, Note, Ready } from "../parts/ui.js";
import { ClaimTable } from "./claim-table.js";
import { FailedCard, OperationCard } from "./operation-card.js";

export function Conditions({ conditions }) {
  const [all, set] = useState(false);
  const bad = unmet(conditions), good = conditions.filter((each) => each.status === "True");
  const row = (each) => html`<li key=${each.type}><${State} kind=${each.status === "True" ? "ok" : each.status === "False" ? (/fail|error|could|denied|insufficient/i.test(each.reason) ? "failed" : "degraded") : "waits"} word=${each.status} bare /><span class="strong break">${each.type}</span><p class="small second break">${each.message || each.reason}</p></li>`;
  return html`<${Card} title="Conditions" end=${`${good.length} of ${conditions.length} hold`}><ul class="body conditions">${bad.map(row)}${all && good.map(row)}
    ${good.length > 0 && html`<li><span></span><button type="button" class="button link" aria-expanded=${String(all)} onClick=${() => set(!all)}>${all ? "Hide those that hold" : bad.length ? `Show the ${good.length} that hold` : `All ${good.length} hold: show them`}</button></li>`}</ul><//>`;
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
  const [byHour, set] = useState(false), [all, showAll] = useState(false);
  const read = useRead("GetCosts", { cluster: cluster.id }, { news: (event) => event.detail_type === "NodeClaim" || event.subject === cluster.id, every: 60_000 });
  return html`<${Card} title="Price" end=${html`<button type="button" class="button link" onClick=${() => set(!byHour)}>${byHour ? "USD/hour" : "USD/month"}</button>`}><${Ready} read=${read} what="costs">${(costs) => {
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

function Pools({ cluster, read }) {
  return html`<${Card} title="Pools" end="boxes: at most, line: at least"><${Ready} read=${read} what="pools">${({ items }) => (items.length
    ? html`<ul class="pool-rows">${items.map((pool) => {
      const size = sizes(pool);
      return html`<li key=${pool.name}><${State} ...${poolState(pool)} bare /><span><${Link} class="strong break" to=${to(["clusters", cluster.name, "disruption"], { pool: pool.name })}>${pool.name}<//> <span class="quiet">${pool.kind}</span></span>
        <span class="num">${size.there} of ${size.most ?? "any number"}</span><${Boxes} ...${size} /><span class="num small second">${pool.nodes.usd_hour === null ? "not known" : `${hour(pool.nodes.usd_hour)} USD/h`}</span></li>`;
    })}</ul>`
    : html`<p class="aside quiet">No pool. Nodes come by single claims.</p>`)}<//><//>`;
}

function Claims({ cluster }) {
  const about = (event) => event.detail_type === "NodeClaim" && event.cluster_id === cluster.id;
  const read = useRead("ListNodeClaims", { cluster: cluster.id, page_size: 200, order: "desc" }, { news: about });
  const rank = (claim) => (claim.phase === "Failed" ? 0 : claim.phase === "Pending" ? 1 : claim.deleting ? 2 : 3);
  return html`<${Card} title="Claims" about=${read.data && (read.data.next_page_token ? "200 of more" : String(read.data.items.length))} end=${html`<${Link} to=${to(["clusters", cluster.name, "claims"])}>All claims<//>`}>
    <${Ready} read=${read} what="claims">${({ items }) => (items.length ? html`<${ClaimTable} claims=${[...items].sort((a, b) => rank(a) - rank(b)).slice(0, 10)} />` : html`<p class="aside quiet">No claim: no machine is a node of it beside the control plane.</p>`)}<//><//>`;
}

export function Overview({ cluster, operation, pools }) {
  const events = useRead(cluster.operation_id ? "ListEvents" : null, { subject: cluster.id, order: "desc", page_size: 20, reason: "Progress" }, { news: (event) => event.subject === cluster.id });
  const data = operation.data;
  return html`<div class="columns"><div class="stack">
      ${data?.status === "failed" && data.error && html`<${FailedCard} cluster=${cluster} operation=${data} />`}
      ${data && html`<${OperationCard} cluster=${cluster} operation=${data} lines=${events.data?.items || []} />`}
      ${cluster.queue.length > 0 && html`<${Note} kind="plain">${plural(cluster.queue.length, "change")} queued: ${cluster.queue.map((id) => html`<${Link} key=${id} to=${to(["operations", id])}>${id}<//> `)}<//>`}
      <${Claims} cluster=${cluster} /></div>
    <div class="stack">${cluster.status === "failed" && html`<${Note}>What stands costs money while the cluster is failed.<//>`}<${Conditions} conditions=${cluster.conditions} /><${Price} cluster=${cluster} /><${Pools} cluster=${cluster} read=${pools} /></div></div>`;
}
