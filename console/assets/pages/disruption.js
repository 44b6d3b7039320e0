// Disruption of a cluster: what would leave now, what keeps the rest, when pools may be disturbed.
import { html, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { useClock, useRead } from "../core/data.js";
import { allowance, nodesOf, offset, week, windows, zoneHere } from "../core/calendar.js";
import { bare, hour, month, monthName, NOTHING, plural, since } from "../core/format.js";
import { Link, setQuery, to } from "../core/router.js";
import { Icon, State } from "../parts/icons.js";
import { Boxes, poolState, sizes } from "./cluster.js";
import { Table } from "../parts/table.js";
import { Button, Card, Copies, Failure, Figures, Note, Ready, Time } from "../parts/ui.js";

const OLD_MS = 300_000;

function rowsOf(nodes) {
  const groups = new Map();
  for (const node of nodes) {
    const key = node.leaves ? `leaves ${node.why}` : node.why, group = groups.get(key) || { why: node.why, leaves: node.leaves, rows: new Map(), count: 0 };
    const kind = `${node.pool} ${node.type} ${node.until}`, row = group.rows.get(kind) || { ...node, key: `${key} ${kind}`, names: [], claims: [], sum: 0 };
    row.names.push(node.name);
    row.claims.push(node.claim_id);
    row.sum = row.sum === null || node.usd_hour === null ? null : row.sum + node.usd_hour;
    group.rows.set(kind, row);
    group.count++;
    groups.set(key, group);
  }
  const upper = (text) => text.replace(/^./, (letter) => letter.toUpperCase());
  return [...groups.values()].sort((a, b) => Number(b.leaves) - Number(a.leaves) || b.count - a.count).flatMap((group) => [
    { heading: group.leaves ? `Would leave now: ${group.why}` : upper(group.why), end: plural(group.count, "node"), icon: html`<span class=${group.leaves ? "warn" : "quiet"}><${Icon} name=${group.leaves ? "leaves" : "lock"} size=${14} /></span>` }, ...group.rows.values()]);
}

const columns = [
  { key: "node", head: "Node", kind: "name", cell: (row) => html`${row.names.slice(0, 4).map((name, n) => html`${n ? ", " : ""}<${Link} to=${to(["claims", row.claims[n]])}>${name}<//>`)}${row.names.length > 4 ? html`<details><summary>${row.names.length - 4} more</summary>${row.names.slice(4).join(", ")}</details>` : ""}${row.until ? html`<span class="small quiet about">until <${Time} at=${row.until} /></span>` : ""}` },
  { key: "pool", head: "Pool", cell: (row) => row.pool || NOTHING },
  { key: "type", head: "Type", kind: "tight", cell: (row) => `${row.names.length > 1 ? `${row.names.length} × ` : ""}${bare(row.type)}` },
  { key: "hour", head: "USD/hour", num: true, kind: "fact", cell: (row) => (row.sum === null ? "not known" : hour(row.sum)) },
];

function Leaves({ cluster, read }) {
  return html`<${Card} title="What would leave, and what keeps the rest" end=${read.data && html`<span class=${Date.now() - Date.parse(read.data.observed_at) > OLD_MS ? "warn" : ""}>${read.data.observed_at ? `agent told ${since(read.data.observed_at)} ago` : "the agent has told nothing yet"}</span>`}
      foot=${html`<span class="end"><${Copies} command=${asCommand("disruption", "preview", cluster.name)} ask=${["PreviewDisruption", { id: cluster.name }]} /></span>`}><${Ready} read=${read} what="the preview">${(preview) => html`
    ${preview.decision?.replacements.length > 0 && html`<p class="aside"><span class="strong">${preview.decision.nodes.length} × leave</span>, ${hour(preview.decision.usd_hour_before)} → ${preview.decision.replacements.map((each) => `1 × ${bare(each.type)}`).join(", ")}, ${hour(preview.decision.usd_hour_after)} USD/hour</p>`}
    ${preview.nodes.length ? html`<${Table} label="Nodes by what keeps them" columns=${columns} rows=${rowsOf(preview.nodes)} keyOf=${(row) => row.key} line=${(row) => ({ title: row.names.join(", "), facts: [row.pool, bare(row.type)], number: row.sum === null ? "not known" : hour(row.sum), unit: "USD/hour" })} />` : html`<p class="aside quiet">${preview.message || "No node is there."}</p>`}`}<//><//>`;
}

function Pools({ pools, cluster, chosen, again }) {
  return html`<${Card} title="Pools" end=${html`<span class="from-700">boxes: at most, line: at least</span>`}><${Ready} read=${pools} what="pools">${({ items }) => (items.length ? html`<${Table} label="Pools" rows=${items} keyOf=${(pool) => pool.name} line=${(pool) => ({ icon: html`<${State} ...${poolState(pool)} bare />`, title: pool.name, facts: [`${sizes(pool).there} of ${sizes(pool).least}–${sizes(pool).most ?? "any"} nodes`], number: hour(pool.nodes.usd_hour), unit: "USD/hour", verb: html`<${PoolPause} cluster=${cluster} pool=${pool} again=${again} />` })} chosen=${(pool) => pool.name === chosen?.name} columns=${[
    { key: "name", head: "Pool", kind: "name", cell: (pool) => html`<button type="button" class="button link plain" aria-pressed=${String(pool.name === chosen?.name)} onClick=${() => setQuery({ pool: pool.name })}>${pool.name}</button>` }, { key: "nodes", head: "Nodes", cell: (pool) => html`<${Boxes} ...${sizes(pool)} />` },
    { key: "have", head: "Have", num: true, kind: "tight", cell: (pool) => html`<span class="strong">${sizes(pool).there}</span> of ${sizes(pool).least}–${sizes(pool).most ?? "any"}` }, { key: "hour", head: "USD/hour", num: true, kind: "fact", cell: (pool) => hour(pool.nodes.usd_hour) }, { key: "state", head: "State", cell: (pool) => html`<${State} ...${poolState(pool)} />` }, { key: "pause", head: "", unseen: "Pause", cell: (pool) => html`<${PoolPause} cluster=${cluster} pool=${pool} again=${again} />` }]} />` : html`<p class="aside quiet">No pool: no node leaves for its price or age.</p>`)}<//><//>`;
}

function Calendar({ pool, zone }) {
  useClock(30_000);
  const now = Date.now(), days = week(zone, now), budgets = pool.disruption.budgets.filter((budget) => budget.schedule), size = pool.nodes.available;
  const spans = budgets.map((budget) => ({ budget, windows: windows(budget, days[0].from, days[6].to) }));
  const may = allowance(pool.disruption.budgets, size, now);
  return html`<div class="calendar" role="img" aria-label=${`Week of the budgets of ${pool.name} in ${zone}: ${spans.map(({ budget, windows: all }) => `${budget.nodes} nodes in ${all.length} windows`).join(", ") || "always the same"}; now ${may} may leave`}>
    <div class="hours"><span></span><span>${[0, 3, 6, 9, 12, 15, 18, 21, 24].map((each) => html`<i key=${each} style=${{ left: `${(each / 24) * 100}%` }}>${String(each).padStart(2, "0")}</i>`)}</span></div>
    ${days.map((day) => { const x = (at) => `${((Math.max(day.from, Math.min(day.to, at)) - day.from) / (day.to - day.from)) * 100}%`, wide = (a, b) => `${((Math.min(day.to, b) - Math.max(day.from, a)) / (day.to - day.from)) * 100}%`; return html`<div class="day ${day.today ? "today" : ""}" key=${day.from}><span>${day.label}${day.to - day.from !== 86_400_000 ? html` <span class="quiet">${Math.round((day.to - day.from) / 3_600_000)} h</span>` : ""}</span><span class="track">
      ${[3, 6, 9, 12, 15, 18, 21].map((each) => html`<b key=${each} style=${{ left: `${(each / 24) * 100}%` }}></b>`)}
      ${spans.flatMap(({ budget, windows: all }, n) => all.filter(([from, to]) => to > day.from && from < day.to).map(([from, to]) => html`<u key=${`${n} ${from}`} class=${nodesOf(budget, size) === 0 ? "closed" : "window"} style=${{ left: x(from), width: wide(from, to) }}><span>${budget.nodes === "0" || budget.nodes === "0%" ? "0 nodes" : `${budget.nodes} ${budget.nodes.endsWith("%") ? "" : "nodes"}`}</span></u>`))}
      ${day.today && html`<em class=${(now - day.from) / (day.to - day.from) > 0.6 ? "left" : ""} style=${{ left: x(now) }}><span>${new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false, timeZone: zone }).format(now)}, ${may} may leave</span></em>`}</span></div>`; })}</div>`;
}

function when(budget, zone) {
  if (!budget.schedule) return "always";
  const own = budget.time_zone || "UTC", first = windows(budget, Date.now(), Date.now() + 8 * 86_400_000)[0];
  const there = first && new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit", hour12: false, timeZone: zone }).format(first[0]);
  const differs = first && offset(own, first[0]) !== offset(zone, first[0]);
  return html`<code>${budget.schedule}</code> for ${budget.duration}${there ? html` <span class="quiet">(${differs ? `next ${there} in ${zone}` : `next ${there}`})</span>` : ""}`;
}

function Budgets({ pools, chosen, zone }) {
  const dynamic = pools.filter((pool) => pool.disruption);
  if (!chosen) return html`<${Card} title="Budgets"><p class="aside quiet">No pool has a policy of disruption.</p><//>`;
  const zones = [...new Set([zoneHere(), ...chosen.disruption.budgets.map((budget) => budget.time_zone).filter(Boolean), "UTC"])];
  return html`<${Card} title=${html`Budgets of <select aria-label="Pool" class="inline" onChange=${(event) => setQuery({ pool: event.target.value })}>${dynamic.map((pool) => html`<option key=${pool.name} value=${pool.name} selected=${pool.name === chosen.name}>${pool.name}</option>`)}</select>`}
      end=${html`<span class="segments" role="group" aria-label="Time zone">${zones.map((each) => html`<button key=${each} type="button" aria-pressed=${String(each === zone)} onClick=${() => setQuery({ zone: each === zones[0] ? null : each })}>${each}</button>`)}</span>`}>
    <${Calendar} pool=${chosen} zone=${zone} />
    <div class="scroll" tabindex="0" role="region" aria-label="Budgets"><table aria-label="Budgets"><thead><tr><th scope="col">May leave</th><th scope="col">When</th><th scope="col">For</th><th scope="col">Time zone</th></tr></thead><tbody>${chosen.disruption.budgets.map((budget, n) => html`<tr key=${n}><td class="fact">${budget.nodes.endsWith("%") ? budget.nodes : plural(Number(budget.nodes), "node")}</td><td>${when(budget, zone)}</td><td>${budget.reasons ? budget.reasons.join(", ") : "every reason"}</td><td>${budget.schedule ? budget.time_zone || "UTC" : NOTHING}</td></tr>`)}</tbody></table></div>
    <p class="aside small quiet">Of budgets that are open at a time the least holds.</p><//>`;
}

/** Pause of one pool, beside its name. */
function PoolPause({ cluster, pool, again }) {
  const [busy, set] = useState(null), [error, fail] = useState(null), paused = Boolean(pool.disruption?.paused);
  if (!pool.disruption || !may("ChangePool")) return null;
  const flip = async () => {
    set(paused ? "Lifting" : "Pausing");
    fail(null);
    try { await call("ChangePool", { id: cluster.id, name: pool.name }, { body: { disruption: { paused: !paused } }, headers: { "If-Match": `"${pool.version}"` } }); } catch (raised) { fail(raised); }
    again();
    set(null);
  };
  return html`<${Button} kind="row" writes busy=${busy} onClick=${flip}>${paused ? "Lift" : "Pause"}<span class="unseen"> ${pool.name}</span><//>${error && html`<${Failure} error=${error} />`}`;
}

/** Pause of all clusters of the tenant. */
function PauseAll() {
  const read = useRead(may("SetDisruptionSwitch") ? "GetDisruptionSwitch" : null, {}), [busy, set] = useState(null), [error, fail] = useState(null);
  if (!read.data) return null;
  const flip = async () => {
    set("Applying");
    fail(null);
    try { await call("SetDisruptionSwitch", {}, { body: { paused: !read.data.paused } }); read.again(); } catch (raised) { fail(raised); }
    set(null);
  };
  return html`<${Button} writes busy=${busy} onClick=${flip}>${read.data.paused ? "Lift the pause of all clusters" : "Pause all clusters"}<//>${error && html`<${Failure} error=${error} />`}`;
}

function Pause({ cluster, now, again }) {
  const [busy, set] = useState(null), [error, fail] = useState(null);
  if (!may("SetDisruption")) return null;
  const flip = async () => {
    set(now.paused ? "Lifting" : "Pausing");
    fail(null);
    try { await call("SetDisruption", { id: cluster.id }, { body: { paused: !now.paused } }); again(); } catch (raised) { fail(raised); }
    set(null);
  };
  return html`<${Button} icon=${now.paused ? null : "pause"} writes busy=${busy} onClick=${flip}>${now.paused ? "Lift the pause" : "Pause disruption"}<//>${error && html`<${Failure} error=${error} />`}`;
}

export function Disruption({ cluster, pools, query }) {
  const about = (event) => event.cluster_id === cluster.id || event.subject === cluster.id;
  const now = useRead("GetDisruption", { id: cluster.id }, { news: about }), preview = useRead("PreviewDisruption", { id: cluster.id }, { news: (event) => event.detail_type === "NodeClaim" && about(event), every: 60_000 });
  const items = pools.data?.items || [], chosen = items.find((pool) => pool.name === query.pool && pool.disruption) || items.find((pool) => pool.disruption) || null, zone = query.zone || zoneHere();
  const decision = preview.data?.decision, leaving = (preview.data?.nodes || []).filter((node) => node.leaves).length;
  return html`<div class="spread"><span>${now.data?.paused ? "" : html`<span class="quiet">${now.data ? { Idle: "Nothing is being disrupted.", Proposed: "A decision is taken.", Replacing: "Nodes are being replaced." }[now.data.state] || now.data.state : ""} ${now.data?.message || ""}</span>`}</span><span class="chips"><${PauseAll} />${now.data && html`<${Pause} cluster=${cluster} now=${now.data} again=${now.again} />`}</span></div>
    ${now.data?.paused && html`<${Note}>Disruption is paused${now.data.paused_by ? ` by ${now.data.paused_by}` : ""}: no node leaves for its price, its drift or its age.<//>`}
    ${now.data?.paused_pools.length > 0 && html`<${Note}>Disruption is paused for ${now.data.paused_pools.join(", ")}.<//>`}
    ${now.error && html`<${Failure} error=${now.error} again=${now.again} />`}
    <${Figures} items=${[["Right now", preview.data ? (leaving ? plural(leaving, "node") : "none") : NOTHING, "would leave"], ["That saves", decision ? month(decision.usd_month_saved) : month(0), "USD/month"], [`Saved in ${monthName()}`, now.data ? month(now.data.usd_month_saved) : NOTHING, "USD/month"], ["At best possible", now.data ? (now.data.usd_month_possible === null ? "not known" : month(now.data.usd_month_possible)) : NOTHING, "USD/month"]]} />
    <div class="columns half"><${Leaves} cluster=${cluster} read=${preview} /><div class="stack"><${Pools} pools=${pools} cluster=${cluster} chosen=${chosen} again=${() => { pools.again(); now.again(); }} /><${Budgets} pools=${items} chosen=${chosen} zone=${zone} /></div></div>`;
}
