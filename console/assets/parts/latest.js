// The newest events, as they come. While the list is scrolled, new ones wait at its top.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { feed, onFeed } from "../core/feed.js";
import { eventKind, eventText, subjectPage } from "../core/model.js";
import { Link, to } from "../core/router.js";
import { Icon } from "./icons.js";
import { Card, Time } from "./ui.js";

const ICONS = { ok: ["ok", "ok"], run: ["run", "run"], waits: ["waits", "warn"], failed: ["fail", "bad"], leaves: ["leaves", "warn"] };

export const EventList = ({ events }) => html`<ul class="latest">${events.map((event) => {
  const page = subjectPage(event), [icon, tone] = ICONS[eventKind(event)];
  return html`<li key=${event.id}><${Time} at=${event.time} /><span class=${tone}><${Icon} name=${icon === "run" ? "arrow" : icon} size=${14} /></span>
    ${page ? html`<${Link} class="strong break" to=${to(page[1])}>${page[0]}<//>` : html`<span class="strong break">${event.name || event.subject}</span>`}
    <span class="second break" title=${event.reason}>${eventText(event)}</span></li>`;
})}</ul>`;

export function Latest({ match = null, title = "Latest", most = 8, all = to("operations") }) {
  const [, draw] = useState(0), box = useRef(null), [held, hold] = useState(null);
  useEffect(() => onFeed(() => draw((n) => n + 1)), []);
  const events = feed.recent.filter((event) => !match || match(event));
  const shown = (held || events).slice(0, most), fresh = held ? events.findIndex((event) => event.id === held[0]?.id) : 0;
  const scroll = () => { const away = box.current.scrollTop > 8; if (away && !held) hold(events); if (!away && held) hold(null); };
  return html`<${Card} title=${title} end=${fresh > 0 ? html`<button type="button" class="button link" onClick=${() => { box.current.scrollTop = 0; hold(null); }}>${fresh} new</button>` : all && html`<${Link} to=${all}>All operations<//>`}>
    <div class="events" ref=${box} onScroll=${scroll}>${shown.length ? html`<${EventList} events=${shown} />` : html`<p class="aside quiet">${feed.state === "starting" ? "Reading what happened." : "Nothing has happened yet."}</p>`}</div><//>`;
}
