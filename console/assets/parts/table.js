// A table with one stop for the keyboard: j, k and arrows move, Enter opens. Below 700 px rows are lines.
import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact-htm.js";
import { go, here, Link, setQuery } from "../core/router.js";
import { offer } from "./palette.js";
import { Button } from "./ui.js";

/** Columns: {key, head, cell(row), num, kind, from, unseen, sort(row)}. `line(row)` draws a phone's row: {icon, title,
 * facts, why, number, unit}. A row {heading, end, icon} is one of a group. */
export function Table({ label, columns, rows, keyOf, address = null, line = null, sorted = null, chosen = null, rowKind = null, verbs = null, peek = null }) {
  const body = useRef(null);
  const stops = () => [...body.current.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
  const move = (event) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    const all = stops(), at = all.indexOf(event.target.closest("[data-row]"));
    if (step && at >= 0 && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      const next = all[Math.max(0, Math.min(all.length - 1, at + step))];
      all.forEach((row) => { row.tabIndex = row === next ? 0 : -1; });
      next.focus();
    }
    if (event.key === " " && peek && event.target.dataset.row !== undefined) { event.preventDefault(); show(event.target); }
    if (event.key === "Enter" && event.target.dataset.row !== undefined && event.target.dataset.to) go(event.target.dataset.to);
  };
  const show = (stop) => { const key = stop?.dataset.key; if (key) setQuery({ row: here().query.row === key ? null : key }); };
  const focus = (event) => {
    const key = event.target.dataset.key, row = verbs && key !== undefined && rows.find((each) => each.heading === undefined && String(keyOf(each)) === key);
    if (row) offer("row", verbs(row).map(([label, place]) => [`${label} ${row.name || ""}`, () => go(place)]));
  };
  useEffect(() => {
    if (!peek) return undefined;
    const toggle = () => { const { row } = here().query; if (row) setQuery({ row: null }); else show(stops().find((each) => each.tabIndex === 0)); };
    addEventListener("stockyard:pane", toggle);
    return () => removeEventListener("stockyard:pane", toggle);
  });
  useEffect(() => () => offer("row", null), []);
  // Before the rows are painted: whoever sees a row can reach it by a key.
  useLayoutEffect(() => { const all = stops(); if (all.length && !all.some((row) => row.tabIndex === 0)) all[0].tabIndex = 0; });
  const open = (event, row) => {
    if (!address || event.target.closest("a, button, input") || String(getSelection())) return;
    const place = address(row);
    if (place) go(place);
  };
  const cells = (row) => columns.map((column) => html`<td key=${column.key} class="${column.num ? "num" : ""} ${column.kind || ""} ${column.from ? `from-${column.from}` : ""}">${column.cell(row)}</td>`);
  const opened = peek && rows.find((each) => each.heading === undefined && String(keyOf(each)) === here().query.row);
  const list = html`<div ref=${body} onKeyDown=${move} onFocusCapture=${focus}>
    <div class="scroll ${line ? "from-700" : ""}" tabindex=${line ? undefined : 0} role=${line ? undefined : "region"} aria-label=${line ? undefined : `${label}, scrolls`}><table aria-label=${label}>
      <thead><tr>${columns.map((column) => html`<th key=${column.key} scope="col" class="${column.num ? "num" : ""} ${column.from ? `from-${column.from}` : ""}"
        aria-sort=${sorted && column.sort && sorted.key === column.key ? (sorted.up ? "ascending" : "descending") : undefined}>
        ${column.sort && sorted ? html`<button type="button" onClick=${() => setQuery({ sort: sorted.key === column.key && !sorted.up ? `${column.key}-up` : column.key })}>${column.head}</button>`
          : column.unseen ? html`<span class="unseen">${column.unseen}</span>` : column.head}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => row.heading !== undefined
        ? html`<tr key=${`heading ${row.heading}`} class="group"><td colspan=${columns.length}><span class="grouping">${row.icon}${row.heading}<span class="quiet">${row.end}</span></span></td></tr>`
        : html`<tr key=${keyOf(row)} data-row data-key=${keyOf(row)} data-to=${address?.(row)} tabindex="-1" class="${chosen?.(row) || row === opened ? "chosen" : ""} ${rowKind?.(row) || ""}" onClick=${(event) => open(event, row)}>${cells(row)}</tr>`)}</tbody>
    </table></div>
    ${line && html`<ul class="lines to-700" aria-label=${label}>${rows.map((row) => {
      if (row.heading !== undefined) return html`<li key=${`heading ${row.heading}`} class="grouping head">${row.icon}${row.heading}<span class="quiet">${row.end}</span></li>`;
      const shown = line(row), place = address?.(row);
      return html`<li key=${keyOf(row)} data-row data-key=${keyOf(row)} data-to=${place} tabindex="-1" class="${rowKind?.(row) || ""}" onClick=${(event) => open(event, row)}>
        ${shown.icon && html`<span class="icon">${shown.icon}</span>`}<div class="text"><p>${place ? html`<${Link} to=${place} class="strong break" tabindex="-1">${shown.title}<//>` : html`<span class="strong break">${shown.title}</span>`} ${shown.word}</p>
        ${shown.facts && html`<p class="small second break">${shown.facts.filter(Boolean).join(" · ")}</p>`}${shown.why && html`<p class="small second break">${shown.why}</p>`}${shown.verb}</div>
        ${shown.number !== undefined && html`<div class="num"><p>${shown.number}</p><p class="small quiet">${shown.unit}</p></div>`}</li>`;
    })}</ul>`}</div>`;
  if (!opened) return list;
  return html`<div class="columns pane peek">${list}<aside class="details" aria-label="Details"><div class="spread">${address ? html`<${Link} class="strong break" to=${address(opened)}>Open<//>` : html`<span></span>`}<${Button} kind="quiet row" onClick=${() => setQuery({ row: null })}>Close<//></div>${peek(opened)}</aside></div>`;
}

/** Words for the number of a list: {count, more} of the API. */
export const numberOf = (total) => `${total.more ? "more than " : ""}${total.count.toLocaleString()}`;
function ofAll(pages) {
  if (!pages.more && pages.from === 1) return ` of ${pages.items.length}`;
  return pages.total ? ` of ${numberOf(pages.total)}` : "";
}

/** "1–200 of 1,234" and the steps between pages. */
export const Pages = ({ pages, shown = null, noun = "rows" }) => html`<span>${pages.items && pages.items.length
  ? html`${pages.from}–${pages.from + pages.items.length - 1}${ofAll(pages)}${shown !== null && shown !== pages.items.length ? `, ${shown} shown` : ""}` : `no ${noun}`}</span>
  ${(pages.back || pages.forward) && html`<span class="chips"><${Button} kind="row" why=${pages.back ? null : "This is the first page"} onClick=${pages.back}>Previous<//><${Button} kind="row" why=${pages.forward ? null : "This is the last page"} onClick=${pages.forward}>Next<//></span>`}`;

/** Rows in the order that the address names, by columns that have `sort`. */
export function inOrder(rows, columns, sort, initial) {
  const up = /-up$/.test(sort || ""), key = (sort || initial || "").replace(/-up$/, "");
  const column = columns.find((each) => each.key === key && each.sort);
  if (!column) return { rows, sorted: { key: null, up: false } };
  const value = (row) => column.sort(row) ?? (up ? Infinity : -Infinity);
  const sign = up ? 1 : -1;
  return { rows: [...rows].sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : 0)), sorted: { key, up } };
}
