// One claim: why this machine, why it waits, why it may not leave.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { asCommand, call, may } from "../core/api.js";
import { useClock, usePages, useRead } from "../core/data.js";
import { bare, difference, duration, HOURS, hour, plural, resources, short, since } from "../core/format.js";
import { claimState, isStuck } from "../core/model.js";
import { go, Link, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Funnel, funnelRows, Ladder } from "../parts/explain.js";
import { EventList } from "../parts/latest.js";
import { offer } from "../parts/palette.js";
import { Button, Card, Copies, Copy, Empty, Failure, LinkButton, NameDialog, Ready, Tabs, Time } from "../parts/ui.js";
import { Cures } from "./cures.js";
import { Conditions } from "./overview.js";

const asked = (claim) => [resources(claim.resources).replace("–", ""), claim.provider && `provider ${claim.provider}`, ...claim.requirements.map((each) => `${each.key.split("/").pop()} ${each.operator === "In" ? each.values.slice(0, 4).join(" or ") + (each.values.length > 4 ? ` or ${each.values.length - 4} more` : "") : `${each.operator} ${each.values.join(", ")}`}`)].filter(Boolean).join(", ") || "any machine";

/** Sentence of why it was not the least, from what the explanation has. */
function notTheLeast(chosen, options) {
  const least = options[0];
  if (!least || least.usd_hour === null || chosen.usd_hour === null) return "Its price is not known, so there is nothing to compare.";
  const more = chosen.usd_hour - least.usd_hour;
  if (more < 0.00005) return options.length > 1 ? `It is the cheapest of ${plural(options.length, "offer")} that fit${options.length === 1 ? "s" : ""}.` : "It is the cheapest that fits.";
  const spot = chosen.capacity_type === "spot" ? " Of spot the cloud weighs the price against how likely it takes a machine back." : "";
  return `Cheapest was ${bare(least.type)}. The provider was given the ${plural(options.length, "cheapest offer")} and took this one.${spot} The difference is ${hour(more)} USD/hour, ${difference(more * HOURS)} USD/month.`;
}

function ladderRows(explanation) {
  const { chosen, options, candidates } = explanation;
  const rows = options.map((each) => ({ key: `${each.type} ${each.capacity_type}`, name: bare(each.type), usd: each.usd_hour, about: each.capacity_type, chosen: Boolean(chosen) && each.type === chosen.type && each.capacity_type === chosen.capacity_type }));
  const seen = new Set(options.map((each) => each.type));
  for (const each of candidates) if (each.rule === null && !seen.has(each.type)) { seen.add(each.type); rows.push({ key: each.type, name: bare(each.type), usd: each.usd_hour, about: each.capacity_type }); }
  return rows.sort((a, b) => (a.usd ?? Infinity) - (b.usd ?? Infinity));
}

function WhyThis({ claim, explanation }) {
  const { chosen, options } = explanation, rows = ladderRows(explanation);
  const least = rows.find((row) => row.usd !== null)?.usd ?? null;
  const funnel = funnelRows(explanation.considered, explanation.groups, options.length, 1);
  const gap = least && chosen.usd_hour !== null ? chosen.usd_hour / least - 1 : null;
  return html`<${Card}><div class="verdict"><div><span class="label">Chosen</span><p><span class="figure">${bare(chosen.type)}</span> <span class="second">${chosen.capacity_type}, ${chosen.zones.map((zone) => (zone === "*" ? "any zone" : zone)).join(", ")}, provider ${chosen.provider}</span></p><p class="second prose">${notTheLeast(chosen, options)}${explanation.opt_in ? ` ${explanation.opt_in}` : ""}</p></div>
      <div class="nums"><div><span class="label">USD/hour</span><p class="figure">${hour(chosen.usd_hour)}</p></div><div><span class="label">Least that fits</span><p class="figure light">${least === null ? "not known" : hour(least)}</p></div><div><span class="label">Gap</span><p class="figure">${gap === null ? "not known" : gap < 0.0005 ? "0 %" : `+${Math.round(gap * 100)} %`}</p></div></div></div><//>
    <div class="columns half"><${Card} title=${`From ${funnel.total.toLocaleString()} types to one`} end=${explanation.decided_at && html`<span>decided <${Time} at=${explanation.decided_at} /></span>`} foot=${html`<span>A type counts at the first rule that it breaks. Open a row to see its types.</span><span class="end"><${Copies} command=${asCommand("claim", "explain", claim.name)} ask=${["ExplainNodeClaim", { id: claim.name }]} /></span>`}><${Funnel} ...${funnel} /><//>
      <${Card} title="Prices of what fits" about=${`${Math.min(10, rows.length)} of ${funnel.fit.toLocaleString()}`} end="USD/hour, dashed: least">${rows.length ? html`<${Ladder} rows=${rows} />` : html`<p class="aside quiet">No price is known.</p>`}<//></div>`;
}

