// Which page an address names: its view, crumbs and place in the side bar.
import { to } from "../core/router.js";
import { Change } from "./change.js";
import { Claim, Claims } from "./claim.js";
import { Cluster } from "./cluster.js";
import { Costs } from "./costs.js";
import { CreateClaim, CreateCluster } from "./create.js";
import { Fleet } from "./fleet.js";
import { Accounts, Audit, Profiles, Providers, Quotas, Sites } from "./lists.js";
import { Offers } from "./offers.js";
import { Operation, Operations } from "./operations.js";
import { Plan } from "./plan.js";

const FLEET = ["Fleet", to("")], CLAIMS = ["Claims", to("claims")], OPERATIONS = ["Operations", to("operations")];
const TABS = ["claims", "pools", "disruption", "tree", "network", "events", "changes", "settings"];
const CHANGES = { change: "Change", upgrade: "Upgrade", resume: "Resume", delete: "Delete", repave: "Repave", renew: "Renew certificates", restore: "Restore" };
const WORDS = { claims: "Claims", pools: "Pools", disruption: "Disruption", tree: "Tree", network: "Network", events: "Events", changes: "Changes", settings: "Settings" };
const page = (view, crumbs, section, key, args = {}) => ({ view, crumbs, section, key, args });
const SIMPLE = {
  claims: (name) => page(Claims, [["Claims", null]], name, name), operations: (name) => page(Operations, [["Operations", null]], name, name), costs: (name) => page(Costs, [["Costs", null]], name, name),
  providers: (name) => page(Providers, [["Providers", null]], name, name), accounts: (name) => page(Accounts, [["Accounts", null]], name, name), sites: (name) => page(Sites, [["Sites", null]], name, name),
  profiles: (name) => page(Profiles, [["Profiles", null]], name, name), quotas: (name) => page(Quotas, [["Quotas", null]], name, name), audit: (name) => page(Audit, [["Audit", null]], name, name),
};

function clusterPage(name, part) {
  const own = [name, to(["clusters", name])];
  if (!part) return page(Cluster, [FLEET, [name, null]], "", `cluster ${name}`, { name });
  if (TABS.includes(part)) return page(Cluster, [FLEET, own, [WORDS[part], null]], "", `cluster ${name}`, { name, tab: part });
  if (part in CHANGES) return page(Change, [FLEET, own, [CHANGES[part], null]], "", `${part} ${name}`, { name, verb: part });
  return null;
}

/** @returns {{view: Function, crumbs: Array, section: string, key: string, args: object} | null} */
export function pageOf(parts) {
  const [first, name, part, ...rest] = parts;
  if (rest.length) return null;
  if (!first || first === "sign-in") return page(Fleet, [["Fleet", null]], "", "fleet");
  if (first === "new" && !name) return page(CreateCluster, [FLEET, ["New cluster", null]], "", "new");
  if (first === "clusters" && name) return clusterPage(name, part);
  if (first === "claims" && name === "new" && !part) return page(CreateClaim, [CLAIMS, ["New claim", null]], "claims", "new claim");
  if (first === "claims" && name && (!part || ["conditions", "events", "document"].includes(part))) return page(Claim, [CLAIMS, [name, null]], "claims", `claim ${name}`, { name, tab: part || "why" });
  if (first === "operations" && name && !part) return page(Operation, [OPERATIONS, [name, null]], "operations", `operation ${name}`, { id: name });
  if (first === "plan" && !part && [undefined, "pool", "history"].includes(name)) return page(Plan, name ? [["Plan", to("plan")], [name === "pool" ? "NodePool" : "History of pods", null]] : [["Plan", null]], "plan", "plan", { kind: name || "pods" });
  if (first === "offers" && !part) return page(Offers, name ? [["Offers", to("offers")], [name, null]] : [["Offers", null]], "offers", "offers", { chosen: name });
  return !name && first in SIMPLE ? SIMPLE[first](first) : null;
}
