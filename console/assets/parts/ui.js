// Small parts that every page is made of.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { asRequest, net, Offline } from "../core/api.js";
import { exact, moment } from "../core/format.js";
import { Link } from "../core/router.js";
import { Icon } from "./icons.js";

/** A button. `why` greys it and says why; it keeps the focus. `kind`: primary, quiet, danger, row. */
export function Button({ children, kind = "", icon = null, why = null, busy = null, onClick, type = "button", ...rest }) {
  const id = useRef(`why-${Math.random().toString(36).slice(2)}`);
  const reason = why || (net.offline && rest.writes ? "Offline" : null);
  delete rest.writes;
  const off = Boolean(reason || busy);
  return html`<button ...${rest} type=${type} class="button ${kind}" aria-disabled=${off ? "true" : undefined} title=${reason || rest.title}
    aria-describedby=${reason ? id.current : undefined} onClick=${(event) => { if (off) event.preventDefault(); else onClick?.(event); }}>
    ${icon && html`<${Icon} name=${icon} size=${14} />`}${busy || children}${reason && html`<span class="unseen" id=${id.current}>${reason}</span>`}</button>`;
}

export const LinkButton = ({ children, kind = "", icon = null, ...rest }) =>
  html`<${Link} ...${rest} class="button ${kind}">${icon && html`<${Icon} name=${icon} size=${14} />`}${children}<//>`;

/** Copies a text; says so in its place for two seconds. */
export function Copy({ text, label, icon = "copy", kind = "quiet row" }) {
  const [state, set] = useState("");
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); set("Copied"); } catch { set("Not allowed by the browser"); }
    setTimeout(() => set(""), 2000);
  };
  return html`<button type="button" class="button ${kind}" onClick=${copy} title=${text} data-copy=${label}><${Icon} name=${icon} size=${14} /><span aria-live="polite">${state || label}</span></button>`;
}

/** What a card shows as a command line and as a request. `ask`: [operation, args, body]. */
export const Copies = ({ command = null, ask = null }) => html`<span class="chips">
  ${command && html`<${Copy} text=${command} label="Command" icon="command" />`}
  ${ask && html`<${Copy} text=${asRequest(...ask)} label="Request" />`}</span>`;

/** A card. `end` stands at the right of its head, `foot` below its content. */
export const Card = ({ title, about = null, end = null, foot = null, icon = null, kind = "", children, id }) => html`<section class="card ${kind}" id=${id} aria-label=${typeof title === "string" ? title : undefined}>
  ${title && html`<header>${icon}<h2>${title}</h2>${about && html`<span class="quiet small">${about}</span>`}${end && html`<div class="end small">${end}</div>`}</header>`}
  ${children}${foot && html`<footer>${foot}</footer>`}</section>`;

export const Figures = ({ items }) => html`<dl class="figures">${items.filter(Boolean).map(([label, value, unit, title]) =>
  html`<div key=${label} title=${title}><dt>${label}</dt><dd>${value}${unit && html`<small>${unit}</small>`}</dd></div>`)}</dl>`;

/** A time: short, and exact on hover. */
export const Time = ({ at }) => html`<time datetime=${at} title=${exact(at)}>${moment(at)}</time>`;

export function Note({ kind = "", children, verb = null }) {
  return html`<div class="note ${kind}" role=${kind === "bad" ? "alert" : undefined}><${Icon} name=${kind === "bad" ? "fail" : "degraded"} size=${14} /><p class="break">${children}</p>${verb}</div>`;
}

/** An error of one card or page; the rest of the page works on. */
export function Failure({ error, again = null }) {
  if (error instanceof Offline) return html`<${Note} kind="plain">No answer from the API. It is asked again as soon as there is a network.<//>`;
  const forbidden = error.status === 403;
  return html`<${Note} kind=${forbidden ? "" : "bad"} verb=${error.retryable !== false && !forbidden && again && html`<${Button} kind="row" onClick=${again}>Try again<//>`}>
    ${error.message} ${error.requestId && html`<span class="quiet small">request <code>${error.requestId}</code></span> <${Copy} text=${error.requestId} label="Copy" />`}<//>`;
}

/** Content of a read: its error, rows that stand for what comes, or what is there. */
export function Ready({ read, rows = 4, what = "what there is", children }) {
  const [late, set] = useState(false);
  useEffect(() => { const timer = setTimeout(() => set(true), 150); return () => clearTimeout(timer); }, []);
  const old = read.data && read.at && Date.now() - read.at > 60_000;
  if (read.data !== null) return html`${read.error && html`<${Failure} error=${read.error} again=${read.again} />`}${children(read.data)}${old && html`<p class="small quiet aside">as of ${moment(new Date(read.at).toISOString())}</p>`}`;
  if (read.error) return html`<div class="body"><${Failure} error=${read.error} again=${read.again} /></div>`;
  return html`<div class="rows-sunken" aria-busy="true">${late && [...Array(rows)].map((_, n) => html`<div key=${n}></div>`)}${read.slow && html`<p class="body small quiet" role="status">Reading ${what}.</p>`}</div>`;
}

