// Bars of nodes: a box for each node up to what the pool may have.
import { html } from "../vendor/preact-htm.js";
import { Bar } from "./ui.js";

const MOST = 24;

/** What a pool has: {there, least, most, leaving}; `most` is null without a limit. */
export function sizes(pool) {
  const limit = Number(pool.limits?.nodes);
  const least = pool.kind === "static" ? pool.quantity : pool.floor;
  return { there: pool.nodes.available, claims: pool.nodes.claims, leaving: pool.nodes.leaving, least, most: pool.kind === "static" ? pool.quantity : Number.isFinite(limit) ? limit : null };
}

export function Boxes({ there, leaving, least, most }) {
  const room = Math.max(most ?? 0, there, least);
  const label = `${there} nodes, ${leaving} of them leave, at least ${least}${most === null ? "" : `, at most ${most}`}`;
  if (room > MOST) return html`<div role="img" aria-label=${label}><${Bar} share=${there / room} /></div>`;
  return html`<div class="boxes" role="img" aria-label=${label}>${[...Array(room)].map((_, n) => html`<span key=${n} class="box ${n < there - leaving ? "full" : n < there ? "leaves" : ""} ${least > 0 && n === least - 1 ? "least" : ""}"></span>`)}</div>`;
}
