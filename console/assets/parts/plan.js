// The plan of a dry run: price now and then, what is replaced, lines that differ, fields, steps, warnings.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { call, net, Offline } from "../core/api.js";
import { difference, month, NOTHING, plural } from "../core/format.js";
import { SessionOver } from "../core/session.js";
import { Icon } from "./icons.js";
import { Failure, Note } from "./ui.js";

const PAUSE_MS = 400;

/** Ask for the plan of what is typed, `PAUSE_MS` after the last key. The last plan stays while the next is asked.
 * `ask`: [operation, args, {body, headers}] or null. Returns {plan, error, asking, at}. */
export function usePlan(ask) {
  const [state, set] = useState({ plan: null, error: null, asking: false, at: 0 });
  const key = JSON.stringify(ask), turn = useRef(0);
  useEffect(() => {
    const mine = ++turn.current;
    if (!ask) { set({ plan: null, error: null, asking: false, at: 0 }); return undefined; }
    set((was) => ({ ...was, asking: true }));
    const control = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { data } = await call(ask[0], { ...ask[1], dry_run: true }, { ...ask[2], signal: control.signal });
        if (turn.current === mine) set({ plan: data?.plan || data, error: null, asking: false, at: Date.now(), whole: data });
      } catch (error) {
        if (turn.current !== mine || error.name === "AbortError" || error instanceof SessionOver) return;
        set((was) => ({ ...was, error, asking: false, plan: error instanceof Offline ? was.plan : null }));
      }
    }, PAUSE_MS);
    return () => { clearTimeout(timer); control.abort(); };
  }, [key, net.offline]);
  return state;
}

const bareName = (name) => name.replace(/^\d+ (nodes?) /, "nodes ").replace(/^./, (letter) => letter.toUpperCase());

/** Price lines of now and then by name without their number: {differ, same}. */
export function priceLines(before, after) {
  const rows = new Map();
  const put = (items, side) => (items || []).forEach((item) => {
    const name = bareName(item.name), row = rows.get(name) || { name, now: null, then: null };
    row[side] = { quantity: (row[side]?.quantity || 0) + item.quantity, month: item.month === null ? null : (row[side]?.month || 0) + item.month };
    rows.set(name, row);
  });
  put(before?.items, "now");
  put(after?.items, "then");
  const all = [...rows.values()].map((row) => ({ ...row, by: (row.then?.month || 0) - (row.now?.month || 0) }));
  return { differ: all.filter((row) => Math.abs(row.by) >= 0.005 || row.now?.quantity !== row.then?.quantity), same: all.filter((row) => Math.abs(row.by) < 0.005 && row.now?.quantity === row.then?.quantity) };
}

export const monthOf = (price) => (price ? price.month ?? price.known_month : 0);
export const changeOf = (plan, before = plan.price_before) => monthOf(plan.price) - monthOf(before);

function Lines({ before, after }) {
  const [all, show] = useState(false), { differ, same } = priceLines(before, after), sum = (rows, side) => rows.reduce((total, row) => total + (row[side]?.month || 0), 0);
  const cells = (row) => html`<tr key=${row.name}><td class="name">${row.name}</td><td class="num from-700">${row.now?.quantity ?? NOTHING}</td><td class="num from-700">${row.then?.quantity ?? NOTHING}</td><td class="num">${row.now ? month(row.now.month) : NOTHING}</td><td class="num fact">${row.then ? month(row.then.month) : NOTHING}</td><td class="num fact from-700">${difference(row.by)}</td></tr>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Price lines"><table aria-label="Price lines"><thead><tr><th scope="col">Price line</th><th scope="col" class="num from-700">Number now</th><th scope="col" class="num from-700">then</th><th scope="col" class="num">Now</th><th scope="col" class="num">Then</th><th scope="col" class="num from-700">Differs by</th></tr></thead>
    <tbody>${differ.map(cells)}${same.length > 0 && (all || !before ? same.map(cells) : html`<tr><td><button type="button" class="button link" onClick=${() => show(true)}>${plural(same.length, "line stays", "lines stay")} as ${same.length === 1 ? "it is" : "they are"}</button></td><td class="from-700"></td><td class="from-700"></td><td class="num">${month(sum(same, "now"))}</td><td class="num">${month(sum(same, "then"))}</td><td class="num from-700">0.00</td></tr>`)}
      <tr class="total"><td class="name">Total</td><td class="from-700"></td><td class="from-700"></td><td class="num">${month(monthOf(before))}</td><td class="num fact">${month(monthOf(after))}</td><td class="num fact from-700">${difference(monthOf(after) - monthOf(before))}</td></tr></tbody></table></div>`;
}