export const Empty = ({ title, children, page = false }) => html`<div class="empty">${page ? html`<h1 class="large">${title}</h1>` : html`<h2>${title}</h2>`}${children}</div>`;

/** Tabs of a page as links: [key, label, count]. */
export function Tabs({ items, current, address }) {
  const node = useRef(null);
  // A narrow page scrolls its tabs, and the current one is to be seen.
  useLayoutEffect(() => { const tab = node.current.querySelector("[aria-current]"); if (tab) node.current.scrollLeft = tab.offsetLeft - node.current.offsetLeft - 24; }, [current, items.length]);
  return html`<nav ref=${node} class="tabs" aria-label="Parts of this page">${items.map(([key, label, number]) =>
  html`<${Link} key=${key} to=${address(key)} aria-current=${key === current ? "page" : undefined}>${label}${number !== null && number !== undefined && html` <span>${number}</span>`}<//>`)}</nav>`;
}

/** A bar with a share of 0 to 1; the number stands beside it. */
export const Bar = ({ share, thick = false }) => html`<div class="bar ${thick ? "thick" : ""}" aria-hidden="true"><div class="fill" style=${{ width: `${Math.max(share > 0 ? 0.6 : 0, Math.min(1, share) * 100)}%` }}></div></div>`;

/** A dialog. It closes with Escape; the focus returns by itself. */
export function Dialog({ onClose, children, label, kind = "" }) {
  const node = useRef(null);
  // Before it is painted: a key that is pressed as soon as it is seen is for it.
  useLayoutEffect(() => { if (!node.current.open) node.current.showModal(); }, []);
  return html`<dialog ref=${node} class=${kind} aria-label=${label} onClose=${onClose} onClick=${(event) => { if (event.target === node.current) node.current.close(); }}>${children}</dialog>`;
}

/** A menu below a button: items [label, action, {why, danger, key}]. */
export function Menu({ label, children, items, kind = "quiet" }) {
  const [open, set] = useState(false);
  const node = useRef(null);
  useLayoutEffect(() => {
    if (!open) return undefined;
    node.current.querySelector('[role="menuitem"]')?.focus();
    const shut = (event) => { if (!node.current?.contains(event.target)) set(false); };
    document.addEventListener("pointerdown", shut);
    return () => document.removeEventListener("pointerdown", shut);
  }, [open]);
  const keys = (event) => {
    const all = [...node.current.querySelectorAll('[role="menuitem"]')], at = all.indexOf(document.activeElement);
    if (event.key === "Escape") { set(false); node.current.querySelector("button").focus(); event.stopPropagation(); }
    if (event.key === "ArrowDown") { event.preventDefault(); all[(at + 1) % all.length]?.focus(); }
    if (event.key === "ArrowUp") { event.preventDefault(); all[(at - 1 + all.length) % all.length]?.focus(); }
  };
  return html`<div class="menu" ref=${node} onKeyDown=${keys}>
    <button type="button" class="button ${kind}" aria-haspopup="menu" aria-expanded=${String(open)} aria-label=${label} title=${label} onClick=${() => set(!open)}>${children}</button>
    ${open && html`<div role="menu" aria-label=${label}>${items.filter(Boolean).map(([text, action, more = {}]) => html`<button key=${text} type="button" role="menuitem" tabindex="-1" class=${more.danger ? "bad" : ""}
      aria-disabled=${more.why ? "true" : undefined} title=${more.why} onClick=${() => { if (!more.why) { set(false); action(); } }}>${text}</button>`)}</div>`}</div>`;
}

/** A figure that waits for the name to be typed: for what cannot be undone. */
export function NameDialog({ name, verb, children, onDone, onClose, busy }) {
  const [typed, set] = useState("");
  return html`<${Dialog} onClose=${onClose} label=${`${verb} ${name}`}><form class="inside" onSubmit=${(event) => { event.preventDefault(); if (typed === name) onDone(); }}>
    <h2>${verb} ${name}</h2>${children}
    <label class="field"><span>Type <code class="break">${name}</code> to go on</span><input class="input" autofocus autocomplete="off" spellcheck="false" value=${typed} onInput=${(event) => set(event.target.value)} /></label>
    <div class="buttons"><${Button} onClick=${onClose}>Keep it<//><${Button} type="submit" kind="danger filled" busy=${busy} why=${typed === name ? null : "The name is not typed yet"}>${verb}<//></div></form><//>`;
}
