// The frame of every page: side bar, top bar, bottom bar, notes of the session and the network.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { may, net, onNet } from "../core/api.js";
import { feed, onFeed } from "../core/feed.js";
import { moment } from "../core/format.js";
import { here, Link, to } from "../core/router.js";
import { actFor, begin, onSession, session, signOut } from "../core/session.js";
import { Icon, State } from "./icons.js";
import { Button, Dialog, Menu } from "./ui.js";

export const PLACES = [
  ["", "Fleet", "yard", "ListClusters"], ["claims", "Claims", "claims", "ListNodeClaims"], ["operations", "Operations", "operations", "ListOperations"],
  ["plan", "Plan", "plan", "PlanPlacements"], ["offers", "Offers", "offers", "ListNodeTypes"], ["costs", "Costs", "costs", "GetCosts"],
];
export const SET_UP = [
  ["providers", "Providers", "providers", "ListNodeProviders"], ["accounts", "Accounts", "accounts", "ListCloudAccounts"], ["sites", "Sites", "sites", "ListSites"],
  ["profiles", "Profiles", "profiles", "ListClusterProfiles"], ["quotas", "Quotas", "quotas", "ListQuotas"], ["audit", "Audit", "audit", "ListAudit"],
];
export const allowed = ([, , , operation]) => may(operation);

const read = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
const keep = (name, value) => { try { if (value === null) localStorage.removeItem(name); else localStorage.setItem(name, value); } catch { /* storage may be off */ } };

