// One cluster: its head, its tabs.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { useRead } from "../core/data.js";
import { since } from "../core/format.js";
import { clusterState, isStuck, operationTitle, regionOf } from "../core/model.js";
import { go, to } from "../core/router.js";
import { Icon, State } from "../parts/icons.js";
import { offer } from "../parts/palette.js";
import { Button, Copy, Dialog, Empty, Failure, LinkButton, Menu, Ready, Tabs } from "../parts/ui.js";
import { ChangesTab, ClaimsTab, EventsTab, NetworkTab, PoolsTab, SettingsTab, TreeTab } from "./cluster-tabs.js";
import { Disruption } from "./disruption.js";
import { Overview } from "./overview.js";

function Kubeconfig({ cluster, onClose }) {
  const read = useRead("ReadKubeconfig", { id: cluster.id });
  const command = asCommand("cluster", "kubeconfig", cluster.name, "--use");
  return html`<${Dialog} label="Kubeconfig" onClose=${onClose} kind="broad"><div class="inside"><h2>Kubeconfig of ${cluster.name}</h2>
    <p class="second">It holds no secret: kubectl asks the command line for the token of your login.</p><pre class="said" tabindex="0">${command}</pre>
    <${Ready} read=${read} what="the kubeconfig">${(data) => html`<pre class="said" tabindex="0">${data.kubeconfig}</pre>
      <div class="buttons"><${Copy} text=${command} label="Copy command" kind="" icon="command" /><${Copy} text=${data.kubeconfig} label="Copy file" kind="primary" /></div>`}<//></div><//>`;
}

/** Verbs of a cluster by role and state: [label, action, {why, danger}], the first is the primary one. */
function verbsOf(cluster, operation, show) {
  const page = (part) => () => go(to(["clusters", cluster.name, part]));
  const running = operation?.status === "running", failed = operation?.status === "failed" || operation?.status === "cancelled";
  const busy = running ? `${operationTitle(operation)} runs; stop it first, or queue the change` : null;
  const ready = cluster.status === "ready" ? null : "The cluster is not ready";
  return [
    failed && may("ResumeCluster") && ["Resume…", page("resume"), {}],
    may("ReadKubeconfig") && ["Kubeconfig", () => show("kubeconfig"), { why: cluster.endpoint ? null : "There is no API server yet" }],
    may("ChangeCluster") && ["Change…", page("change"), { why: ready || busy, key: "e" }],
    may("ChangeCluster") && ["Upgrade…", page("upgrade"), { why: ready || busy }],
    may("DeleteCluster") && ["Delete…", page("delete"), { danger: true, why: cluster.status === "deleting" ? "It is being deleted" : null }],
  ].filter(Boolean);
}

