// Claims of all clusters, those that wait first on request.
import { html } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { usePages, useRead } from "../core/data.js";
import { setQuery, to } from "../core/router.js";
import { Pages } from "../parts/table.js";
import { Button, Card, Copies, Empty, LinkButton, Ready } from "../parts/ui.js";
import { ClaimTable } from "./claim-table.js";
import { PhaseFilter } from "./cluster-tabs.js";

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
      <${Ready} read=${{ ...pages, data: pages.items }} what="claims" rows=${8}>${(items) => (shown.length ? html`<${ClaimTable} claims=${shown} clusters=${names} />` : html`<${Empty} title=${items.length ? "No claim of this page has these words." : query.phase || filters.length ? "No claim is like this." : "No claims yet"}>
        <p>A claim asks for one machine that becomes a node of a cluster; pools make claims by themselves.</p>${(query.phase || query.q || filters.length > 0) && html`<${Button} onClick=${() => setQuery({ phase: null, q: null, cluster: null, provider: null, pool: null })}>Clear filter<//>`}<//>`)}<//><//>`;
}
