// The address holds all of what is seen: path, filters, sort, tab.
import { html, useEffect, useState } from "../vendor/preact-htm.js";

const BASE = "/console";
const watchers = new Set();
export const onAddress = (watcher) => { watchers.add(watcher); return () => watchers.delete(watcher); };
const tell = () => watchers.forEach((watcher) => watcher());
addEventListener("popstate", tell);

/** An address of the console: parts of the path (each is encoded) and a query. */
export function to(parts, query = {}) {
  const path = [].concat(parts).filter((part) => part !== "").map(encodeURIComponent).join("/");
  const unit = new URLSearchParams(location.search).get("unit");
  const search = new URLSearchParams(Object.entries({ ...(unit ? { unit } : {}), ...query }).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false));
  const tail = search.toString();
  return `${BASE}/${path}${tail ? `?${tail}` : ""}`;
}

/** Parts of the present path, decoded, and the query. */
export function here() {
  const parts = location.pathname.slice(BASE.length + 1).split("/").filter(Boolean);
  const decoded = parts.map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { parts: decoded, query: Object.fromEntries(new URLSearchParams(location.search)) };
}

export function go(address, { replace = false } = {}) {
  if (!address.startsWith(`${BASE}/`)) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  tell();
  if (!replace) scrollTo(0, 0);
}

/** Change single values of the query in place; null takes one out. */
export function setQuery(changes) {
  const { parts, query } = here();
  go(to(parts, { ...query, ...changes }), { replace: true });
}

export function useAddress() {
  const [, draw] = useState(0);
  useEffect(() => onAddress(() => draw((n) => n + 1)), []);
  return here();
}

/** A link within the console, without loading the page again. */
export function Link({ to: address, children, ...rest }) {
  const follow = (event) => {
    rest.onClick?.(event);
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(address);
  };
  return html`<a ...${rest} href=${address} onClick=${follow}>${children}</a>`;
}
