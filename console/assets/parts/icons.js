// Own icons, 16 by 16, one stroke. Each state has a shape of its own.
import { html } from "../vendor/preact-htm.js";

const PATHS = {
  yard: "M5 1.5v13M11 1.5v13M1.5 5h13M1.5 11h13",
  claims: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
  operations: "M1.5 8h3l2-5 3 10 2-5h3",
  plan: "M3 13V8M8 13V3M13 13V6",
  offers: "M2 7.5V2.5h5L14 9l-5 5zM5 5.5h.01",
  costs: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM10 6c-.4-.7-1.1-1-2-1-1.200 0-2 .5-2 1.500 0 2 4 1 4 3 0 1-.8 1.500-2 1.500-.9 0-1.600-.3-2-1M8 3.800v8.400",
  providers: "M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3",
  accounts: "M8 8a2.800 2.800 0 1 0 0-5.600A2.800 2.800 0 0 0 8 8zM2.500 14c.3-3 2.500-4.300 5.500-4.300s5.200 1.300 5.500 4.300",
  profiles: "M3.500 2h6l3 3v9h-9zM6 7h4M6 10h4",
  quotas: "M2 12a6.500 6.500 0 0 1 12 0M8 11l3-4",
  audit: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.500h2.500",
  sites: "M2.500 14V6L8 2l5.500 4v8zM6.500 14v-4h3v4",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3.500 3.500",
  plus: "M8 3v10M3 8h10",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  menu: "M2.500 4h11M2.500 8h11M2.500 12h11",
  copy: "M6 6h7.500v7.500H6zM3.500 10H2.500V2.500H10v1",
  command: "M3 4l4 4-4 4M8.500 12.500H13",
  right: "M6 3.500L10.500 8 6 12.500",
  arrow: "M2.500 8h11M9.500 4l4 4-4 4",
  pause: "M5.500 3v10M10.500 3v10",
  file: "M3.500 2h6l3 3v9h-9z",
  out: "M6 2.500H3v11h3M7 8h7M11 5l3 3-3 3",
  ok: "M8 14.250A6.250 6.250 0 1 0 8 1.750a6.250 6.250 0 0 0 0 12.500zM5.200 8.200l2 2 3.600-4",
  fail: "M5.400 1.750h5.200l3.650 3.650v5.200l-3.650 3.650H5.400L1.750 10.600V5.400zM6 6l4 4M10 6l-4 4",
  degraded: "M8 2l6.500 11.500h-13zM8 6.500v3.200M8 11.600v.01",
  leaves: "M9.500 2h-7v12h7M6.500 8H14M11.500 5.500L14 8l-2.500 2.500",
  lock: "M3.500 7.500h9v6.500h-9zM5.500 7.500V5a2.500 2.500 0 0 1 5 0v2.500",
  skipped: "M8 14.250A6.250 6.250 0 1 0 8 1.750a6.250 6.250 0 0 0 0 12.500zM5 8h6",
};
const DOTTED = "M8 14.250A6.250 6.250 0 1 0 8 1.750a6.250 6.250 0 0 0 0 12.500z";

/** An icon by name, 16 or 14 pixels; it is for the eye alone, the word stands beside it. */
export function Icon({ name, size = 16 }) {
  const common = { width: size, height: size, viewBox: "0 0 16 16", fill: "none", stroke: "currentColor", "aria-hidden": "true", "stroke-width": name === "more" ? 2 : 1.4, "stroke-linecap": "round", "stroke-linejoin": "round" };
  if (name === "run") return html`<svg ...${common} class="spin" stroke-width="1.8"><path d=${DOTTED} stroke-opacity=".3" /><path d="M8 1.750A6.250 6.250 0 0 1 14.250 8" /></svg>`;
  if (name === "waits") return html`<svg ...${common}><path d=${DOTTED} stroke-width="1.6" stroke-dasharray="2.6 1.900" /><path d="M8 5v3.200l2 1" /></svg>`;
  if (name === "idle") return html`<svg ...${common}><path d=${DOTTED} stroke-dasharray="1.400 1.900" /></svg>`;
  return html`<svg ...${common}><path d=${PATHS[name] || ""} /></svg>`;
}

const KINDS = {
  ok: ["ok", "ok"], run: ["run", "run"], waits: ["waits", "warn"], degraded: ["degraded", "warn"], failed: ["fail", "bad"],
  leaves: ["leaves", "warn"], stays: ["lock", "none"], idle: ["idle", "none"], skipped: ["skipped", "none"],
};

/** A state: its icon and its word, both in its colour. `kind` is one of `KINDS`. */
export function State({ kind, word, bare = false }) {
  const [icon, tone] = KINDS[kind] || KINDS.idle;
  return html`<span class="state ${tone}"><${Icon} name=${icon} size=${14} />${bare ? html`<span class="unseen">${word}</span>` : word}</span>`;
}
