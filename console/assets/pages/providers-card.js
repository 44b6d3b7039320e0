// Providers beside the fleet: kind, state, how many types and from which price.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { call } from "../core/api.js";
import { useRead } from "../core/data.js";
import { count, hour, NOTHING } from "../core/format.js";
import { setUpState } from "../core/model.js";
import { leastOf } from "../core/offers.js";
import { to } from "../core/router.js";
import { State } from "../parts/icons.js";
import { Table } from "../parts/table.js";
import { Card, Ready } from "../parts/ui.js";

const known = new Map();

/** Number of types of a provider and the least price, read page by page when it is seen. */
async function offersOf(provider, tell, signal) {
  let total = 0, least = Infinity, token;
  do {
    const { data } = await call("ListNodeTypes", { provider, page_size: 200, page_token: token }, { signal });
    total += data.items.length;
    for (const type of data.items) least = Math.min(least, leastOf(type) ?? Infinity);
    token = data.next_page_token;
    tell({ total, least: Number.isFinite(least) ? least : null, more: Boolean(token) });
  } while (token && total < 2000);
}

function Offers({ provider, field }) {
  const [sum, set] = useState(known.get(provider) || null), node = useRef(null);
  useEffect(() => {
    const put = (event) => { if (event.detail === provider) set(known.get(provider)); };
    addEventListener("stockyard:offers", put);
    return () => removeEventListener("stockyard:offers", put);
  }, [provider]);
  useEffect(() => {
    if (field !== "total" || known.has(provider)) return undefined;
    const control = new AbortController();
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting) || known.has(provider)) return;
      seen.disconnect();
      offersOf(provider, (value) => { known.set(provider, value); dispatchEvent(new CustomEvent("stockyard:offers", { detail: provider })); }, control.signal).catch(() => {});
    });
    seen.observe(node.current);
    return () => { seen.disconnect(); control.abort(); };
  }, [provider]);
  const text = !sum ? NOTHING : field === "total" ? `${count(sum.total)}${sum.more ? "…" : ""}` : sum.least === null ? "not known" : hour(sum.least);
  return html`<span ref=${node}>${text}</span>`;
}

const columns = [
  { key: "name", head: "Name", kind: "name", cell: (each) => each.name },
  { key: "kind", head: "Kind", cell: (each) => each.kind },
  { key: "state", head: "State", cell: (each) => html`<${State} ...${setUpState(each.phase)} />` },
  { key: "types", head: "Types", num: true, kind: "fact", cell: (each) => html`<${Offers} provider=${each.name} field="total" />` },
  { key: "from", head: "From USD/h", num: true, kind: "fact", cell: (each) => html`<${Offers} provider=${each.name} field="least" />` },
];
const line = (each) => ({ icon: html`<${State} ...${setUpState(each.phase)} bare />`, title: each.name, facts: [each.kind, each.message] });

export function ProvidersCard() {
  const read = useRead("ListNodeProviders", { page_size: 50 }, { news: (event) => event.detail_type === "NodeProvider" });
  return html`<${Card} title="Providers" end=${read.data?.items.length}><${Ready} read=${read} what="providers">${(data) => (data.items.length
    ? html`<${Table} label="Providers" columns=${columns} rows=${data.items} keyOf=${(each) => each.id} line=${line} address=${(each) => to("offers", { provider: each.name })} />`
    : html`<p class="aside quiet">No provider yet. A cluster brings those of its account.</p>`)}<//><//>`;
}
