// Operations: what runs and ran, with all attempts.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { useClock, usePages, useRead } from "../core/data.js";
import { duration, moment, month, NOTHING, plural, since } from "../core/format.js";
import { operationState, operationTitle, phaseState } from "../core/model.js";
import { Link, setQuery, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Pages, Table } from "../parts/table.js";
import { Button, Card, Copies, Empty, Failure, LinkButton, Ready, Time } from "../parts/ui.js";

const STEPS_MS = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 1.8e6, 3.6e6, 1.08e7, 2.16e7, 8.64e7, 6.048e8];

/** Marks of the axis: at most four of round times. */
function marks(span) {
  const step = STEPS_MS.find((each) => span / each <= 4) || span / 4;
  return [...Array(Math.floor(span / step) + 1)].map((_, n) => n * step);
}

export const stepsDone = (operation) => operation.phases.filter((phase) => phase.state === "succeeded" || phase.state === "skipped").length;
export const runningStep = (operation) => operation.phases.find((phase) => phase.state === "running");

/** Rows of steps. `lines` are events with what the running step says. */
export function Timeline({ operation, lines = [] }) {
  const running = operation.status === "running";
  useClock(running ? 1000 : 3_600_000);
  const begun = operation.phases.filter((phase) => phase.started_at).map((phase) => Date.parse(phase.started_at));
  const start = begun.length ? Math.min(...begun) : Date.parse(operation.created_at);
  const ends = operation.phases.filter((phase) => phase.ended_at).map((phase) => Date.parse(phase.ended_at));
  const span = Math.max(100, (running ? Date.now() : Math.max(start, ...ends)) - start), axis = marks(span);
  const left = (ms) => `${Math.min(100, (ms / span) * 100)}%`;
  return html`<div class="timeline" role="table" aria-label="Steps">
    <div role="row" class="head"><span role="columnheader"><span class="unseen">State</span></span><span role="columnheader">Step</span>
      <span role="columnheader" class="axis"><span class="unseen">Time</span>${axis.map((ms) => html`<i key=${ms} style=${{ left: left(ms) }} aria-hidden="true">${ms ? duration(ms).replace(/[.,]0 s/, " s") : "0 s"}</i>`)}</span>
      <span role="columnheader" class="num">Took</span><span role="columnheader">What it says</span></div>
    ${operation.phases.map((phase) => {
      const from = phase.started_at ? Date.parse(phase.started_at) - start : null, to = phase.ended_at ? Date.parse(phase.ended_at) - start : span;
      const state = phaseState(phase.state), took = from === null ? null : to - from;
      return html`<div role="row" key=${phase.name} class="step ${phase.state}"><span role="cell"><${State} ...${state} bare /></span><span role="cell" class="name break">${phase.name}</span>
        <span role="cell" class="axis">${axis.map((ms) => html`<b key=${ms} style=${{ left: left(ms) }}></b>`)}${from !== null && html`<u class="fill" style=${{ left: left(from), width: `max(3px, ${((to - from) / span) * 100}%)` }}></u>`}</span>
        <span role="cell" class="num took">${took === null ? NOTHING : duration(took)}</span>
        <span role="cell" class="says break">${phase.attempt > 1 ? html`<span class="quiet">attempt ${phase.attempt} </span>` : null}${phase.message}</span>
        ${phase.state === "running" && lines.length > 0 && html`<ul class="progress" role="cell">${lines.slice(0, 5).reverse().map((event) => html`<li key=${event.id}><${Time} at=${event.time} /><span class="break">${event.message}</span></li>`)}</ul>`}</div>`;
    })}</div>`;
}

/** "step 3 of 7, 28 %, 31 s". */
export function progressText(operation) {
  const at = operation.phases.findIndex((phase) => phase.state === "running");
  const elapsed = duration((operation.status === "running" ? Date.now() : Date.parse(operation.updated_at)) - Date.parse(operation.created_at));
  if (operation.status === "running") return `step ${(at < 0 ? stepsDone(operation) : at) + 1} of ${operation.phases.length}, ${operation.progress} %, ${elapsed}`;
  return `${stepsDone(operation)} of ${plural(operation.phases.length, "step")} done, ${moment(operation.updated_at)}`;
}

/** Failures of earlier attempts of an operation, newest first, from the operation itself. */
export const earlier = (operation) => [...(operation.failures || [])].sort((a, b) => b.attempt - a.attempt);

export function Attempts({ operation }) {
  return earlier(operation).filter((failure) => !(operation.status === "failed" && failure.current)).map((failure) => html`<details class="attempt" key=${failure.attempt}>
    <summary><${State} kind="failed" word=${`Attempt ${failure.attempt} failed`} /><span class="second">${failure.failed_at ? html`at <${Time} at=${failure.failed_at} /> ` : ""}in ${failure.phase}</span></summary>
    <div class="inner"><pre class="said" tabindex="0">${failure.cause}</pre>${failure.hint && html`<p class="second prose">${failure.hint}</p>`}
      ${operation.status === "succeeded" && html`<p>${operation.changes.length ? html`Cured by: ${operation.changes.map((each) => `${each.field || each.pointer} ${text(each.before)} → ${text(each.after)}`).join(", ")}` : "Cured by another try with the same settings."}</p>`}
      <p class="small quiet">Error ${failure.error_type}${failure.cause_type ? `, cause ${failure.cause_type}` : ""}</p></div></details>`);
}

/** A value of a record, in a line. */
export const text = (value) => (value === null || value === undefined || value === "" ? "nothing" : typeof value === "object" ? JSON.stringify(value) : String(value));