function WhyWaits({ claim, explanation }) {
  const funnel = funnelRows(explanation.considered, explanation.groups, 0, 0);
  useClock();
  return html`<${Card} kind="waits" icon=${html`<${State} kind="waits" word="waits" bare />`} title=${claim.message ? "It waits" : "No node type fits"} end=${html`<span>waits ${duration(Date.now() - Date.parse(claim.created_at))}, reason <code>${claim.reason}</code></span>`}><div class="body"><p class="prose">${claim.message || explanation.message}</p><p class="second prose">It is kept and gets a machine as soon as one fits: it is looked at again with each change of prices and machines. Nothing is paid for it while it waits.</p></div><//>
    <div class="columns wide"><${Card} title=${`What rules out ${funnel.fit ? "types" : `all ${funnel.total.toLocaleString()} types`}`} foot=${html`<span>A type counts at the first rule that it breaks.</span><span class="end"><${Copies} command=${asCommand("claim", "explain", claim.name)} ask=${["ExplainNodeClaim", { id: claim.name }]} /></span>`}><${Funnel} ...${funnel} /><//>
      <${Cures} claim=${claim} groups=${explanation.groups} /></div>`;
}

function Leaving({ claim }) {
  const open = claim.conditions.filter((each) => each.status !== "True");
  return html`<${Card} kind="waits" icon=${html`<${State} kind="leaves" word="leaves" bare />`} title="It leaves" end=${claim.drain_until && html`<span>until <${Time} at=${claim.drain_until} /> at the latest</span>`}><div class="body"><p class="prose">${claim.message || "Its pods are moved, then its machine is given back."}</p>
    ${claim.remaining.length > 0 && html`<p class="second">Left: ${claim.remaining.join(", ")}</p>`}${open.map((each) => html`<p key=${each.type} class="small second break">${each.type}: ${each.message}</p>`)}</div><//>`;
}

function WhyStays({ claim }) {
  const read = useRead(claim.cluster_id && claim.phase === "Available" && !claim.deleting ? "PreviewDisruption" : null, { id: claim.cluster_id });
  const row = read.data?.nodes.find((each) => each.claim_id === claim.id);
  if (!row) return null;
  return html`<${Card} title="May it leave by itself?" end=${read.data.observed_at && html`<span>agent told ${since(read.data.observed_at)} ago</span>`}><div class="body"><p><${State} kind=${row.leaves ? "leaves" : "stays"} word=${row.leaves ? "would leave now" : "stays"} /> ${row.why.replace(/^./, (letter) => letter.toUpperCase())}.${row.until ? html` Until <${Time} at=${row.until} />.` : ""}</p></div><//>`;
}

function Events({ claim }) {
  const pages = usePages("ListEvents", { subject: claim.id, order: "desc", page_size: 100 }, { news: (event) => event.subject === claim.id });
  return html`<${Card} title="Events" end=${html`<${Copies} ask=${["ListEvents", { subject: claim.id, order: "desc" }]} />`}><${Ready} read=${{ ...pages, data: pages.items }} what="events">${(items) => (items.length ? html`<${EventList} events=${items} />` : html`<p class="aside quiet">Nothing has happened yet.</p>`)}<//><//>`;
}

const Why = ({ claim, read }) => html`${claim.deleting && html`<${Leaving} claim=${claim} />`}<${Ready} read=${read} what="why">${(explanation) => (explanation.chosen ? html`<${WhyThis} claim=${claim} explanation=${explanation} /><${WhyStays} claim=${claim} />` : isStuck(claim) ? html`<${WhyWaits} claim=${claim} explanation=${explanation} />` : html`<${Card}><p class="body second">${explanation.message || claim.message || "It is being placed."}</p><//>`)}<//>`;