const written = (value) => (value === null || value === undefined ? "nothing" : Array.isArray(value) && value.every((each) => typeof each !== "object") ? value.join(", ") || "nothing" : typeof value === "object" ? JSON.stringify(value) : String(value));

function Things({ title, things, icon, tone }) {
  if (!things.length) return null;
  const kinds = new Map();
  for (const thing of things) kinds.set(thing.kind, [...(kinds.get(thing.kind) || []), thing.name]);
  return html`<div><h3>${title}</h3><ul class="things">${[...kinds].map(([kind, names]) => html`<li key=${kind}><span class=${tone}><${Icon} name=${icon} size=${14} /></span><span class="break"><span class="strong">${names.length} × ${kind.replace(/_/g, " ")}</span> <span class="small second">${names.slice(0, 6).join(", ")}${names.length > 6 ? ` and ${names.length - 6} more` : ""}</span></span></li>`)}</ul></div>`;
}

/** The plan itself. `before` where the plan has no `price_before`. */
export function PlanView({ plan, asking = false, before = plan.price_before }) {
  const now = monthOf(before), then = monthOf(plan.price), by = then - now;
  return html`<div class="plan ${asking ? "asking" : ""}" aria-busy=${String(asking)}>
    <div class="verdict price"><div class="then"><div><span class="label">Now</span><p class="figure light">${month(now)}</p></div><span class="quiet to"><${Icon} name="arrow" /></span><div><span class="label">Then</span><p class="figure">${month(then)}</p></div></div>
      <div class="num"><span class="label">USD/month</span><p class="figure">${difference(by)}${now > 0 ? html`<small>${difference((by / now) * 100).replace(/\.\d+$/, "")} %</small>` : ""}</p></div></div>
    ${plan.price && plan.price.complete === false && html`<p class="aside warn small">Without prices that are not known.</p>`}
    <div class="body">${plan.verdict && html`<p class="prose">${plan.verdict}</p>`}
      ${(plan.rejected || []).map((each) => html`<${Note} key=${each.pointer + each.detail} kind="bad"><code>${each.pointer}</code> ${each.detail}<//>`)}
      ${(plan.warnings || []).map((each) => html`<${Note} key=${each.pointer + each.detail} kind=${each.note ? "plain" : ""}>${each.detail}<//>`)}
      <${Things} title="What leaves" things=${plan.deletes || []} icon="leaves" tone="bad" /><${Things} title="What comes" things=${plan.creates || []} icon="plus" tone="ok" /></div>
    ${plan.price && (plan.price.items.length > 0 || before?.items?.length > 0) && html`<${Lines} before=${before} after=${plan.price} />`}
    ${(plan.changes || []).length > 0 && html`<div class="body"><h3>Fields</h3><ul class="said fields">${plan.changes.map((each) => html`<li key=${each.pointer}>${each.pointer.replace(/^\//, "").replace(/\//g, ".")}<br />  <span class="bad">− ${written(each.before)}</span><br />  <span class="ok">+ ${written(each.after)}</span></li>`)}</ul></div>`}
    ${(plan.steps || []).length > 0 && html`<div class="body"><h3>Steps</h3><ol class="numbered">${plan.steps.map((step) => html`<li key=${step} class="break">${step}</li>`)}</ol></div>`}</div>`;
}

export const PlanState = ({ state, idle }) => html`${state.error && html`<div class="body"><${Failure} error=${state.error} />${state.error.fields?.length > 0 && html`<ul>${state.error.fields.map((each) => html`<li key=${each.pointer} class="bad break"><code>${each.pointer}</code> ${each.detail}</li>`)}</ul>`}</div>`}
  ${state.plan ? null : !state.error && html`<p class="body quiet">${state.asking ? "The plan is made." : idle}</p>`}`;