export function setTheme(theme) {
  keep("stockyard.theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
}

/** Draws again whenever session, network or feed change. */
export function useWorld() {
  const [, draw] = useState(0);
  useEffect(() => {
    const again = () => draw((n) => n + 1);
    const stops = [onSession(again), onNet(again), onFeed(again)];
    return () => stops.forEach((stop) => stop());
  }, []);
}

function Feed() {
  if (net.offline) return html`<span class="feed" role="status"><${State} kind="degraded" word="Offline" bare /><span>Offline</span></span>`;
  const [kind, word] = { live: ["ok", "Live"], polling: ["ok", "Live every 15 s"], off: ["degraded", "Offline"], starting: ["idle", "Connecting"] }[feed.state];
  return html`<span class="feed" title="Changes appear by themselves"><${State} kind=${kind} word=${word} bare /><span>${word}</span></span>`;
}

function TenantDialog({ onClose }) {
  const [name, set] = useState(session.acting || "");
  const done = (event) => { event.preventDefault(); actFor(name.trim() || null); onClose(); };
  return html`<${Dialog} onClose=${onClose} label="Act for a tenant"><form class="inside" onSubmit=${done}><h2>Act for a tenant</h2>
    <p class="second">With the platform's role, pages show this tenant until you end it. The API records who you are.</p>
    <label class="field"><span>Tenant</span><input class="input" autofocus value=${name} placeholder="acme" onInput=${(event) => set(event.target.value)} /></label>
    <div class="buttons"><${Button} onClick=${() => { actFor(null); onClose(); }}>End it<//><${Button} kind="primary" type="submit">Show the tenant<//></div></form><//>`;
}

function Me({ onTenant, narrow }) {
  const { name, tenant, roles } = session.person;
  const role = roles.map((each) => each.replace("stockyard-", "")).pop() || "no role";
  const theme = read("stockyard.theme") || "system";
  return html`<div class="me"><${Menu} kind="person" label=${`${name}, ${tenant}, ${role}`} items=${[
    ["Theme: system", () => setTheme("system"), { why: theme === "system" && "This is the theme now" }], ["Theme: light", () => setTheme("light")], ["Theme: dark", () => setTheme("dark")],
    [`Single keys: ${read("stockyard.keys") === "off" ? "switch on" : "switch off"}`, () => keep("stockyard.keys", read("stockyard.keys") === "off" ? null : "off")],
    roles.includes("stockyard-platform") && ["Act for a tenant…", onTenant], ["Sign out", signOut]]}>
    <span class="letter" aria-hidden="true">${name.slice(0, 1).toUpperCase()}</span><span class="text"><span class="who">${name}</span><span class="small quiet">${tenant} · ${role}</span></span><//></div>`;
}

const Place = ({ place: [path, label, icon], current, number }) => html`<${Link} to=${to(path)} aria-current=${current ? "page" : undefined} title=${label}>
  <${Icon} name=${icon} /><span class="label">${label}</span>${number ? html`<span class="count">${number}</span>` : null}<//>`;

/** The frame around a page. `crumbs`: [text, address] from the tenant on. */
export function Shell({ crumbs, section, counts = {}, onGo, children }) {
  useWorld();
  const [folded, fold] = useState(read("stockyard.side") === "narrow");
  const [wide, setWide] = useState(innerWidth >= 1100);
  const [dialog, show] = useState(null);
  useEffect(() => {
    const measure = () => setWide(innerWidth >= 1100);
    const toggle = () => fold((was) => { keep("stockyard.side", was ? null : "narrow"); return !was; });
    addEventListener("resize", measure);
    addEventListener("stockyard:side", toggle);
    return () => { removeEventListener("resize", measure); removeEventListener("stockyard:side", toggle); };
  }, []);
  const narrow = folded || !wide;
  const nav = (places, label) => html`<nav aria-label=${label}>${places.filter(allowed).map((place) => html`<${Place} key=${place[0]} place=${place} current=${section === place[0]} number=${counts[place[0]]} />`)}</nav>`;
  return html`<a class="skip" href="#page">To the page</a>
    <div class="frame ${narrow ? "narrow" : ""}">
      <aside class="side" aria-label="Places"><${Link} class="brand" to=${to("")} aria-label="Stockyard, to the fleet"><${Icon} name="yard" size=${18} /><span class="label">Stockyard</span><//>
        ${nav(PLACES, "Main")}<h3>Set up</h3>${nav(SET_UP, "Set up")}<${Me} onTenant=${() => show("tenant")} narrow=${narrow} /></aside>
      <div class="main">
        <header class="top ${session.acting ? "acting" : ""}"><nav class="crumb-nav" aria-label="Where you are"><ol class="crumbs">
            <li>${session.person.roles.includes("stockyard-platform") ? html`<button type="button" class="button link" onClick=${() => show("tenant")}>${session.acting || session.person.tenant}</button>` : html`<span class="second">${session.person.tenant}</span>`}</li>
            ${crumbs.map(([text, address], n) => html`<li key=${n}>${address ? html`<${Link} to=${address}>${text}<//>` : html`<span class="here" title=${text} aria-current="page">${text}</span>`}</li>`)}</ol></nav>
          <button type="button" class="go" onClick=${onGo} aria-label="Go to or do"><${Icon} name="search" size=${14} /><span>Go to or do…</span><kbd>Ctrl K</kbd></button><${Feed} /></header>
        ${session.state === "over" && html`<div class="bar-note" role="alert"><${Icon} name="lock" size=${14} /><span>Your session has ended. What you typed is kept. Sign in again to go on.</span><${Button} kind="primary" onClick=${() => begin()}>Sign in again<//></div>`}
        ${net.offline && html`<div class="bar-note" role="alert"><${Icon} name="degraded" size=${14} /><span>Offline since ${moment(new Date(net.since).toISOString())}, showing what was read before. The page goes on by itself.</span></div>`}
        <main class="page" id="page" tabindex="-1">${children}</main></div>
      <nav class="bottom" aria-label="Main, phone">${[PLACES[0], PLACES[1], PLACES[3], PLACES[5]].map(([path, label, icon]) => html`<${Link} key=${path} to=${to(path)} aria-current=${section === path ? "page" : undefined}><${Icon} name=${icon} /><span>${label}</span><//>`)}
        <button type="button" onClick=${() => show("more")}><${Icon} name="menu" /><span>More</span></button></nav>
      ${dialog === "tenant" && html`<${TenantDialog} onClose=${() => show(null)} />`}
      ${dialog === "more" && html`<${Dialog} label="More pages" onClose=${() => show(null)}><div class="inside"><h2>More</h2><ul class="more-list">
        ${[PLACES[2], PLACES[4], ...SET_UP].filter(allowed).map(([path, label, icon]) => html`<li key=${path}><${Link} to=${to(path)} onClick=${() => show(null)}><${Icon} name=${icon} />${label}<//></li>`)}</ul>
        <div class="buttons"><${Button} onClick=${() => setTheme(matchMedia("(prefers-color-scheme: dark)").matches || document.documentElement.dataset.theme === "dark" ? "light" : "dark")}>Light or dark<//><${Button} onClick=${signOut}>Sign out<//></div></div><//>`}
    </div>`;
}
