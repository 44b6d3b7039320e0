// Offers: node types by provider with prices, zones and whether they can be had.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { useRead } from "../core/data.js";
import { count, gib, hour, moment, NOTHING, plural, quantity } from "../core/format.js";
import { setUpState } from "../core/model.js";
import { leastOf, paidAhead, priceOf, zonesOf } from "../core/offers.js";
import { setQuery, to } from "../core/router.js";
import { SessionOver } from "../core/session.js";
import { Icon, State } from "../parts/icons.js";
import { inOrder, Table } from "../parts/table.js";
import { Button, Card, Copies, Empty, Failure, LinkButton, Ready } from "../parts/ui.js";
import { Facts } from "./cluster.js";

const SHOWN = 200, MOST = 5000;

/** All types of a provider or of all, page by page; a row keeps what the page shows, so that thousands fit. */
function useTypes(provider) {
  const [state, set] = useState({ rows: [], more: true, error: null, at: 0 });
  const again = useRef(() => {});
  const [turn, next] = useState(0);
  again.current = () => next(turn + 1);
  useEffect(() => {
    const control = new AbortController();
    set({ rows: [], more: true, error: null, at: 0 });
    (async () => {
      let token, rows = [];
      do {
        try {
          const { data } = await call("ListNodeTypes", { provider, page_size: 200, page_token: token }, { signal: control.signal });
          rows = [...rows, ...data.items.map(slim)];
          token = data.next_page_token;
          set({ rows, more: Boolean(token), error: null, at: Date.now() });
        } catch (error) {
          if (error.name !== "AbortError" && !(error instanceof SessionOver)) set((was) => ({ ...was, error, more: false }));
          return;
        }
      } while (token && rows.length < MOST);
    })();
    return () => control.abort();
  }, [provider, turn]);
  return { ...state, again: () => again.current() };
}

const gpus = (resources) => Object.entries(resources).filter(([name]) => /gpu|neuron/.test(name)).reduce((sum, [, value]) => sum + Number(value), 0);
const slim = (type) => ({
  id: type.id, name: type.type, whole: type.name, provider: type.provider, cpu: quantity(type.resources.cpu) || 0, memory: quantity(type.resources.memory) || 0, gpu: gpus(type.resources), demand: priceOf(type, "on-demand"), spot: priceOf(type, "spot"), least: leastOf(type),
  refused: type.offerings.flatMap((each) => (each.refused || []).map((one) => ({ capacity: each.capacity_type, zone: one.zone, until: one.until }))),
  zones: zonesOf(type), phase: type.phase, reason: type.reason, message: type.message, ahead: paidAhead(type), left: type.capacity.available, total: type.capacity.total, owned: type.owned,
});

function had(row) {
  const state = setUpState(row.phase);
  const about = row.total !== null ? `${count(row.left)} of ${count(row.total)} left` : row.phase !== "Available" ? row.message || row.reason : row.ahead && row.demand === null ? "paid ahead" : "";
  const scarce = row.refused[0] && row.phase === "Available";
  return html`<${State} ...${scarce ? { kind: "degraded", word: "refused" } : state} /> <span class="small quiet break">${scarce ? refusals(row.refused) : about}</span>`;
}

const places = (each) => `${each.capacity} in ${each.zone === "*" ? "any zone" : each.zone}`;
/** Where a type was refused, and when it is tried again. */
const refusals = (refused) => `${refused.slice(0, 2).map(places).join(", ")}${refused.length > 2 ? ` and ${refused.length - 2} more` : ""}; again from ${moment(refused.map((each) => each.until).sort()[0])}`;

