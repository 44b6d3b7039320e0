// The steps of an operation on a common axis of time.
import { html } from "../vendor/preact-htm.js";
import { useClock } from "../core/data.js";
import { duration, moment, NOTHING, plural } from "../core/format.js";
import { phaseState } from "../core/model.js";
import { State } from "./icons.js";
import { Time } from "./ui.js";

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
