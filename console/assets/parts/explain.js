// Why one type of many: the funnel of rules, the ladder of prices, the gap to the bound.
import { html, useState } from "../vendor/preact-htm.js";
import { above, bare, count, hour } from "../core/format.js";
import { Bar } from "./ui.js";

const WORDS = [
  [/^that cannot be in the cluster's network and a zone as asked$/, () => "In the network and zones"], [/^kept for claims that ask for (.+)$/, (m) => `Not kept for claims of ${m[1]}`],
  [/^without enough (.+)$/, (m) => `Enough ${m[1]}`], [/^that only come when they are asked for by (.+)$/, (m) => `Not only on request: ${m[1].split("/").pop()}`], [/^of which no node can be made yet$/, () => "A node can be made of it"],
];
const worded = (group) => { for (const [pattern, words] of WORDS) { const match = pattern.exec(group.message); if (match) return words(match); } return `Not ruled out: ${group.message}`; };

/** Rows of the funnel: {label, out, left, types, strong}. `given` are options that the provider was given. */
export function funnelRows(considered, groups, given, taken) {
  const rules = groups.filter((group) => group.rule !== "Fits"), fits = groups.find((group) => group.rule === "Fits");
  const out = rules.reduce((sum, group) => sum + group.count, 0);
  const listed = Object.values(considered || {}).reduce((sum, each) => sum + each, 0);
  const fit = considered?.Fits ?? Math.max(0, listed - out);
  const total = Math.max(listed, out + fit);
  let left = total;
  const rows = [{ label: "All types of your providers", left, strong: true }];
  for (const group of rules) { left -= group.count; rows.push({ label: worded(group), out: group.count, left, types: group.types }); }
  rows.push({ label: "Fit", left: fit, strong: true, types: fits?.types });
  if (given) rows.push({ label: "Given to the provider, the cheapest", out: fit - given, left: given, strong: true });
  if (taken) rows.push({ label: "Taken", out: (given || fit) - 1, left: 1, strong: true });
  return { rows, total, fit };
}

export function Funnel({ rows, total }) {
  const [open, set] = useState(null);
  return html`<ul class="funnel">${rows.map((row, n) => html`<li key=${n}><div class="row ${row.strong ? "strong" : ""}">
      ${row.types?.length ? html`<button type="button" class="button link plain break" aria-expanded=${String(open === n)} onClick=${() => set(open === n ? null : n)}>${row.label}</button>` : html`<span class="break">${row.label}</span>`}
      <span class="num quiet">${row.out ? `−${count(row.out)}` : ""}</span><${Bar} share=${total ? row.left / total : 0} thick /><span class="num">${count(row.left)}</span></div>
    ${open === n && html`<p class="small second break types">${row.types.slice(0, 10).map(bare).join(", ")}${(row.out || row.left) > row.types.length ? " and more" : ""}</p>`}</li>`)}</ul>`;
}

/** A row a type: its price on an axis from the least on. `rows`: [{name, usd, chosen, about}], ascending. */
export function Ladder({ rows, first = 10 }) {
  const [shown, more] = useState(first), mixed = new Set(rows.map((row) => row.about)).size > 1;
  const priced = rows.filter((row) => row.usd !== null), seen = rows.slice(0, shown), least = priced[0]?.usd ?? 0;
  const most = Math.max(least * 1.02, ...seen.map((row) => row.usd ?? 0)), low = least - (most - least) * 0.1 || 0, span = most - low || 1;
  const x = (usd) => `${((usd - low) / span) * 94}%`;
  return html`<table class="ladder" aria-label="Prices of what fits"><thead><tr><th scope="col">Type</th><th scope="col" class="from-700"><span class="axis-ends"><span>${hour(low)}</span><span>${hour(most)}</span></span></th><th scope="col" class="num">USD/hour</th><th scope="col" class="num">Above least</th></tr></thead>
    <tbody>${seen.map((row) => html`<tr key=${row.key || row.name} class=${row.chosen ? "chosen" : ""}><td class="name">${row.name} ${row.chosen ? html`<span class="run">chosen</span>` : ""}${mixed && row.about ? html`<span class="small quiet about">${row.about}</span>` : ""}</td>
      <td class="from-700 axis-cell">${row.usd !== null && html`<svg width="100%" height="20" aria-hidden="true"><line x1=${x(least)} x2=${x(least)} y1="0" y2="20" class="least" /><line x1=${x(least)} x2=${x(row.usd)} y1="10" y2="10" class="reach" /><circle cx=${x(row.usd)} cy="10" r=${row.chosen ? 4.5 : 3.5} class="dot" /></svg>`}</td>
      <td class="num fact">${row.usd === null ? "not known" : hour(row.usd)}</td><td class="num">${row.usd === null || !least ? "–" : above(row.usd / least)}</td></tr>${row.why && html`<tr key=${`why ${row.key || row.name}`} class="reason"><td colspan="4" class="small quiet break">${row.why}</td></tr>`}`)}</tbody></table>
    ${rows.length > shown && html`<p class="aside"><button type="button" class="button link" onClick=${() => more(shown + 50)}>Next ${Math.min(50, rows.length - shown)}</button></p>`}`;
}

/** Bound, the rest up to the price, and all three numbers. */
export function GapBar({ usd, bound, what = "this plan", least = "no packing costs less than" }) {
  const width = 86, at = usd ? (bound / usd) * width : 0;
  return html`<div class="gap"><p class="num strong" style=${{ width: `${width}%` }}>${what} ${hour(usd)}</p>
    <div class="gap-bar" aria-hidden="true"><span class="fill" style=${{ width: `${at}%` }}></span><i></i><b style=${{ width: `${width - at}%` }}></b></div>
    <p class="gap-words small quiet"><span class="num" style=${{ width: `${at}%` }}>${least} ${hour(bound)}</span>${usd - bound > 0.00005 && html`<span>not proven to be needed: ${hour(usd - bound)}</span>`}</p></div>`;
}