const W = 440, H = 132, LEFT = 50;
/** Spot prices of a day as steps, a line a zone, its id at its end. */
function SpotChart({ history }) {
  const zones = Object.entries(history), now = Date.now(), from = now - 86_400_000;
  if (!zones.length) return html`<p class="aside quiet">No price was seen in the last day.</p>`;
  const all = zones.flatMap(([, points]) => points.map((each) => each.usd_hour)), low = Math.min(...all), high = Math.max(...all), span = high - low || high * 0.1 || 1;
  const x = (at) => LEFT + ((Math.max(from, at) - from) / (now - from)) * (W - LEFT - 76), y = (usd) => 12 + (1 - (usd - low) / span) * (H - 40);
  const path = (points) => points.map((each, n) => `${n ? `H${x(Date.parse(each.time)).toFixed(1)}V` : `M${x(Date.parse(each.time)).toFixed(1)} `}${y(each.usd_hour).toFixed(1)}`).join("") + `H${x(now).toFixed(1)}`;
  const ends = zones.map(([zone, points]) => ({ zone, points, at: y(points[points.length - 1].usd_hour) + 4 })).sort((a, b) => a.at - b.at);
  ends.forEach((each, n) => { if (n) each.at = Math.max(each.at, ends[n - 1].at + 13); });
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Spot prices of a day"><svg class="spot-chart" width=${W} height=${Math.max(H, ends[ends.length - 1].at + 6)} role="img" aria-label=${`Spot prices of the last day, from ${hour(low)} to ${hour(high)} USD/hour`}>
      <text x="0" y=${y(high) + 4}>${hour(high)}</text><text x="0" y=${y(low) + 4}>${hour(low)}</text><text x=${LEFT} y=${H - 4}>24 h ago</text><text x=${W - 76} y=${H - 4} text-anchor="end">now</text>
      ${ends.map(({ zone, points, at }) => html`<g key=${zone}><path d=${path(points)} /><text x=${W - 72} y=${at}>${zone}</text></g>`)}</svg></div>
    <table aria-label="Spot prices of the last day"><thead><tr><th scope="col">Zone</th><th scope="col" class="num">Now</th><th scope="col" class="num">Least</th><th scope="col" class="num">Most</th><th scope="col" class="num">Changes</th></tr></thead><tbody>${zones.map(([zone, points]) => { const usd = points.map((each) => each.usd_hour); return html`<tr key=${zone}><td class="name">${zone}</td><td class="num fact">${hour(usd[usd.length - 1])}</td><td class="num">${hour(Math.min(...usd))}</td><td class="num">${hour(Math.max(...usd))}</td><td class="num">${points.length - 1}</td></tr>`; })}</tbody></table>`;
}

function Dots({ row, most }) {
  const x = (usd) => `${3 + Math.min(1, usd / most) * 92}%`;
  if (row.least === null) return null;
  return html`<svg width="130" height="18" class="dots" aria-hidden="true"><line x1="3%" x2="95%" y1="9" y2="9" class="rail" />${row.spot !== null && row.demand !== null && html`<line x1=${x(row.spot)} x2=${x(row.demand)} y1="9" y2="9" class="reach" />`}${row.spot !== null && html`<circle cx=${x(row.spot)} cy="9" r="4" class="spot" />`}${row.demand !== null && html`<circle cx=${x(row.demand)} cy="9" r="4" class="demand" />`}</svg>`;
}

const usd = (price) => (price === null ? NOTHING : hour(price));
const columns = (most) => [
  { key: "type", head: "Type", kind: "name", cell: (row) => row.name, sort: (row) => row.name },
  { key: "provider", head: "Provider", cell: (row) => row.provider, sort: (row) => row.provider },
  { key: "cpu", head: "CPU", num: true, cell: (row) => count(row.cpu), sort: (row) => row.cpu },
  { key: "memory", head: "GiB", num: true, cell: (row) => gib(row.memory), sort: (row) => row.memory },
  { key: "gpu", head: "GPU", num: true, cell: (row) => row.gpu || NOTHING, sort: (row) => row.gpu },
  { key: "demand", head: "On demand", num: true, kind: "fact", cell: (row) => usd(row.demand ?? (row.owned ? row.least : null)), sort: (row) => row.demand },
  { key: "spot", head: "Spot", num: true, kind: "fact", cell: (row) => usd(row.spot), sort: (row) => row.spot },
  { key: "dots", head: html`<span class="axis-ends">0<span>○ spot ● on demand</span>${most < 10 ? most.toFixed(most < 1 ? 2 : 1) : Math.round(most)}</span>`, from: 1200, cell: (row) => html`<${Dots} row=${row} most=${most} />` },
  { key: "per", head: "Per CPU", num: true, from: 1200, cell: (row) => (row.least !== null && row.cpu ? hour(row.least / row.cpu) : NOTHING), sort: (row) => (row.least === null ? null : row.least / row.cpu) },
  { key: "zones", head: "Zones", from: 900, kind: "break", cell: (row) => row.zones.slice(0, 3).join(", ") || NOTHING },
  { key: "had", head: "Can be had", cell: had },
];
const least = (row) => row.least ?? Infinity;

function Detail({ name }) {
  const one = useRead("GetNodeType", { id: name, history: true });
  return html`<${Card} title=${name} end=${html`<${Copies} command=${asCommand("type", "describe", name)} ask=${["GetNodeType", { id: name, history: true }]} />`}><${Ready} read=${one} what="the type">${(type) => html`<${Facts} rows=${[["Provider", type.provider], ["State", `${setUpState(type.phase).word}${type.message ? `: ${type.message}` : ""}`], ["Resources", Object.entries(type.resources).map(([key, value]) => `${key} ${value}`)], ["Can be allocated", Object.entries(type.allocatable).map(([key, value]) => `${key} ${value}`)],
      ...type.offerings.map((each) => [each.capacity_type, `${each.capacity_type === "capacity-block" ? "paid ahead" : each.usd_hour === null ? "not known" : `${hour(each.usd_hour)} USD/hour`} in ${each.zones.map((zone) => (zone === "*" ? "any zone" : zone)).join(", ")}`]),
      ...type.offerings.filter((each) => each.refused?.length).map((each) => [`Refused, ${each.capacity_type}`, each.refused.map((one) => `${one.zone === "*" ? "any zone" : one.zone}: ${one.reason} at ${moment(one.refused_at)}, again from ${moment(one.until)}`)]),
      ["Disk", type.disk_gib ? `${type.disk_gib} GiB, ${type.disk_usd_hour === null ? "price not known" : `${hour(type.disk_usd_hour)} USD/hour`}` : undefined], ["Capacity", type.capacity.total === null ? "no limit is known" : `${type.capacity.available} of ${type.capacity.total} left`]]} />
      ${type.offerings.some((each) => each.capacity_type === "spot") && html`<h3 class="aside">Spot in the last day, USD/hour</h3><${SpotChart} history=${type.spot_history || {}} />`}
      <details class="body"><summary>Properties</summary><${Facts} rows=${Object.entries(type.properties)} /></details>`}<//><//>
    ${may("CreateNodeClaim") && html`<p><${LinkButton} kind="primary" to=${to(["claims", "new"], { type: name })}>Claim one…<//></p>`}`;
}

export function Offers({ chosen, query }) {
  const providers = useRead("ListNodeProviders", { page_size: 200 }), types = useTypes(query.provider);
  if (chosen) return html`<div class="head"><h1>${chosen}</h1></div><div class="columns half"><div class="stack"><${Detail} name=${chosen} /></div></div>`;
  const cpu = Number(query.cpu) || 0, memory = Number(query.memory) || 0, gpu = Number(query.gpu) || 0, typed = (query.q || "").toLowerCase();
  const rows = types.rows.filter((row) => row.cpu >= cpu && row.memory >= memory * 2 ** 30 && row.gpu >= gpu && (!typed || `${row.name} ${row.provider}`.toLowerCase().includes(typed)) && (!query.scarce || row.phase !== "Available" || row.refused.length > 0) && (!query.capacity || (query.capacity === "spot" ? row.spot : row.demand) !== null) && (!query.zone || row.zones.includes(query.zone) || row.zones.includes("any")));
  const first = inOrder(rows, columns(1), query.sort, null), ordered = (first.sorted.key ? first.rows : [...rows].sort((a, b) => least(a) - least(b))).slice(0, SHOWN);
  const prices = ordered.map((row) => Math.max(row.demand ?? 0, row.spot ?? 0)).sort((a, b) => a - b), most = Math.max(0.01, prices[Math.floor(prices.length * 0.9)] || 0);
  const pick = (key, label, options) => html`<label class="chip ${query[key] ? "on" : ""}">${label} <select aria-label=${label} onChange=${(event) => setQuery({ [key]: event.target.value || null })}><option value="">any</option>${options.map(([value, text]) => html`<option key=${value} value=${value} selected=${String(query[key] || "") === String(value)}>${text}</option>`)}</select></label>`;
  const zones = [...new Set(types.rows.flatMap((row) => row.zones))].filter((zone) => zone !== "any").sort().slice(0, 60);
  return html`<div class="head"><h1>Offers</h1><span class="quiet">${plural(types.rows.length, "type")}${providers.data ? ` of ${query.provider || plural(providers.data.items.length, "provider")}` : ""}, prices in USD/hour${types.more ? ", more are read" : types.at ? `, read ${moment(new Date(types.at).toISOString())}` : ""}</span></div>
    <${Card} foot=${html`<span>${count(ordered.length)} of ${count(rows.length)} shown, sorted by ${first.sorted.key || "least price"}</span><span class="end"><${Copies} command=${asCommand("type", "list", ...(query.provider ? ["--provider", query.provider] : []))} ask=${["ListNodeTypes", { provider: query.provider, page_size: 200 }]} /></span>`}>
      <div class="tools"><label class="filter"><span class="unseen">Filter types</span><${Icon} name="search" size=${14} /><input class="input" data-filter type="search" placeholder="Type" value=${query.q || ""} onInput=${(event) => setQuery({ q: event.target.value || null })} /><kbd>/</kbd></label>
        ${pick("provider", "provider", (providers.data?.items || []).map((each) => [each.name, each.name]))}${pick("cpu", "CPU at least", [2, 4, 8, 16, 32, 64].map((n) => [n, n]))}${pick("memory", "GiB at least", [4, 8, 16, 32, 64, 128, 256].map((n) => [n, n]))}${pick("gpu", "GPU at least", [1, 2, 4, 8].map((n) => [n, n]))}${pick("capacity", "capacity", [["on-demand", "on demand"], ["spot", "spot"]])}${pick("zone", "zone", zones.map((zone) => [zone, zone]))}
        <label class="check"><input type="checkbox" checked=${Boolean(query.scarce)} onChange=${(event) => setQuery({ scarce: event.target.checked ? 1 : null })} /> only scarce</label></div>
      ${types.error && html`<div class="body"><${Failure} error=${types.error} again=${types.again} /></div>`}
      ${!types.at && !types.error ? html`<${Ready} read=${{ data: null, error: null, slow: false }} rows=${8}>${() => null}<//>` : ordered.length ? html`<${Table} label="Offers" columns=${columns(most)} rows=${ordered} sorted=${first.sorted} keyOf=${(row) => row.id} address=${(row) => to(["offers", row.whole])}
        line=${(row) => ({ icon: html`<${State} ...${setUpState(row.phase)} bare />`, title: row.name, facts: [row.provider, `${count(row.cpu)} CPU`, `${gib(row.memory)} GiB`, row.gpu ? `${row.gpu} GPU` : null], why: row.phase === "Available" ? null : row.message || row.reason, number: usd(row.least), unit: "USD/hour" })} />` : html`<${Empty} title=${types.rows.length ? "No type is like this." : "No types yet"}><p>${types.rows.length ? "" : "A provider brings the node types that it has; a cluster brings the providers of its account."}</p>${types.rows.length > 0 && html`<${Button} onClick=${() => setQuery({ q: null, provider: null, cpu: null, memory: null, gpu: null, capacity: null, zone: null, scarce: null })}>Clear filter<//>`}<//>`}<//>`;
}