function Head({ cluster, operation, state, onShow }) {
  const verbs = verbsOf(cluster, operation, onShow);
  const failed = verbs[0]?.[0] === "Resume…", seen = failed ? [verbs[0], verbs[verbs.length - 1]] : verbs.filter(([label]) => label !== "Delete…");
  const rest = verbs.filter((verb) => !seen.includes(verb));
  useEffect(() => { offer("cluster", verbs.filter(([, , more]) => !more.why).map(([label, action, more]) => [label, action, more.key])); return () => offer("cluster", null); });
  const upgrade = operation?.status === "running" && (operation.changes || []).find((each) => /kubernetes_version/.test(each.pointer));
  const region = regionOf(cluster);
  return html`<div class="head"><h1>${cluster.name}</h1><${State} ...${state} />
      <div class="verbs">${seen.map(([label, action, more], n) => html`<${Button} key=${label} kind="${failed && n === 0 ? "primary" : ""} ${more.danger ? "danger" : ""} ${n > 0 ? "from-700" : failed || label === "Kubeconfig" ? "" : "from-700"}"
          icon=${label === "Kubeconfig" ? "command" : null} why=${more.why} onClick=${action} data-change=${label === "Change…" ? "" : undefined}>${label}<//>`)}
        ${rest.length > 0 && html`<span class="from-700"><${Menu} label="More verbs" items=${rest}><${Icon} name="more" /><//></span>`}
        ${verbs.length > 1 && html`<span class="to-700"><${Menu} label="All verbs" items=${verbs}><${Icon} name="more" /><//></span>`}</div></div>
    <div class="facts">${cluster.description && html`<span class="second break">${cluster.description}</span>`}
      <span>Kubernetes <b>${upgrade ? `${upgrade.before} → ${upgrade.after}` : cluster.kubernetes_version}</b></span>
      <span>on <b>${cluster.provider}${cluster.driver === "eks" ? " eks" : ""}, account ${cluster.cloud_account_id}${region ? `, ${region}` : ""}</b></span>
      ${cluster.endpoint && html`<span class="chips">API <b class="break">${cluster.endpoint.replace(/^https:\/\//, "")}</b> <${Copy} text=${cluster.endpoint} label="Copy" /></span>`}
      <span>Age <b>${since(cluster.created_at)}</b></span>
      ${Object.entries(cluster.tags || {}).map(([key, value]) => html`<span key=${key} class="chip">${key}=${value}</span>`)}</div>`;
}

const TABS = { overview: Overview, claims: ClaimsTab, pools: PoolsTab, disruption: Disruption, tree: TreeTab, network: NetworkTab, events: EventsTab, changes: ChangesTab, settings: SettingsTab };

export function Cluster({ name, tab = "overview", query }) {
  const about = (event) => event.subject === read.data?.id || event.cluster_id === read.data?.id;
  const read = useRead("GetCluster", { id: name }, { news: (event) => about(event) || event.detail_type === "Operation" });
  const cluster = read.data;
  const operation = useRead(cluster?.operation_id ? "GetOperation" : null, { id: cluster?.operation_id }, { news: (event) => event.subject === cluster?.operation_id || about(event) });
  const pools = useRead(cluster ? "ListPools" : null, { id: cluster?.id, page_size: 200 }, { news: about });
  const waiting = useRead(cluster ? "ListNodeClaims" : null, { cluster: cluster?.id, phase: "Pending", page_size: 200 }, { news: (event) => event.detail_type === "NodeClaim" });
  const [shown, show] = useState(null);
  useEffect(() => { if (cluster && name === cluster.id) go(to(["clusters", cluster.name, ...(tab === "overview" ? [] : [tab])], query), { replace: true }); }, [cluster?.id]);
  if (read.error && !cluster) {
    if (read.error.status !== 404) return html`<div class="head"><h1>${name}</h1></div><${Failure} error=${read.error} again=${read.again} />`;
    return html`<${Empty} page title=${`No cluster ${name}`}><p>It was never made, or it is deleted. Its operations may still be there.</p><span class="chips"><${LinkButton} to=${to("")}>To the fleet<//><${LinkButton} to=${to("operations")}>To the operations<//></span><//>`;
  }
  if (!cluster) return html`<div class="head"><h1>${name}</h1></div><${Ready} read=${read} what="the cluster">${() => null}<//>`;
  const stuck = (waiting.data?.items || []).filter(isStuck), running = operation.data?.status === "running" && cluster.status === "ready";
  const state = running ? { kind: "run", word: operation.data.kind === "upgrade_cluster" ? "upgrading" : "changing" } : clusterState(cluster, stuck);
  const View = TABS[tab];
  const items = [["overview", "Overview"], ["claims", "Claims"], ["pools", "Pools", pools.data?.items.length], ["disruption", "Disruption"], ["tree", "Tree"], ["network", "Network"], ["events", "Events"], ["changes", "Changes"], ["settings", "Settings"]];
  return html`<${Head} cluster=${cluster} operation=${operation.data} state=${state} onShow=${show} />
    <${Tabs} items=${items} current=${tab} address=${(key) => to(["clusters", cluster.name, ...(key === "overview" ? [] : [key])])} />
    ${read.error && html`<${Failure} error=${read.error} again=${read.again} />`}
    <${View} cluster=${cluster} operation=${operation} pools=${pools} waiting=${waiting} query=${query} />
    ${shown === "kubeconfig" && html`<${Kubeconfig} cluster=${cluster} onClose=${() => show(null)} />`}`;
}
