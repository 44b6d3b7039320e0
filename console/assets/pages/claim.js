// One claim: why this machine, why it waits, why it may not leave.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { asCommand, call, freshKey, may } from "../core/api.js";
import { useClock, usePages, useRead } from "../core/data.js";
import { bare, difference, duration, hour, HOURS, month, NOTHING, plural, price, resources, short, since, unit } from "../core/format.js";
import { claimState, isStuck, unmet } from "../core/model.js";
import { go, Link, setQuery, to } from "../core/router.js";
import { Funnel, funnelRows, GapBar, Ladder } from "../parts/explain.js";
import { Icon, State } from "../parts/icons.js";
import { EventList } from "../parts/latest.js";
import { offer } from "../parts/palette.js";
import { PlanState, PlanView, usePlan } from "../parts/plan.js";
import { Pages, Table } from "../parts/table.js";
import { Bar, Button, Card, Copies, Copy, Dialog, Empty, Failure, LinkButton, Menu, NameDialog, Ready, Tabs, Time } from "../parts/ui.js";
import { Conditions, Facts, PhaseFilter, Used, useUsage } from "./cluster.js";

const costs = (claim) => (claim.placement ? price(claim.placement.usd_hour) : NOTHING);
const zone = (claim) => (claim.placement?.zones || []).map((each) => (each === "*" ? "any" : each)).join(", ") || NOTHING;
export const whyOf = (claim) => (isStuck(claim) || claim.phase === "Failed" || claim.deleting ? claim.message || claim.reason : null);

const columns = (withCluster, used) => [
  { key: "name", head: "Claim", kind: "name", cell: (claim) => claim.name },
  { key: "state", head: "State", cell: (claim) => html`<${State} ...${claimState(claim)} />`, sort: (claim) => claimState(claim).word },
  withCluster && { key: "cluster", head: "Cluster", kind: "break", cell: (claim) => html`<${Link} to=${to(["clusters", withCluster.get(claim.cluster_id) || claim.cluster_id])}>${withCluster.get(claim.cluster_id) || claim.cluster_id}<//>` },
  { key: "type", head: "Type", kind: "fact tight", cell: (claim) => html`${claim.placement ? bare(claim.placement.type) : NOTHING}${whyOf(claim) ? html`<span class="small second why-line" title=${whyOf(claim)}>${whyOf(claim).split(": ")[0]}</span>` : null}` },
  used && { key: "used", head: "Pods ask for", from: 900, cell: (claim) => html`<${Used} used=${used.get(claim.id)} />` },
  { key: "capacity", head: "Capacity", from: 900, kind: "tight", cell: (claim) => claim.placement?.capacity_type || NOTHING },
  { key: "zone", head: "Zone", from: 1200, kind: "tight", cell: zone },
  { key: "hour", head: unit(), num: true, kind: "fact", cell: costs, sort: (claim) => claim.placement?.usd_hour || 0 },
  { key: "age", head: "Age", num: true, cell: (claim) => since(claim.created_at), sort: (claim) => -Date.parse(claim.created_at) },
].filter(Boolean);

const line = (withCluster) => (claim) => ({
  icon: html`<${State} ...${claimState(claim)} bare />`, title: claim.name, word: html`<span class="second">${claimState(claim).word}</span>`,
  facts: [withCluster && (withCluster.get(claim.cluster_id) || claim.cluster), claim.placement ? bare(claim.placement.type) : resources(claim.resources), claim.placement?.capacity_type, since(claim.created_at)], why: whyOf(claim)?.split(": ")[0], number: costs(claim), unit: unit(),
});

/** `clusters`: names by id, where the list is of more than one. */
export const ClaimTable = ({ claims, clusters = null, chosen = null, peek = null, used = null }) => html`<${Table} label="Claims" columns=${columns(clusters, used)} rows=${claims} keyOf=${(claim) => claim.id} chosen=${chosen} line=${line(clusters)} address=${(claim) => to(["claims", claim.name])} verbs=${rowVerbs} peek=${peek} />`;

const rowVerbs = (claim) => [
  ["Open", to(["claims", claim.name])],
  may("PowerNodeClaim") && claim.machine_id && ["Power…", to(["claims", claim.name], { do: "power" })], may("ChangeNodeClaim") && ["Labels…", to(["claims", claim.name], { do: "labels" })],
  may("DeleteNodeClaim") && !claim.deleting && ["Give back…", to(["claims", claim.name], { do: "give" })],
].filter(Boolean);

