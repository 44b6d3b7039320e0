// Audit: who did what, and what came of it.
import { html } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { usePages } from "../core/data.js";
import { setQuery } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Pages, Table } from "../parts/table.js";
import { Button, Card, Copies, Empty, Note, Ready, Time } from "../parts/ui.js";

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
