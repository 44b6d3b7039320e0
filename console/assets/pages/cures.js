// What would get a machine: dry runs of the claim with one thing less, one after the other, while the page is seen.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { bare, count, hour, HOURS, month, NOTHING, quantity, resources } from "../core/format.js";
import { LinkButton, Card, Copies } from "../parts/ui.js";
import { to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { SessionOver } from "../core/session.js";

const MOST = 6;

const halved = (value) => {
  const [, number, unit] = /^([\d.]+)([A-Za-z]*)$/.exec(String(value)) || [];
  return number ? `${Math.max(unit ? 0.5 : 1, Math.floor(Number(number) / 2))}${unit}` : value;
};

/** Bodies of claims that ask for less: each {name, body}. */
export function cures(claim, groups) {
  const base = { cluster: claim.cluster_id || claim.cluster, resources: claim.resources, requirements: claim.requirements.map(({ key, operator, values }) => ({ key, operator, values })), ...(claim.provider ? { provider: claim.provider } : {}), ...(claim.type ? { type: claim.type } : {}), taints: claim.taints };
  const short = groups.filter((group) => group.rule === "Resource").map((group) => group.message.replace(/^without enough /, "")).filter((name) => name in claim.resources);
  const tries = [];
  if (claim.provider) tries.push({ name: "From any provider", body: { ...base, provider: undefined } });
  if (claim.type) tries.push({ name: "Of any type", body: { ...base, type: undefined } });
  for (const { key } of claim.requirements) tries.push({ name: `Without ${key.split("/").pop()}`, body: { ...base, requirements: base.requirements.filter((each) => each.key !== key) } });
  for (const name of short) {
    const rest = { ...claim.resources };
    delete rest[name];
    if (/\//.test(name)) tries.push({ name: `No ${name}`, body: { ...base, resources: rest } });
    if (quantity(claim.resources[name]) > 1) tries.push({ name: `Half of ${name}`, body: { ...base, resources: { ...claim.resources, [name]: halved(claim.resources[name]) } } });
  }
  const all = Object.fromEntries(Object.entries(claim.resources).map(([name, value]) => [name, halved(value)]));
  if (short.length) tries.push({ name: "Half of everything", body: { ...base, resources: all } });
  const eighth = Object.fromEntries(Object.entries(all).map(([name, value]) => [name, halved(halved(value))]));
  if (short.length) tries.push({ name: "An eighth of everything", body: { ...base, resources: eighth } });
  return tries.slice(0, MOST);
}

const fitting = (plan) => plan.groups.filter((group) => group.rule === "Fits").reduce((sum, group) => sum + group.count, 0);

export function Cures({ claim, groups }) {
  const tries = cures(claim, groups), [answers, set] = useState({});
  const key = JSON.stringify(tries);
  useEffect(() => {
    const control = new AbortController();
    set({});
    (async () => {
      if (!may("CreateNodeClaim")) return;
      for (const each of tries) {
        while (document.hidden && !control.signal.aborted) await new Promise((done) => setTimeout(done, 500));
        if (control.signal.aborted) return;
        try {
          const { data } = await call("CreateNodeClaim", { dry_run: true }, { body: each.body, signal: control.signal });
          set((was) => ({ ...was, [each.name]: data.plan }));
        } catch (error) {
          if (error.name === "AbortError" || error instanceof SessionOver) return;
          set((was) => ({ ...was, [each.name]: { error: error.message } }));
        }
      }
    })();
    return () => control.abort();
  }, [key]);
  if (!may("CreateNodeClaim")) return html`<${Card} title="What would get a machine"><p class="aside second">Somebody with the role operator or admin may ask for something else.</p><//>`;
  return html`<${Card} title="What would get a machine" about="dry runs of this claim, changed" end=${tries[0] && html`<${Copies} command=${asCommand("claim", "create", "--dry-run", "-f", "claim.json")} ask=${["CreateNodeClaim", { dry_run: true }, tries[0].body]} />`}>
    ${tries.length ? html`<ul class="cures">${tries.map((each) => {
      const plan = answers[each.name], price = plan?.price, works = price && (price.hour !== null || plan.creates?.length) && !/will wait/.test(plan.verdict || "");
      return html`<li key=${each.name}><div><p class="strong">${each.name}</p><p class="small second break">${resources(each.body.resources)}</p></div>
        <div>${!plan ? html`<span class="quiet">is asked</span>` : plan.error ? html`<span class="small second break">${plan.error}</span>` : works ? html`<p class="break">${bare(plan.creates.find((thing) => /type|node/.test(thing.kind))?.name || price.items[0]?.name || "")}</p><p class="small second break">${plan.verdict}</p>` : html`<${State} kind="waits" word="would wait too" />`}</div>
        <div class="num"><p>${works ? hour(price.hour) : NOTHING}</p><p class="small quiet">${works && price.hour !== null ? `${month(price.hour * HOURS)} a month` : "USD/hour"}</p></div>
        <div class="num">${works && html`<${LinkButton} kind="row" to=${to(["claims", "new"], { body: JSON.stringify(each.body) })}>Use…<//>`}</div></li>`;
    })}</ul>` : html`<p class="aside second">It asks for so little that there is nothing to leave out.</p>`}<//>`;
}