const upper = (text) => text.replace(/^./, (letter) => letter.toUpperCase());
const place = (cure) => `${cure.capacity_type}, ${cure.zones.map((zone) => (zone === "*" ? "any zone" : zone)).slice(0, 3).join(", ")}, ${plural(cure.fits, "type fits", "types fit")}`;

/** `found`: {cures, passing, tried} of an explanation. */
export function Cures({ claim, found }) {
  if (!found) return null;
  return html`<${Card} title="What would get a machine" about=${`${plural(found.tried, "change")} looked at`} end=${html`<${Copies} command=${asCommand("claim", "explain", claim.name)} ask=${["ExplainNodeClaim", { id: claim.name, cures: true }]} />`}>
    ${found.passing.map((text) => html`<p class="aside prose" key=${text}>${text}</p>`)}
    ${found.cures.length ? html`<ul class="cures">${found.cures.map((cure) => html`<li key=${cure.change}><div><p class="strong break">${upper(cure.change)}</p><p class="small second break">${resources(cure.body.resources)}</p></div>
      <div><p class="break">${bare(cure.type)}</p><p class="small second break">${place(cure)}</p></div><div class="num"><p>${hour(cure.usd_hour)}</p><p class="small quiet">${cure.usd_hour === null ? "USD/hour" : `${month(cure.usd_hour * HOURS)} a month`}</p></div>
      <div class="num">${may("CreateNodeClaim") && !claim.pool && html`<${LinkButton} kind="row" to=${to(["claims", "new"], { body: JSON.stringify(cure.body) })}>Use…<//>`}</div></li>`)}</ul>` : html`<p class="aside second">No single change would: it needs another machine, or more than one thing less.</p>`}
    ${!may("CreateNodeClaim") && html`<p class="aside second">Somebody with the role operator or admin may ask for something else.</p>`}<//>`;
}

export function GiveBack({ claim, onClose }) {
  const plan = useRead("DeleteNodeClaim", { id: claim.id, dry_run: true });
  const [busy, set] = useState(null), [error, fail] = useState(null);
  const done = async () => {
    set("Giving back");
    try { await call("DeleteNodeClaim", { id: claim.id }); onClose(); } catch (raised) { fail(raised); set(null); }
  };
  return html`<${NameDialog} name=${claim.name} verb="Give back" onDone=${done} onClose=${onClose} busy=${busy}><p class="second break">${plan.data?.plan.verdict || (claim.machine_id ? "Its pods are moved within their budgets, then its machine is given back." : "It has no machine yet; nothing else goes.")}</p>
    ${claim.placement?.usd_hour ? html`<p>It costs ${hour(claim.placement.usd_hour)} USD/hour now.</p>` : null}${error && html`<${Failure} error=${error} />`}<//>`;
}

/** A dialog with a field, the plan of what it asks, and a button. `ask`: [operation, args, {body, headers}]. */
function Planned({ title, verb, ask, command, onClose, children }) {
  const state = usePlan(ask), [busy, set] = useState(null), [error, fail] = useState(null), [key] = useState(freshKey);
  const why = !ask ? "Nothing is changed yet" : state.error ? "The plan was refused" : !state.plan || state.asking ? "The plan is made" : null;
  const done = async (event) => {
    event.preventDefault();
    if (why) return;
    set("Applying");
    fail(null);
    try { await call(ask[0], ask[1], { ...ask[2], headers: { "Idempotency-Key": key, ...ask[2].headers } }); onClose(); } catch (raised) { fail(raised); set(null); }
  };
  return html`<${Dialog} label=${title} onClose=${onClose} kind="broad"><form class="inside" onSubmit=${done}><div class="spread"><h2>${title}</h2>${ask && html`<${Copies} command=${command} ask=${[ask[0], ask[1], ask[2].body]} />`}</div>${children}
    <${PlanState} state=${state} idle="Change something, and the plan stands here." />${state.plan && html`<${PlanView} plan=${state.plan} asking=${state.asking} />`}${error && html`<${Failure} error=${error} />`}
    <div class="buttons"><${Button} onClick=${onClose}>Cancel<//><${Button} type="submit" kind="primary" writes busy=${busy} why=${why}>${verb}<//></div></form><//>`;
}

export function Power({ claim, onClose }) {
  const [state, set] = useState(claim.power === "Off" ? "On" : "Reboot");
  return html`<${Planned} title=${`Power of ${claim.name}`} verb="Apply" onClose=${onClose} command=${asCommand("claim", "power", claim.name, state.toLowerCase())} ask=${["PowerNodeClaim", { id: claim.id }, { body: { state } }]}>
    <label class="field"><span>Its machine shall be</span><select class="input" autofocus onChange=${(event) => set(event.target.value)}>${[["On", "on"], ["Off", "off; its disk stays and is paid for"], ["Reboot", "restarted once"]].map(([value, text]) => html`<option key=${value} value=${value} selected=${value === state}>${text}</option>`)}</select></label><//>`;
}

const pairs = (labels) => Object.entries(labels).map(([key, value]) => `${key}=${value}`).join("\n");
/** Merge patch from labels to lines of `key=value`; a label that has no line goes. */
export function labelPatch(labels, typed) {
  const next = Object.fromEntries(typed.split(/\n/).map((line) => line.trim()).filter(Boolean).map((line) => [line.split("=")[0].trim(), line.split("=").slice(1).join("=").trim()]));
  const patch = Object.fromEntries(Object.entries(next).filter(([key, value]) => labels[key] !== value));
  for (const key of Object.keys(labels)) if (!(key in next)) patch[key] = null;
  return patch;
}

export function Labels({ claim, onClose }) {
  const [typed, set] = useState(pairs(claim.labels)), patch = labelPatch(claim.labels, typed);
  const ask = Object.keys(patch).length ? ["ChangeNodeClaim", { id: claim.id }, { body: { labels: patch }, headers: { "If-Match": `"${claim.version}"` } }] : null;
  return html`<${Planned} title=${`Labels of ${claim.name}`} verb="Apply" onClose=${onClose} ask=${ask} command=${asCommand("claim", "update", claim.name, "--with", "patch.json")}>
    <label class="field"><span>Labels, one a line: key=value</span><textarea class="input" rows="6" autofocus spellcheck="false" value=${typed} onInput=${(event) => set(event.target.value)}></textarea></label><//>`;
}

export function Claims({ query }) {
  const pages = usePages("ListNodeClaims", { order: "desc", phase: query.phase, cluster: query.cluster, provider: query.provider, pool: query.pool }, { news: (event) => event.detail_type === "NodeClaim" });
  const clusters = useRead("ListClusters", { page_size: 200 });
  const names = new Map((clusters.data?.items || []).map((each) => [each.id, each.name]));
  const filters = ["cluster", "provider", "pool"].filter((key) => query[key]);
  const typed = (query.q || "").toLowerCase(), shown = (pages.items || []).filter((claim) => `${claim.name} ${names.get(claim.cluster_id) || ""} ${claim.type} ${claim.reason}`.toLowerCase().includes(typed));
  return html`<div class="head"><h1>Claims</h1>${may("CreateNodeClaim") && html`<div class="verbs"><${LinkButton} kind="primary" icon="plus" to=${to(["claims", "new"])}>Claim a node<//></div>`}</div>
    <${Card} foot=${html`<${Pages} pages=${pages} shown=${shown.length} noun="claims" /><span class="end"><${Copies} command=${asCommand("claim", "list")} ask=${["ListNodeClaims", { order: "desc" }]} /></span>`}>
      <div class="tools"><label class="filter"><span class="unseen">Filter claims of this page</span><input class="input plain" data-filter type="search" placeholder="Filter this page" value=${query.q || ""} onInput=${(event) => setQuery({ q: event.target.value || null })} /></label><${PhaseFilter} value=${query.phase} />
        ${filters.map((key) => html`<button key=${key} type="button" class="chip on" onClick=${() => setQuery({ [key]: null })}>${key} ${query[key]} ×</button>`)}</div>
      <${Ready} read=${{ ...pages, data: pages.items }} what="claims" rows=${8}>${(items) => (shown.length ? html`<${ClaimTable} claims=${shown} clusters=${names} peek=${(claim) => html`<h2 class="break">${claim.name}</h2><p><${State} ...${claimState(claim)} /></p>${whyOf(claim) && html`<p class="break">${whyOf(claim)}</p>`}
        <${Facts} rows=${[["Cluster", names.get(claim.cluster_id)], ["Node", claim.node_name], ["Asked", resources(claim.resources)], ["Type", claim.placement?.type], ["Zone", claim.placement?.zones], [unit(), claim.placement ? price(claim.placement.usd_hour) : undefined], ["Does not hold", unmet(claim.conditions).map((each) => `${each.type}: ${each.message || each.reason}`)]]} />`} />` : html`<${Empty} title=${items.length ? "No claim of this page has these words." : query.phase || filters.length ? "No claim is like this." : "No claims yet"}>
        <p>A claim asks for one machine that becomes a node of a cluster; pools make claims by themselves.</p>${(query.phase || query.q || filters.length > 0) && html`<${Button} onClick=${() => setQuery({ phase: null, q: null, cluster: null, provider: null, pool: null })}>Clear filter<//>`}<//>`)}<//><//>`;
}

const asked = (claim) => [resources(claim.resources).replace("–", ""), claim.provider && `provider ${claim.provider}`, ...claim.requirements.map((each) => `${each.key.split("/").pop()} ${each.operator === "In" ? each.values.slice(0, 4).join(" or ") + (each.values.length > 4 ? ` or ${each.values.length - 4} more` : "") : `${each.operator} ${each.values.join(", ")}`}`)].filter(Boolean).join(", ") || "any machine";

/** Sentence of why it was not the least, from what the explanation has. */
function notTheLeast(chosen, options, passedOver) {
  const least = options[0];
  if (!least || least.usd_hour === null || chosen.usd_hour === null) return "Its price is not known, so there is nothing to compare.";
  const more = chosen.usd_hour - least.usd_hour;
  if (more < 0.00005) return options.length > 1 ? `It is the cheapest of ${plural(options.length, "offer")} that fit${options.length === 1 ? "s" : ""}.` : "It is the cheapest that fits.";
  const reason = passedOver[least.type];
  return `Cheapest was ${bare(least.type)}. The provider was given the ${plural(options.length, "cheapest offer")} and took this one${reason ? `: ${reason}` : ""}. The difference is ${hour(more)} USD/hour, ${difference(more * HOURS)} USD/month.`;
}

function ladderRows(explanation) {
  const { chosen, options, candidates, passed_over: passedOver } = explanation;
  const rows = options.map((each) => ({ key: `${each.type} ${each.capacity_type}`, name: bare(each.type), usd: each.usd_hour, about: each.capacity_type, why: passedOver[each.type], chosen: Boolean(chosen) && each.type === chosen.type && each.capacity_type === chosen.capacity_type }));
  const seen = new Set(options.map((each) => each.type));
  for (const each of candidates) if (each.rule === null && !seen.has(each.type)) { seen.add(each.type); rows.push({ key: each.type, name: bare(each.type), usd: each.usd_hour, about: each.capacity_type }); }
  return rows.sort((a, b) => (a.usd ?? Infinity) - (b.usd ?? Infinity));
}

function WhyThis({ claim, explanation }) {
  const { chosen, options } = explanation, rows = ladderRows(explanation);
  const { bound, gap } = explanation;
  const funnel = funnelRows(explanation.considered, explanation.groups, options.length, 1);
  return html`<${Card}><div class="verdict"><div><span class="label">Chosen</span><p><span class="figure">${bare(chosen.type)}</span> <span class="second">${chosen.capacity_type}, ${chosen.zones.map((zone) => (zone === "*" ? "any zone" : zone)).join(", ")}, provider ${chosen.provider}</span></p><p class="second prose">${notTheLeast(chosen, options, explanation.passed_over)}${explanation.opt_in ? ` ${explanation.opt_in}` : ""}</p></div>
      <div class="nums"><div><span class="label">USD/hour</span><p class="figure">${hour(chosen.usd_hour)}</p></div><div title="Each type was looked at: no machine that fits and can be had costs less now"><span class="label">Proven bound</span><p class="figure light">${bound === null ? "none" : hour(bound)}</p></div><div><span class="label">Gap</span><p class="figure">${gap === null ? "none" : gap < 0.0005 ? "0 %" : `+${Math.round(gap * 100)} %`}</p></div></div></div><//>
    <div class="columns half"><${Card} title=${`From ${funnel.total.toLocaleString()} types to one`} end=${explanation.decided_at && html`<span>decided <${Time} at=${explanation.decided_at} /></span>`} foot=${html`<span>A type counts at the first rule that it breaks. Open a row to see its types.</span><span class="end"><${Copies} command=${asCommand("claim", "explain", claim.name)} ask=${["ExplainNodeClaim", { id: claim.name }]} /></span>`}><${Funnel} ...${funnel} /><//>
      <div class="stack">${gap !== null && gap >= 0.0005 && html`<${Card} title="Gap to the proven bound" end="USD/hour"><${GapBar} usd=${chosen.usd_hour} bound=${bound} what="it costs" least="none that fits costs less than" /><//>`}<${Card} title="Prices of what fits" about=${`${Math.min(10, rows.length)} of ${funnel.fit.toLocaleString()}`} end="USD/hour, dashed: least">${rows.length ? html`<${Ladder} rows=${rows} />` : html`<p class="aside quiet">No price is known.</p>`}<//></div></div>`;
}

function WhyWaits({ claim, explanation }) {
  const funnel = funnelRows(explanation.considered, explanation.groups, 0, 0);
  useClock();
  return html`<${Card} kind="waits" icon=${html`<${State} kind="waits" word="waits" bare />`} title=${claim.message ? "It waits" : "No node type fits"} end=${html`<span>waits ${duration(Date.now() - Date.parse(claim.created_at))}, reason <code>${claim.reason}</code></span>`}><div class="body"><p class="prose">${claim.message || explanation.message}</p><p class="second prose">It is kept and gets a machine as soon as one fits: it is looked at again with each change of prices and machines. Nothing is paid for it while it waits.</p></div><//>
    <div class="columns wide"><${Card} title=${`What rules out ${funnel.fit ? "types" : `all ${funnel.total.toLocaleString()} types`}`} foot=${html`<span>A type counts at the first rule that it breaks.</span><span class="end"><${Copies} command=${asCommand("claim", "explain", claim.name)} ask=${["ExplainNodeClaim", { id: claim.name }]} /></span>`}><${Funnel} ...${funnel} /><//>
      <${Cures} claim=${claim} found=${explanation.cures} /></div>`;
}

function Leaving({ claim }) {
  const open = claim.conditions.filter((each) => each.status !== "True");
  return html`<${Card} kind="waits" icon=${html`<${State} kind="leaves" word="leaves" bare />`} title="It leaves" end=${claim.drain_until && html`<span>until <${Time} at=${claim.drain_until} /> at the latest</span>`}><div class="body"><p class="prose">${claim.message || "Its pods are moved, then its machine is given back."}</p>
    ${claim.remaining.length > 0 && html`<p class="second">Left: ${claim.remaining.join(", ")}</p>`}${open.map((each) => html`<p key=${each.type} class="small second break">${each.type}: ${each.message}</p>`)}</div><//>`;
}

/** What the pods of its node ask for, of what it has for pods. */
function UsedOf({ claim }) {
  const read = useUsage(claim.node_name && claim.phase === "Available" ? claim.cluster_id : null), node = read.data?.nodes.find((each) => each.claim_id === claim.id);
  if (!node) return null;
  return html`<${Card} title="What its pods ask for" end=${read.data.observed_at && html`<span>agent told ${since(read.data.observed_at)} ago</span>`} foot=${html`<span class="end"><${Copies} command=${asCommand("cluster", "usage", claim.cluster || claim.cluster_id)} ask=${["GetUsage", { id: claim.cluster_id }]} /></span>`}><div class="scroll" tabindex="0" role="region" aria-label="What its pods ask for"><table aria-label="What its pods ask for"><thead><tr><th scope="col">Resource</th><th scope="col" class="num">Asked for</th><th scope="col" class="num">Of</th><th scope="col" class="num">Part</th><th scope="col"><span class="unseen">Part as a bar</span></th></tr></thead>
    <tbody>${Object.keys(node.allocatable).map((name) => html`<tr key=${name}><td class="name">${name}</td><td class="num fact">${node.requested[name]}</td><td class="num">${node.allocatable[name]}</td><td class="num">${Math.round((node.used[name] || 0) * 100)} %</td><td><${Bar} share=${node.used[name] || 0} /></td></tr>`)}</tbody></table></div><//>`;
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

const Why = ({ claim, read }) => html`${claim.deleting && html`<${Leaving} claim=${claim} />`}<${Ready} read=${read} what="why">${(explanation) => (explanation.chosen ? html`<${WhyThis} claim=${claim} explanation=${explanation} /><${UsedOf} claim=${claim} /><${WhyStays} claim=${claim} />` : isStuck(claim) ? html`<${WhyWaits} claim=${claim} explanation=${explanation} />` : html`<${Card}><p class="body second">${explanation.message || claim.message || "It is being placed."}</p><//>`)}<//>`;

export function Claim({ name, tab = "why", query = {} }) {
  const read = useRead("GetNodeClaim", { id: name }, { news: (event) => event.subject === read.data?.id || event.name === name });
  const claim = read.data;
  const explanation = useRead(claim ? "ExplainNodeClaim" : null, { id: claim?.id, ...(claim && isStuck(claim) ? { cures: true } : {}) }, { news: (event) => event.subject === claim?.id });
  const cluster = useRead(claim?.cluster_id ? "GetCluster" : null, { id: claim?.cluster_id });
  const [shown, show] = useState(null);
  useEffect(() => { if (query.do) show(query.do); }, [query.do]);
  useEffect(() => { if (claim && name === claim.id && claim.name !== name) go(to(["claims", claim.name, ...(tab === "why" ? [] : [tab])]), { replace: true }); }, [claim?.id]);
  const verbs = claim && !claim.deleting ? [
    may("PowerNodeClaim") && claim.machine_id && ["Power…", () => show("power")], may("ChangeNodeClaim") && ["Labels…", () => show("labels")],
    may("DeleteNodeClaim") && ["Give back…", () => show("give")]].filter(Boolean) : [];
  useEffect(() => { offer("claim", verbs); return () => offer("claim", null); });
  if (!claim) return html`<div class="head"><h1>${name}</h1></div>${read.error?.status === 404 ? html`<${Empty} title=${`No claim ${name}`}><p>It was never made, or it was given back.</p><${LinkButton} to=${to("claims")}>To the claims<//><//>` : html`<${Ready} read=${read} what="the claim">${() => null}<//>`}`;
  const place = cluster.data?.name || claim.cluster;
  const stuck = isStuck(claim), held = claim.conditions.filter((each) => each.status === "True").length;
  return html`<div class="head"><h1>${claim.name}</h1><${State} ...${claimState(claim)} /><div class="verbs">${stuck && may("CreateNodeClaim") && html`<${LinkButton} to=${to(["claims", "new"], { like: claim.name })}>Ask for something else…<//>`}${verbs.map(([label, action]) => html`<${Button} key=${label} kind=${label === "Give back…" ? "danger" : "from-700"} onClick=${action}>${label}<//>`)}${verbs.length > 1 && html`<span class="to-700"><${Menu} label="More verbs" items=${verbs.slice(0, -1)}><${Icon} name="more" /><//></span>`}</div></div>
    <div class="facts"><span>Cluster <${Link} to=${to(["clusters", place])}>${place}<//></span>${claim.node_name && html`<span>Node <b>${claim.node_name}</b></span>`}${claim.machine_id && html`<span class="chips">Machine <code title=${claim.machine_id}>${short(claim.machine_id)}</code> <${Copy} text=${claim.machine_id} label="Copy" /></span>`}<span>Asked <b>${asked(claim)}</b></span><span>Age <b>${since(claim.created_at)}</b></span>${claim.created_by && html`<span>By <b>${claim.created_by}</b></span>`}</div>
    <${Tabs} current=${tab} address=${(key) => to(["claims", claim.name, ...(key === "why" ? [] : [key])])} items=${[["why", claim.deleting ? "Why it leaves" : stuck ? "Why it waits" : "Why this machine"], ["conditions", "Conditions", `${held} of ${claim.conditions.length}`], ["events", "Events"], ["document", "Document"]]} />
    ${read.error && html`<${Failure} error=${read.error} again=${read.again} />`}
    ${tab === "why" && html`<${Why} claim=${claim} read=${explanation} />`}${tab === "conditions" && html`<${Conditions} conditions=${claim.conditions} />`}${tab === "events" && html`<${Events} claim=${claim} />`}
    ${tab === "document" && html`<${Card} title="Document" end=${html`<${Copies} command=${asCommand("claim", "get", claim.name, "-o", "yaml")} ask=${["GetNodeClaim", { id: claim.name }]} />`}><div class="body"><pre class="said" tabindex="0">${JSON.stringify(claim, null, 2)}</pre></div><//>`}
    ${shown === "power" && html`<${Power} claim=${claim} onClose=${() => show(null)} />`}${shown === "labels" && html`<${Labels} claim=${claim} onClose=${() => show(null)} />`}
    ${shown === "give" && html`<${GiveBack} claim=${claim} onClose=${() => show(null)} />`}`;
}
