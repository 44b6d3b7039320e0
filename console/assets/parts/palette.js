// "Go to or do": pages, clusters, claims and the verbs of what is seen; and the keys of every page.
import { html, useEffect, useMemo, useState } from "../vendor/preact-htm.js";
import { call, may } from "../core/api.js";
import { monthly } from "../core/format.js";
import { go, setQuery, to } from "../core/router.js";
import { allowed, PLACES, SET_UP } from "./shell.js";
import { Dialog } from "./ui.js";

const LAST = "stockyard.last";
const verbs = new Map(), readers = new Set();
/** Verbs of the thing that is shown, for the palette and `.`: [label, action, key]. A palette that is open shows them too. */
export const offer = (owner, items) => {
  if (!items && !verbs.has(owner)) return;
  if (items) verbs.set(owner, items); else verbs.delete(owner);
  readers.forEach((read) => read());
};

export const KEYS = [
  ["Ctrl K", "go to or do"], ["/", "filter of the page"], ["g then f c o p t m a", "fleet, claims, operations, plan, offers, costs, audit"], ["j k, arrows", "next, previous row"],
  ["Enter", "open the row"], ["Space, ]", "details of the row"], [".", "verbs of the row and the page"], ["1–9", "tab"], ["y then c r", "copy as command, as request"], ["e", "change"], ["Ctrl Enter", "apply, plan"],
  ["Esc", "leave; what was typed is kept"], ["[", "side bar"], ["u", "USD an hour, a month"], ["?", "this list"],
];

const matches = (text, words) => words.every((word) => text.toLowerCase().includes(word));
function last() { try { return JSON.parse(localStorage.getItem(LAST)) || []; } catch { return []; } }

export function Palette({ onClose, verbsOnly = false }) {
  const [typed, set] = useState(""), [at, setAt] = useState(0), [things, setThings] = useState([]), [offered, setOffered] = useState(0);
  useEffect(() => {
    const again = () => setOffered((n) => n + 1);
    readers.add(again);
    return () => readers.delete(again);
  }, []);
  useEffect(() => {
    let on = true;
    const list = (name, args, make) => may(name) && call(name, { page_size: 200, ...args }).then(({ data }) => { if (on) setThings((was) => [...was, ...data.items.map(make)]); }).catch(() => {});
    if (!verbsOnly) {
      list("ListClusters", {}, (each) => ({ label: each.name, kind: "cluster", address: to(["clusters", each.name]) }));
      list("ListNodeClaims", { order: "desc" }, (each) => ({ label: each.name, kind: "claim", address: to(["claims", each.name]) }));
    }
    return () => { on = false; };
  }, []);
  const items = useMemo(() => {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    const own = [...verbs.values()].flat().map(([label, action, key]) => ({ label, kind: key ? `key ${key}` : "do", action }));
    const places = verbsOnly ? [] : [...PLACES, ...SET_UP].filter(allowed).map(([path, label]) => ({ label, kind: "page", address: to(path) }));
    const known = new Set();
    const all = [...(words.length || verbsOnly ? [] : last()), ...own, ...places, ...things];
    return all.filter((each) => matches(`${each.label} ${each.kind}`, words) && !known.has(each.address || each.label) && known.add(each.address || each.label)).slice(0, 12);
  }, [typed, things, offered]);
  const pick = (item) => {
    if (!item) return;
    if (item.address) {
      try { localStorage.setItem(LAST, JSON.stringify([item, ...last().filter((each) => each.address !== item.address)].slice(0, 5))); } catch { /* storage may be off */ }
      go(item.address);
    }
    onClose();
    item.action?.();
  };
  const keys = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); setAt((at + (event.key === "ArrowDown" ? 1 : -1) + items.length) % Math.max(1, items.length)); }
    if (event.key === "Enter") { event.preventDefault(); pick(items[at]); }
  };
  return html`<${Dialog} kind="go-to" label="Go to or do" onClose=${onClose}>
    <input class="input" autofocus role="combobox" aria-expanded="true" aria-controls="palette" aria-activedescendant=${items[at] ? `palette-${at}` : undefined} aria-label="Go to or do" placeholder="Name of a page, cluster, claim, or a verb"
      value=${typed} onInput=${(event) => { set(event.target.value); setAt(0); }} onKeyDown=${keys} autocomplete="off" spellcheck="false" />
    <ul id="palette" role="listbox" aria-label="What there is">${items.map((item, n) => html`<li key=${item.address || item.label} id=${`palette-${n}`} role="option" aria-selected=${String(n === at)} onClick=${() => pick(item)} onPointerMove=${() => setAt(n)}>${item.label}<span>${item.kind}</span></li>`)}</ul>
    ${items.length === 0 && html`<p class="aside quiet">Nothing has this name.</p>`}<//>`;
}

export const KeyList = ({ onClose }) => html`<${Dialog} label="Keys" onClose=${onClose}><div class="inside"><h2>Keys</h2>
  <table aria-label="Keys"><tbody>${KEYS.map(([key, what]) => html`<tr key=${key}><td class="name"><kbd>${key}</kbd></td><td>${what}</td></tr>`)}</tbody></table>
  <p class="small quiet">Single keys are off in fields; the menu with your name switches them off everywhere.</p></div><//>`;

const GO = { f: "", c: "claims", o: "operations", p: "plan", t: "offers", m: "costs", a: "audit" };

/** Listen to the keys of every page. `show` opens "palette", "verbs" or "keys". Returns how to stop. */
export function listen(show) {
  let before = "", clear = 0;
  const press = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); show("palette"); return; }
    const field = event.target.closest?.("input, textarea, select, [contenteditable], dialog, [role='menu']");
    let off = false;
    try { off = localStorage.getItem("stockyard.keys") === "off"; } catch { /* storage may be off */ }
    if (field || off || event.ctrlKey || event.metaKey || event.altKey) return;
    const first = before;
    before = "";
    clearTimeout(clear);
    if (first === "g" && event.key in GO) { event.preventDefault(); go(to(GO[event.key])); return; }
    if (first === "y" && (event.key === "c" || event.key === "r")) { event.preventDefault(); document.querySelector(`[data-copy="${event.key === "c" ? "Command" : "Request"}"]`)?.click(); return; }
    if (event.key === "g" || event.key === "y") { before = event.key; clear = setTimeout(() => { before = ""; }, 1200); return; }
    if (/^[1-9]$/.test(event.key)) { document.querySelectorAll(".tabs a")[Number(event.key) - 1]?.click(); return; }
    const done = {
      "/": () => document.querySelector("[data-filter]")?.focus(), "?": () => show("keys"), ".": () => show("verbs"), "[": () => dispatchEvent(new Event("stockyard:side")),
      u: () => setQuery({ unit: monthly() ? null : "month" }), "]": () => dispatchEvent(new Event("stockyard:pane")), e: () => document.querySelector("[data-change]")?.click(),
      j: () => document.querySelector("[data-row][tabindex='0']")?.focus(), k: () => document.querySelector("[data-row][tabindex='0']")?.focus(),
    }[event.key];
    if (done && !event.defaultPrevented) { event.preventDefault(); done(); }
  };
  addEventListener("keydown", press);
  return () => removeEventListener("keydown", press);
}
