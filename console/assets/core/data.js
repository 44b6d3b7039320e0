// Reading for pages: what is there stays while it is read again; news of the feed makes it read again.
import { useCallback, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { call, net, onNet, Offline } from "./api.js";
import { onNews } from "./feed.js";
import { session, onSession, SessionOver } from "./session.js";

/** Lists whose API counts them. */
const COUNTED = new Set(["ListClusters", "ListNodeClaims", "ListNodeProviders", "ListNodeTypes", "ListOperations", "ListEvents", "ListAudit"]);
const AGAIN_MS = 1000, MOST_MS = 15_000, MOST_PAGES = 10;

/** Read an operation. `news(event)` says whether an event is about it; `every` reads again after so many ms.
 * `full`: pages that a filter left short are read on until one page is full, ten at most.
 * Returns {data, error, slow, at, again}. A name of null reads nothing. */
export function useRead(name, args = {}, { news = null, every = 0, body = undefined, full = false } = {}) {
  const [state, set] = useState({ data: null, error: null, slow: false, at: 0, key: "" });
  const key = name === null ? "" : JSON.stringify([name, args, body, session.acting]);
  const busy = useRef(0), turn = useRef(0), last = useRef(0), timer = useRef(0), tag = useRef({});
  const matches = useRef(news);
  matches.current = news;
  const read = useCallback(async () => {
    if (!key) return;
    const mine = ++turn.current;
    last.current = Date.now();
    const headers = tag.current.key === key && tag.current.etag ? { "If-None-Match": tag.current.etag } : {};
    const slow = setTimeout(() => turn.current === mine && set((was) => ({ ...was, slow: true })), 3000);
    try {
      const answer = await call(name, args, { body, headers });
      if (turn.current !== mine) return;
      if (answer.status === 304) set((was) => ({ ...was, error: null, slow: false, at: Date.now() }));
      else {
        let { data, etag } = answer;
        for (let pages = 1; full && data.next_page_token && data.items.length < args.page_size && pages < MOST_PAGES; pages++) {
          const next = await call(name, { ...args, page_token: data.next_page_token });
          if (turn.current !== mine) return;
          data = { ...next.data, items: [...data.items, ...next.data.items] };
          etag = null; // it is that of the first page
        }
        tag.current = { key, etag };
        set({ data, error: null, slow: false, at: Date.now(), key, etag });
      }
    } catch (error) {
      if (turn.current !== mine || error instanceof SessionOver) return;
      set((was) => ({ ...(was.key === key ? was : { data: null, at: 0, key }), error: error instanceof Offline && was.data && was.key === key ? null : error, slow: false }));
    } finally { clearTimeout(slow); }
  }, [key]);
  useEffect(() => {
    tag.current = {};
    read();
    // At most once a second; while news keep coming each wait is twice the last, so that a busy fleet costs little.
    const soon = (calm = false) => {
      const quiet = Date.now() - last.current;
      if (calm || quiet > 2 * MOST_MS) busy.current = 0;
      const wait = Math.min(MOST_MS, AGAIN_MS * 2 ** busy.current);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => { busy.current++; read(); }, Math.max(50, wait - quiet));
    };
    const stops = [
      onNews((events) => { if (matches.current && events.some((event) => matches.current(event))) soon(); }),
      onNet(() => { if (!net.offline) soon(true); }),
      onSession(() => { if (session.state === "in") soon(true); }),
    ];
    const clock = every ? setInterval(() => { if (!document.hidden && !net.offline) read(); }, every) : 0;
    return () => { turn.current++; clearTimeout(timer.current); clearInterval(clock); stops.forEach((stop) => stop()); };
  }, [key]);
  return { ...state, data: state.key === key ? state.data : null, error: state.key === key || state.error ? state.error : null, again: read };
}

/** One page of a list in memory; the next takes its place. A page that its filter left empty is gone past until one
 *  has something. Returns what `useRead` does, and steps. */
export function usePages(name, args = {}, options = {}) {
  const key = JSON.stringify([name, args]);
  const [held, hold] = useState({ key, steps: [] }), steps = held.key === key ? held.steps : [];
  const { token, from } = steps[steps.length - 1] || { token: undefined, from: 1 };
  const read = useRead(name, { page_size: 200, ...args, page_token: token }, options);
  const next = read.data?.next_page_token || null, skipping = Boolean(next) && !read.data.items.length;
  const goOn = (first) => hold({ key, steps: [...steps.filter((step) => step.from < first), { token: next, from: first }] });
  useEffect(() => { if (skipping) goOn(from); }, [next, skipping]);
  // Counted only for who sees a part of the list, and no more often than once a minute.
  const several = COUNTED.has(name) && (Boolean(next) || from > 1);
  const counted = useRead(several ? name : null, { ...args, costs: undefined, page_size: 1, count: true }, { every: 60_000 });
  return {
    ...read, items: skipping ? null : read.data?.items || null, from, more: Boolean(next), total: counted.data?.total || null,
    forward: next ? () => goOn(from + read.data.items.length) : null,
    back: from > 1 ? () => hold({ key, steps: steps.slice(0, -1) }) : null,
  };
}

/** The time, again each `ms`, for ages and what is elapsed. */
export function useClock(ms = 1000) {
  const [, draw] = useState(0);
  useEffect(() => {
    const clock = setInterval(() => { if (!document.hidden) draw((n) => n + 1); }, ms);
    return () => clearInterval(clock);
  }, [ms]);
}

/** Text that a person typed, kept over a login, for this tab. Never for secrets. */
export function useDraft(name, initial) {
  const key = `stockyard.draft.${name}`;
  const [value, set] = useState(() => { try { return JSON.parse(sessionStorage.getItem(key)) ?? initial; } catch { return initial; } });
  const put = useCallback((next) => {
    set(next);
    try { if (next === null) sessionStorage.removeItem(key); else sessionStorage.setItem(key, JSON.stringify(next)); } catch { /* storage may be full or off */ }
  }, [key]);
  return [value, put];
}
