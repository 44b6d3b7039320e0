// A table of claims, with why one waits.
import { html } from "../vendor/preact-htm.js";
import { bare, hour, NOTHING, resources, since } from "../core/format.js";
import { claimState, isStuck } from "../core/model.js";
import { Link, to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Table } from "../parts/table.js";

const price = (claim) => (claim.placement ? hour(claim.placement.usd_hour) : NOTHING);
const zone = (claim) => (claim.placement?.zones || []).map((each) => (each === "*" ? "any" : each)).join(", ") || NOTHING;
export const whyOf = (claim) => (isStuck(claim) || claim.phase === "Failed" || claim.deleting ? claim.message || claim.reason : null);

const columns = (withCluster) => [
  { key: "name", head: "Claim", kind: "name", cell: (claim) => claim.name },
  { key: "state", head: "State", cell: (claim) => html`<${State} ...${claimState(claim)} />`, sort: (claim) => claimState(claim).word },
  withCluster && { key: "cluster", head: "Cluster", kind: "break", cell: (claim) => html`<${Link} to=${to(["clusters", withCluster.get(claim.cluster_id) || claim.cluster_id])}>${withCluster.get(claim.cluster_id) || claim.cluster_id}<//>` },
  { key: "type", head: "Type", kind: "fact tight", cell: (claim) => html`${claim.placement ? bare(claim.placement.type) : NOTHING}${whyOf(claim) ? html`<span class="small second why-line" title=${whyOf(claim)}>${whyOf(claim).split(": ")[0]}</span>` : null}` },
  { key: "capacity", head: "Capacity", from: 900, kind: "tight", cell: (claim) => claim.placement?.capacity_type || NOTHING },
  { key: "zone", head: "Zone", from: 1200, kind: "tight", cell: zone },
  { key: "hour", head: "USD/hour", num: true, kind: "fact", cell: price, sort: (claim) => claim.placement?.usd_hour || 0 },
  { key: "age", head: "Age", num: true, cell: (claim) => since(claim.created_at), sort: (claim) => -Date.parse(claim.created_at) },
].filter(Boolean);

const line = (withCluster) => (claim) => ({
  icon: html`<${State} ...${claimState(claim)} bare />`, title: claim.name, word: html`<span class="second">${claimState(claim).word}</span>`,
  facts: [withCluster && (withCluster.get(claim.cluster_id) || claim.cluster), claim.placement ? bare(claim.placement.type) : resources(claim.resources), claim.placement?.capacity_type, since(claim.created_at)], why: whyOf(claim)?.split(": ")[0], number: price(claim), unit: "USD/hour",
});

/** `clusters`: names by id, where the list is of more than one. */
export const ClaimTable = ({ claims, clusters = null, chosen = null }) => html`<${Table} label="Claims" columns=${columns(clusters)} rows=${claims} keyOf=${(claim) => claim.id} chosen=${chosen} line=${line(clusters)} address=${(claim) => to(["claims", claim.name])} />`;