function GiveBack({ claim, onClose }) {
  const plan = useRead("DeleteNodeClaim", { id: claim.id, dry_run: true });
  const [busy, set] = useState(null), [error, fail] = useState(null);
  const done = async () => {
    set("Giving back");
    try { await call("DeleteNodeClaim", { id: claim.id }); onClose(); } catch (raised) { fail(raised); set(null); }
  };
  return html`<${NameDialog} name=${claim.name} verb="Give back" onDone=${done} onClose=${onClose} busy=${busy}><p class="second break">${plan.data?.plan.verdict || (claim.machine_id ? "Its pods are moved within their budgets, then its machine is given back." : "It has no machine yet; nothing else goes.")}</p>
    ${claim.placement?.usd_hour ? html`<p>It costs ${hour(claim.placement.usd_hour)} USD/hour now.</p>` : null}${error && html`<${Failure} error=${error} />`}<//>`;
}

export function Claim({ name, tab = "why" }) {
  const read = useRead("GetNodeClaim", { id: name }, { news: (event) => event.subject === read.data?.id || event.name === name });
  const claim = read.data;
  const explanation = useRead(claim ? "ExplainNodeClaim" : null, { id: claim?.id }, { news: (event) => event.subject === claim?.id });
  const cluster = useRead(claim?.cluster_id ? "GetCluster" : null, { id: claim?.cluster_id });
  const [shown, show] = useState(null);
  useEffect(() => { if (claim && name === claim.id && claim.name !== name) go(to(["claims", claim.name, ...(tab === "why" ? [] : [tab])]), { replace: true }); }, [claim?.id]);
  const verbs = claim ? [may("DeleteNodeClaim") && !claim.deleting && ["Give back…", () => show("give")]].filter(Boolean) : [];
  useEffect(() => { offer("claim", verbs); return () => offer("claim", null); });
  if (!claim) return html`<div class="head"><h1>${name}</h1></div>${read.error?.status === 404 ? html`<${Empty} title=${`No claim ${name}`}><p>It was never made, or it was given back.</p><${LinkButton} to=${to("claims")}>To the claims<//><//>` : html`<${Ready} read=${read} what="the claim">${() => null}<//>`}`;
  const place = cluster.data?.name || claim.cluster;
  const stuck = isStuck(claim), held = claim.conditions.filter((each) => each.status === "True").length;
  return html`<div class="head"><h1>${claim.name}</h1><${State} ...${claimState(claim)} /><div class="verbs">${stuck && may("CreateNodeClaim") && html`<${LinkButton} to=${to(["claims", "new"], { like: claim.name })}>Ask for something else…<//>`}${verbs.map(([label, action]) => html`<${Button} key=${label} kind="danger" onClick=${action}>${label}<//>`)}</div></div>
    <div class="facts"><span>Cluster <${Link} to=${to(["clusters", place])}>${place}<//></span>${claim.node_name && html`<span>Node <b>${claim.node_name}</b></span>`}${claim.machine_id && html`<span class="chips">Machine <code title=${claim.machine_id}>${short(claim.machine_id)}</code> <${Copy} text=${claim.machine_id} label="Copy" /></span>`}<span>Asked <b>${asked(claim)}</b></span><span>Age <b>${since(claim.created_at)}</b></span>${claim.created_by && html`<span>By <b>${claim.created_by}</b></span>`}</div>
    <${Tabs} current=${tab} address=${(key) => to(["claims", claim.name, ...(key === "why" ? [] : [key])])} items=${[["why", claim.deleting ? "Why it leaves" : stuck ? "Why it waits" : "Why this machine"], ["conditions", "Conditions", `${held} of ${claim.conditions.length}`], ["events", "Events"], ["document", "Document"]]} />
    ${read.error && html`<${Failure} error=${read.error} again=${read.again} />`}
    ${tab === "why" && html`<${Why} claim=${claim} read=${explanation} />`}${tab === "conditions" && html`<${Conditions} conditions=${claim.conditions} />`}${tab === "events" && html`<${Events} claim=${claim} />`}
    ${tab === "document" && html`<${Card} title="Document" end=${html`<${Copies} command=${asCommand("claim", "get", claim.name, "-o", "yaml")} ask=${["GetNodeClaim", { id: claim.name }]} />`}><div class="body"><pre class="said" tabindex="0">${JSON.stringify(claim, null, 2)}</pre></div><//>`}
    ${shown === "give" && html`<${GiveBack} claim=${claim} onClose=${() => show(null)} />`}`;
}
