// News: one waiting request for all tabs of a person. The tab that holds the lock asks, the others listen.
import { call, Offline, net } from "./api.js";
import { session, onSession, SessionOver } from "./session.js";

const WAIT = 20, QUIET_MS = 600_000, POLL_MS = 15_000, KEEP = 200;
const listeners = new Set(), moods = new Set();
/** `state`: starting, live, polling, off. `recent` are the newest events, newest first. */
export const feed = { state: "starting", recent: [], held: false };
export const onNews = (listener) => { listeners.add(listener); return () => listeners.delete(listener); };
export const onFeed = (listener) => { moods.add(listener); return () => moods.delete(listener); };
const pause = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

let channel = null, stop = null, cursor = null, scope = "";

function mood(state) {
  if (feed.state === state) return;
  feed.state = state;
  moods.forEach((listener) => listener());
}

function take(events) {
  if (!events.length) return;
  const seen = new Set(feed.recent.map((event) => event.id));
  const fresh = events.filter((event) => !seen.has(event.id));
  if (!fresh.length) return;
  feed.recent = [...fresh, ...feed.recent].sort((a, b) => (a.time < b.time ? 1 : -1)).slice(0, KEEP);
  listeners.forEach((listener) => listener(fresh));
  moods.forEach((listener) => listener());
}

/** The newest events, with which a tab begins whether it holds the lock or not. */
const newest = (signal) => call("ListEvents", { order: "desc", page_size: 50 }, { signal });

async function seed(signal) {
  try {
    const answer = await newest(signal);
    cursor = cursor || answer.data.cursor;
    take(answer.data.items);
    mood("live");
  } catch { /* the loop asks again, and says what is wrong */ }
}

async function ask(signal) {
  let lastNews = Date.now(), failures = 0;
  while (!signal.aborted) {
    const quiet = Date.now() - lastNews > QUIET_MS;
    try {
      const answer = cursor ? await call("ListEvents", { after: cursor, ...(quiet ? {} : { wait: WAIT }) }, { signal }) : await newest(signal);
      failures = 0;
      cursor = answer.data.cursor || cursor;
      if (answer.data.items.length) lastNews = Date.now();
      take(answer.data.items);
      channel?.postMessage({ scope, events: answer.data.items, cursor, state: answer.after || quiet ? "polling" : "live" });
      mood(answer.after || quiet ? "polling" : "live");
      if (answer.after || quiet) await pause(POLL_MS, signal);
    } catch (error) {
      if (signal.aborted || error instanceof SessionOver) return;
      failures++;
      if (error instanceof Offline) mood("off");
      else if (error.status === 429) mood("polling");
      else if (error.status === 400) cursor = null;  // a cursor of another time
      await pause(error instanceof Offline ? Math.min(30_000, 1000 * 2 ** failures) : Math.max(1000 * (error.after || 0), POLL_MS), signal);
    }
  }
}

function begin() {
  if (stop || document.hidden || session.state !== "in") return;
  const control = new AbortController();
  stop = () => { control.abort(); stop = null; feed.held = false; };
  const name = `stockyard.feed.${scope}`;
  const work = async () => { feed.held = true; await ask(control.signal); feed.held = false; };
  if (!navigator.locks) { work(); return; }
  // Who waits for the lock listens meanwhile, so that the newest events are read here once.
  const begun = feed.recent.length ? Promise.resolve() : seed(control.signal);
  begun.then(() => navigator.locks.request(name, { signal: control.signal }, work)).catch(() => {});
}

function hear({ data }) {
  if (data.scope !== scope || feed.held) return;
  cursor = data.cursor || cursor;
  take(data.events);
  mood(data.state);
}

/** Begin to follow the events of the session's tenant; again when the session or the tenant is another one. */
export function follow() {
  const start = () => {
    const now = session.state === "in" ? `${session.person.name}@${session.acting || session.person.tenant}` : "";
    if (now === scope && stop) return;
    stop?.();
    if (now !== scope) { cursor = null; feed.recent = []; }
    scope = now;
    if (now) begin();
  };
  if ("BroadcastChannel" in window) { channel = new BroadcastChannel("stockyard.feed"); channel.onmessage = hear; }
  document.addEventListener("visibilitychange", () => (document.hidden ? stop?.() : begin()));
  addEventListener("online", () => { if (net.offline) { stop?.(); begin(); } });
  onSession(start);
  start();
}
