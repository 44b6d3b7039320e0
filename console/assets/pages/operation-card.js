// The operation of a cluster: what runs, what has failed and how it is cured, what failed before.
import { html, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { useClock, useRead } from "../core/data.js";
import { duration, month, since } from "../core/format.js";
import { operationState, operationTitle } from "../core/model.js";
import { Link, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { progressText, Timeline } from "../parts/timeline.js";
import { Button, Card, Copies, Failure, LinkButton, Time } from "../parts/ui.js";

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