function Ways({ cluster, operation }) {
  const again = useRead(may("ResumeCluster") ? "ResumeCluster" : null, { id: cluster.id, dry_run: true }, { body: {} });
  const price = again.data?.plan.price;
  const rows = [
    may("ResumeCluster") && ["Try it again", "Nothing. It goes on from the failed step.", price ? month(price.month ?? price.known_month) : null, html`<${LinkButton} kind="row" to=${to(["clusters", cluster.name, "resume"])}>Resume<//>`],
    may("ResumeCluster") && operation.kind === "create_cluster" && ["Other settings", "Type, zone, subnet or anything else that the failed step reads.", "in the plan", html`<${LinkButton} kind="row" to=${to(["clusters", cluster.name, "resume"], { edit: 1 })}>Edit…<//>`],
    may("DeleteCluster") && ["Give up", "Removes all that was made; the plan names each thing.", month(0), html`<${LinkButton} kind="row danger" to=${to(["clusters", cluster.name, "delete"])}>Delete…<//>`],
  ].filter(Boolean);
  if (!rows.length) return html`<p class="second">Somebody with the role operator or admin may resume or delete it.</p>`;
  return html`<ul class="ways" aria-label="Ways to go on">${rows.map(([way, what, money, verb]) => html`<li key=${way}><span class="strong">${way}</span><span class="second">${what}</span><span class="num">${money ?? "–"}<span class="small quiet"> USD/month</span></span><span class="verb">${verb}</span></li>`)}</ul>`;
}

export function FailedCard({ cluster, operation }) {
  const error = operation.error;
  return html`<${Card} kind="failed" icon=${html`<${State} kind="failed" word="failed" bare />`} title=${`${operationTitle(operation)} failed in step ${error.phase}`} end=${html`<span><${Time} at=${operation.updated_at} />, attempt ${Math.max(1, ...operation.phases.map((phase) => phase.attempt))}</span>`}
    foot=${html`<span class="break">Error ${error.error_type}${error.cause_type ? `, cause ${error.cause_type}` : ""}, operation <code>${operation.id}</code></span><span class="end"><${Copies} command=${asCommand("cluster", "resume", cluster.name)} ask=${["ResumeCluster", { id: cluster.name }, {}]} /></span>`}>
    <div class="body"><h3>What the cloud said</h3><pre class="said" tabindex="0">${error.cause}</pre>
      ${error.console && html`<details><summary>The machine's console, its last lines</summary><pre class="said" tabindex="0">${error.console.split("\n").slice(-20).join("\n")}</pre></details>`}
      ${error.hint && html`<h3>What you can do</h3><p class="prose">${error.hint}</p>`}<${Ways} cluster=${cluster} operation=${operation} /></div><//>`;
}

function Stop({ cluster, operation }) {
  const [busy, set] = useState(null), [error, fail] = useState(null);
  if (operation.status !== "running" || /^(create|delete)_/.test(operation.kind) || !may("CancelChange")) return null;
  const stop = async () => {
    set("Stopping");
    try { await call("CancelChange", { id: cluster.id, operation: operation.id }); } catch (raised) { fail(raised); }
    set(null);
  };
  return html`<${Button} kind="row" writes busy=${busy} onClick=${stop}>Stop after this step<//>${error && html`<${Failure} error=${error} />`}`;
}

export function OperationCard({ cluster, operation, lines }) {
  const running = operation.status === "running";
  useClock(running ? 1000 : 3_600_000);
  const failedOnes = earlier(operation).length;
  if (!running && operation.status !== "failed" && !failedOnes) {
    const took = duration(Date.parse(operation.updated_at) - Date.parse(operation.created_at));
    return html`<${Card}><details class="attempt"><summary><${State} ...${operationState(operation)} /><span>Last change: ${operationTitle(operation).toLowerCase()}, ${since(operation.updated_at)} ago, took ${took}</span></summary>
      <${Timeline} operation=${operation} /><p class="aside"><${Link} to=${to(["operations", operation.id])}>Its own page<//></p></details><//>`;
  }
  const attempt = Math.max(1, ...operation.phases.map((phase) => phase.attempt));
  const title = running ? operationTitle(operation) : operation.status === "failed" ? `Attempt ${attempt}` : `${operationTitle(operation)} done with attempt ${attempt}`;
  return html`<${Card} icon=${html`<${State} ...${operationState(operation)} bare />`} title=${title} about=${progressText(operation)} end=${html`<${Copies} command=${asCommand("operation", "wait", operation.id)} ask=${["GetOperation", { id: operation.id }]} /><${Stop} cluster=${cluster} operation=${operation} />`}>
    ${running && html`<div class="meter" role="progressbar" aria-label="Progress" aria-valuenow=${operation.progress} aria-valuemin="0" aria-valuemax="100"><div style=${{ width: `${operation.progress}%` }}></div></div>`}
    <${Attempts} operation=${operation} /><${Timeline} operation=${operation} lines=${lines} />
    ${running && html`<p class="unseen" role="status">${progressText(operation).split(",")[0]}</p>`}<//>`;
}

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

const steps = (each) => html`<h2 class="break">${operationTitle(each)} of ${each.subject_name || each.subject}</h2><p><${State} ...${operationState(each)} /></p>${says(each) && html`<p class="break">${says(each)}</p>`}<${Timeline} operation=${each} lines=${[]} />`;

export function OperationTable({ operations, withSubject = true }) {
  useClock(operations.some((each) => each.status === "running") ? 1000 : 3_600_000);
  return html`<${Table} label="Operations" columns=${columns(withSubject)} rows=${operations} keyOf=${(each) => each.id} address=${(each) => to(["operations", each.id])} peek=${withSubject ? steps : null}
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
