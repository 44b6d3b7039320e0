// The form of a cluster's settings by group: only what may be changed later.
import { html } from "../vendor/preact-htm.js";

const SIMPLE = [
  ["nat_gateways", "NAT gateways", ["one", "per_zone"]], ["repave_approval", "Changes that replace nodes", ["automatic", "required"]], ["control_plane_size", "Members of the control plane", [1, 3, 5]],
  ["support", "Support of old minors", ["standard", "extended"]], ["etcd_snapshots", "Snapshots that are kept", "number"], ["api_cidrs", "Who may reach the API", "list"], ["public_access_cidrs", "Who may reach the API", "list"], ["ssh_cidrs", "Who may use SSH", "list"],
];
const groupsKey = (settings) => ("autoscaler_node_groups" in settings ? "autoscaler_node_groups" : "node_groups" in settings ? "node_groups" : null);
const GROUP = [["instance_types", "Instance types", "list"], ["min_size", "At least", "number"], ["max_size", "At most", "number"], ["labels", "Labels", "pairs"]];

const listed = (text) => text.split(/[\s,]+/).filter(Boolean);
const shown = (value, kind) => (value === undefined || value === null ? "" : kind === "list" ? value.join(", ") : kind === "pairs" ? Object.entries(value).map(([key, each]) => `${key}=${each}`).join(", ") : String(value));
const parsed = (text, kind) => (kind === "list" ? listed(text) : kind === "pairs" ? Object.fromEntries(listed(text).map((each) => [each.split("=")[0], each.split("=").slice(1).join("=")])) : kind === "number" || Array.isArray(kind) && typeof kind[0] === "number" ? Number(text) : text);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** What may be changed of a cluster, as a record. */
export function startOf(cluster) {
  const settings = {}, key = groupsKey(cluster.settings);
  for (const [name] of SIMPLE) if (name in cluster.settings) settings[name] = cluster.settings[name];
  if (key) settings[key] = cluster.settings[key];
  return { description: cluster.description, settings };
}

/** Merge patch of what was typed; `form` has texts by path: `description`, `nat_gateways`, `group.workers.min_size`. */
export function patchOf(cluster, form = {}) {
  const patch = {}, settings = {}, key = groupsKey(cluster.settings);
  if (form.description !== undefined && form.description !== cluster.description) patch.description = form.description;
  for (const [name, , kind] of SIMPLE) {
    if (form[name] === undefined || !(name in cluster.settings)) continue;
    const value = parsed(form[name], kind);
    if (!same(value, cluster.settings[name])) settings[name] = value;
  }
  if (key) {
    const groups = cluster.settings[key].map((group) => {
      const changed = { ...group };
      for (const [field, , kind] of GROUP) { const typed = form[`group.${group.name}.${field}`]; if (typed !== undefined) changed[field] = parsed(typed, kind); }
      return changed;
    });
    if (!same(groups, cluster.settings[key])) settings[key] = groups;
  }
  if (Object.keys(settings).length) patch.settings = settings;
  return patch;
}

function Field({ path, label, kind, was, form, put, faults, pointer, whole }) {
  const text = form[path] ?? shown(was, kind), before = shown(was, kind), changed = form[path] !== undefined && form[path] !== before;
  const fault = faults.find((each) => each.pointer === pointer || each.pointer?.startsWith(`${pointer}/`));
  const undo = () => { const { [path]: _, ...rest } = form; put(rest); };
  const common = { class: `input ${changed ? "changed" : ""}`, value: text, "aria-invalid": fault ? "true" : undefined, "aria-describedby": fault ? `fault ${path}` : undefined, onInput: (event) => put({ ...form, [path]: event.target.value }), id: `field ${path}` };
  return html`<div class="field ${whole ? "whole" : ""}"><label for=${`field ${path}`}>${label}</label>
    ${Array.isArray(kind) ? html`<select ...${common}>${kind.map((each) => html`<option key=${each} value=${String(each)} selected=${String(each) === text}>${String(each).replace(/_/g, " ")}</option>`)}</select>` : html`<input ...${common} inputmode=${kind === "number" ? "numeric" : undefined} spellcheck="false" autocomplete="off" />`}
    ${fault && html`<span class="fault" id=${`fault ${path}`} role="alert">${fault.detail}</span>`}
    ${changed && html`<span class="was">was ${before || "nothing"} <button type="button" class="button link" onClick=${undo}>undo</button></span>`}</div>`;
}

export function Form({ cluster, form, put, faults }) {
  const key = groupsKey(cluster.settings), common = { form, put, faults };
  const about = (group) => [group.role, `${group.min_size} to ${group.max_size}`, (group.instance_types || []).slice(0, 3).join(" or ")].filter(Boolean).join(", ");
  const touched = (group) => Object.keys(form).filter((path) => path.startsWith(`group.${group.name}.`)).length;
  return html`<${Field} path="description" label="Description" was=${cluster.description} pointer="/description" ...${common} />
    ${(key ? cluster.settings[key] : []).map((group, n) => html`<details class="group-fields" key=${group.name} open=${touched(group) > 0 || (n === 1 && cluster.settings[key].length < 4) || undefined}><summary><span class="strong">Group ${group.name}</span><span class="quiet">${about(group)}</span>${touched(group) > 0 && html`<span class="chip">${touched(group)} changed</span>`}</summary>
      <div class="inside">${GROUP.filter(([field]) => field in group).map(([field, label, kind]) => html`<${Field} key=${field} path=${`group.${group.name}.${field}`} label=${label} kind=${kind} was=${group[field]} pointer=${`/settings/${key}/${n}/${field}`} whole=${kind !== "number"} ...${common} />`)}</div></details>`)}
    <details class="group-fields" open=${SIMPLE.some(([name]) => form[name] !== undefined) || undefined}><summary><span class="strong">Network, control plane, approval</span></summary><div class="inside">${SIMPLE.filter(([name]) => name in cluster.settings).map(([name, label, kind]) => html`<${Field} key=${name} path=${name} label=${label} kind=${kind} was=${cluster.settings[name]} pointer=${`/settings/${name}`} whole=${kind === "list"} ...${common} />`)}</div></details>`;
}
