// Operations: what runs and ran, with all attempts.
import { html, useEffect } from "../vendor/preact-htm.js";
import { asCommand } from "../core/api.js";
import { useClock, usePages, useRead } from "../core/data.js";
import { duration, NOTHING, since } from "../core/format.js";
import { operationState, operationTitle } from "../core/model.js";
import { Link, setQuery, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Pages, Table } from "../parts/table.js";
import { progressText, runningStep, Timeline } from "../parts/timeline.js";
import { Card, Copies, Empty, Failure, LinkButton, Ready, Time } from "../parts/ui.js";
import { Attempts, text } from "./operation-card.js";

const took = (each) => (each.status === "queued" ? NOTHING : duration((each.status === "running" ? Date.now() : Date.parse(each.updated_at)) - Date.parse(each.created_at)));
const says = (each) => (each.error ? `${each.error.phase}: ${each.error.cause}` : each.status === "running" ? `${runningStep(each)?.name || "between two steps"}: ${runningStep(each)?.message || "begun"}` : each.changes.length ? each.changes.map((change) => `${change.field || change.pointer}: ${text(change.before)} → ${text(change.after)}`).join("; ") : "");

/** Page of the subject of an operation, by the kind of its id. */
export function subjectOf(operation) {
  if (operation.subject.startsWith("clu_")) return to(["clusters", operation.subject_name || operation.subject]);
  if (operation.subject.startsWith("ncl_")) return to(["claims", operation.subject_name || operation.subject]);
  return null;
}

const columns = (withSubject) => [
  { key: "state", head: "State", cell: (each) => html`<${State} ...${operationState(each)} />` },
  { key: "what", head: "What", kind: "name", cell: (each) => operationTitle(each) },
  withSubject && { key: "subject", head: "Of", kind: "break", cell: (each) => (subjectOf(each) ? html`<${Link} to=${subjectOf(each)}>${each.subject_name || each.subject}<//>` : each.subject_name || each.subject) },
  { key: "says", head: "What it says", kind: "why", from: 900, cell: says },
  { key: "attempts", head: "Attempts failed", num: true, from: 1200, cell: (each) => each.failures.length || NOTHING },
  { key: "began", head: "Began", num: true, cell: (each) => html`<${Time} at=${each.created_at} />` },
  { key: "took", head: "Took", num: true, cell: took },
].filter(Boolean);

export function OperationTable({ operations, withSubject = true }) {
  useClock(operations.some((each) => each.status === "running") ? 1000 : 3_600_000);
  return html`<${Table} label="Operations" columns=${columns(withSubject)} rows=${operations} keyOf=${(each) => each.id} address=${(each) => to(["operations", each.id])}
    line=${(each) => ({ icon: html`<${State} ...${operationState(each)} bare />`, title: operationTitle(each), word: html`<span class="second">${operationState(each).word}</span>`, facts: [withSubject && (each.subject_name || each.subject), `${since(each.created_at)} ago`], why: each.status === "failed" ? says(each) : null, number: took(each), unit: "took" })} />`;
}

export function Operations({ query, count }) {
  const pages = usePages("ListOperations", { order: "desc", status: query.status, page_size: 100 }, { news: (event) => event.detail_type === "Operation" });
  const running = (pages.items || []).filter((each) => each.status === "running").length;
  useEffect(() => { if (pages.items && !query.status && pages.from === 1) count("operations", running); }, [running, pages.items]);
  return html`<div class="head"><h1>Operations</h1><span class="quiet">${pages.items && running ? `${running} running` : ""}</span></div>
    <${Card} foot=${html`<${Pages} pages=${pages} noun="operations" /><span class="end"><${Copies} command=${asCommand("operation", "list")} ask=${["ListOperations", { order: "desc" }]} /></span>`}>
      <div class="tools"><span class="segments" role="group" aria-label="State">${[[null, "All"], ["running", "Running"], ["failed", "Failed"], ["queued", "Queued"]].map(([status, label]) => html`<button key=${label} type="button" aria-pressed=${String((query.status || null) === status)} onClick=${() => setQuery({ status })}>${label}</button>`)}</span></div>
      <${Ready} read=${{ ...pages, data: pages.items }} what="operations">${(items) => (items.length ? html`<${OperationTable} operations=${items} />` : html`<${Empty} title=${query.status ? `No operation is ${query.status}.` : "No operations yet"}><p>Each change of a cluster or a claim is an operation with steps.</p><//>`)}<//><//>`;
}

export function Operation({ id }) {
  const read = useRead("GetOperation", { id }, { news: (event) => event.subject === id || event.subject === read.data?.subject });
  const operation = read.data;
  const events = useRead(operation ? "ListEvents" : null, { subject: operation?.subject, order: "desc", page_size: 20, reason: "Progress" }, { news: (event) => event.subject === operation?.subject });
  useClock(operation?.status === "running" ? 1000 : 3_600_000);
  if (!operation) return html`<div class="head"><h1>Operation</h1></div>${read.error?.status === 404 ? html`<${Empty} title="No such operation"><p class="break">There is none with the id ${id}.</p><${LinkButton} to=${to("operations")}>To the operations<//><//>` : html`<${Ready} read=${read} what="the operation">${() => null}<//>`}`;
  const subject = subjectOf(operation);
  return html`<div class="head"><h1>${operationTitle(operation)} of ${operation.subject_name || operation.subject}</h1><${State} ...${operationState(operation)} /><div class="verbs">${subject && html`<${LinkButton} to=${subject}>To ${operation.subject_name || "its subject"}<//>`}</div></div>
    <div class="facts"><span>Began <b><${Time} at=${operation.created_at} /></b></span><span>Took <b>${took(operation)}</b></span><span>Operation <code class="break">${operation.id}</code></span></div>
    ${read.error && html`<${Failure} error=${read.error} again=${read.again} />`}
    ${operation.error && html`<${Card} kind="failed" icon=${html`<${State} kind="failed" word="failed" bare />`} title=${`Failed in step ${operation.error.phase}`}><div class="body"><pre class="said" tabindex="0">${operation.error.cause}</pre>${operation.error.hint && html`<p class="prose">${operation.error.hint}</p>`}<p class="small quiet">Error ${operation.error.error_type}${operation.error.cause_type ? `, cause ${operation.error.cause_type}` : ""}</p></div><//>`}
    <${Card} title="Steps" about=${progressText(operation)} end=${html`<${Copies} command=${asCommand("operation", "describe", operation.id)} ask=${["GetOperation", { id: operation.id }]} />`}><${Attempts} operation=${operation} /><${Timeline} operation=${operation} lines=${operation.status === "running" ? events.data?.items || [] : []} /><//>
    ${operation.changes.length > 0 && html`<${Card} title="What it changes"><ul class="body">${operation.changes.map((change) => html`<li key=${change.pointer}><code class="break">${change.pointer}</code> <span class="bad">− ${text(change.before)}</span> <span class="ok">+ ${text(change.after)}</span></li>`)}</ul><//>`}`;
}
