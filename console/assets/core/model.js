// What records mean for a person: state, order of who needs a look, why.

const RANK = { failed: 0, waits: 1, degraded: 1, leaves: 2, run: 2, idle: 3, ok: 3 };
export const rankOf = (state) => RANK[state.kind] ?? 3;
const POOL_CONDITIONS = new Set(["PoolsReady", "PodsHaveRoom"]);

/** Conditions that do not hold; `Unknown` counts too. */
export const unmet = (conditions) => (conditions || []).filter((each) => each.status !== "True");

/** State of a cluster: {kind, word}; `waiting` are its claims that wait for a machine. */
export function clusterState(cluster, waiting = []) {
  if (cluster.status === "failed") return { kind: "failed", word: "failed" };
  if (cluster.status === "deleting") return { kind: "leaves", word: "leaves" };
  if (cluster.status === "preparing") return { kind: "run", word: "creating" };
  if (cluster.phase) return { kind: "run", word: cluster.phase === "upgrading" ? "upgrading" : "changing" };
  if (waiting.length) return { kind: "waits", word: waiting.length === 1 ? "claim waits" : `${waiting.length} claims wait` };
  if (unmet(cluster.conditions).some((each) => each.status === "False" && POOL_CONDITIONS.has(each.type))) return { kind: "waits", word: "waits" };
  if (unmet(cluster.conditions).some((each) => each.status === "False")) return { kind: "degraded", word: "degraded" };
  return { kind: "ok", word: "ready" };
}

/** Why a cluster is as it is, or null for one that is calm. */
export function clusterWhy(cluster, waiting = []) {
  if (cluster.status === "failed") return `${cluster.phase ? `Step ${cluster.phase} failed: ` : ""}${cluster.message}`;
  if (cluster.status !== "ready" || cluster.phase) return `${cluster.phase ? `Step ${cluster.phase}. ` : ""}${cluster.message || ""}`;
  if (waiting.length) return `Claim ${waiting[0].name} waits: ${(waiting[0].message || "it has no machine yet").split(": ")[0].replace(/^./, (letter) => letter.toLowerCase()).replace(/\.$/, "")}.`;
  const first = unmet(cluster.conditions).find((each) => each.status === "False");
  return first ? first.message : null;
}

export const regionOf = (cluster) => cluster.settings?.region_name || cluster.settings?.region || cluster.settings?.data_center_id || "";
/** A claim that waits for something else than the seconds of a launch. */
export const isStuck = (claim) => claim.phase === "Pending" && !claim.deleting && !claim.placement && Boolean(claim.reason) && claim.reason !== "Pending";

export function claimState(claim) {
  if (claim.deleting) return { kind: "leaves", word: "leaves" };
  if (claim.phase === "Failed") return { kind: "failed", word: "failed" };
  if (claim.phase === "Available") return claim.power === "Off" ? { kind: "idle", word: "off" } : { kind: "ok", word: "available" };
  if (!claim.placement) return isStuck(claim) ? { kind: "waits", word: "waits" } : { kind: "run", word: "comes" };
  return { kind: "run", word: claim.machine_id ? "joins" : "launches" };
}

export function operationState(operation) {
  return {
    queued: { kind: "idle", word: "queued" }, running: { kind: "run", word: "running" }, succeeded: { kind: "ok", word: "done" }, failed: { kind: "failed", word: "failed" },
    cancelled: { kind: "skipped", word: "stopped" }, reverted: { kind: "skipped", word: "taken back" },
  }[operation.status] || { kind: "idle", word: operation.status };
}

export function phaseState(state) {
  return {
    pending: { kind: "idle", word: "not started" }, running: { kind: "run", word: "running" }, succeeded: { kind: "ok", word: "done" },
    failed: { kind: "failed", word: "failed" }, skipped: { kind: "skipped", word: "skipped" },
  }[state] || { kind: "idle", word: state };
}

/** State of what is set up: providers, types, accounts, sites. */
export function setUpState(word) {
  const kind = { Available: "ok", verified: "ok", connected: "ok", Ready: "ok", Pending: "run", unverified: "idle", Unavailable: "waits", Failed: "failed", failed: "failed" }[word] || "idle";
  return { kind, word: { Available: "available", Ready: "ready", Pending: "pending", Unavailable: "none free", Failed: "failed" }[word] || word };
}

/** Icon of an event, by where its subject went. */
export function eventKind(event) {
  const after = String(event.phase?.after || "").toLowerCase();
  if (/fail/.test(after) || /fail|insufficient|refus/i.test(event.reason)) return "failed";
  if (/delet|leav|terminat/.test(after)) return "leaves";
  if (/ready|available|succeeded|verified/.test(after)) return "ok";
  if (/NoMatching|Unschedulable|Waits/i.test(event.reason)) return "waits";
  return "run";
}

const TITLES = {
  create_cluster: "Creation", delete_cluster: "Deletion", upgrade_cluster: "Upgrade", change_cluster: "Change", retag_cluster: "Change of tags", repave_cluster: "Repave", restore_cluster: "Restore",
  create_node: "Machine", delete_node: "Giving back", power_node: "Power",
};
/** Title of an operation in words of what it does. */
export function operationTitle(operation) {
  const known = TITLES[operation.kind];
  if (operation.kind === "upgrade_cluster") {
    const to = (operation.changes || []).find((each) => /version/.test(each.field || each.path || ""));
    return to ? `Upgrade to ${to.after ?? to.to ?? ""}` : "Upgrade";
  }
  return known || operation.kind.replace(/_/g, " ").replace(/^./, (letter) => letter.toUpperCase());
}

/** Sentence of an event. */
export function eventText(event) {
  if (event.detail_type === "Operation" && /^[a-z]+(_[a-z]+)+$/.test(event.message)) return `${operationTitle({ kind: event.message })}: ${event.reason.toLowerCase()}.`;
  return event.message || event.reason;
}

/** Subject of an event as a page: [text, parts of the address] or null. */
export function subjectPage(event) {
  const name = event.name || String(event.subject).split("/").pop();
  if (/^clu_[^/]+$/.test(event.subject)) return [name, ["clusters", event.name || event.subject]];
  if (/^ncl_/.test(event.subject)) return [name, ["claims", event.name || event.subject]];
  if (/^op_/.test(event.subject)) return [event.name || "operation", ["operations", event.subject]];
  if (/^clu_[^/]+\//.test(event.subject)) return [name, ["clusters", event.subject.split("/")[0], "pools"]];
  return null;
}
