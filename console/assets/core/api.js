// One request of the API: its route by name, the token, problems as errors, and the same as a command line or curl.
import { ROUTES } from "./routes.js";
import { session, token, over, SessionOver } from "./session.js";

/** A problem document (RFC 9457) of the API. */
export class Problem extends Error {
  constructor(status, body, after) {
    super(body.detail || body.message || body.title || `The API answered ${status}.`);
    this.status = status;
    this.requestId = body.request_id || "";
    this.retryable = Boolean(body.retryable) || status >= 500;
    this.fields = Array.isArray(body.errors) ? body.errors : [];
    this.type = body.error_type || "";
    this.after = after;
  }
}

/** No answer came. `since` is when the API was last heard. */
export class Offline extends Error {}

export const net = { offline: false, since: 0, heard: Date.now() };
const watchers = new Set();
export const onNet = (watcher) => { watchers.add(watcher); return () => watchers.delete(watcher); };
function heard(yes) {
  if (yes) net.heard = Date.now();
  if (net.offline !== yes) return;
  net.offline = !yes;
  net.since = net.heard;
  watchers.forEach((watcher) => watcher());
}

/** Whether the person's roles allow the operation, as the contract says. */
export function may(name) {
  const roles = ROUTES[name].roles;
  return Boolean(session.person && session.person.roles.some((role) => roles.includes(role)));
}

/** Path and query of an operation. @param {Record<string, any>} args */
export function address(name, args = {}) {
  const query = new URLSearchParams(), used = new Set();
  const path = ROUTES[name].path.replace(/\{(\w+)\}/g, (_, key) => { used.add(key); return encodeURIComponent(args[key]); });
  for (const [key, value] of Object.entries(args)) {
    if (!used.has(key) && value !== undefined && value !== null && value !== "") query.set(key, String(value));
  }
  const tail = query.toString();
  return path + (tail ? `?${tail}` : "");
}

/** Call an operation. Resolves to {status, data, etag}; raises `Problem`, `Offline`, `SessionOver`. */
export async function call(name, args = {}, { body, headers = {}, signal } = {}) {
  for (let turn = 0; ; turn++) {
    let answer;
    try {
      const sent = { Authorization: `Bearer ${await token(turn > 0)}`, Accept: "application/json", ...headers };
      if (session.acting) sent["X-Stockyard-Tenant"] = session.acting;
      if (body !== undefined && !sent["Content-Type"]) sent["Content-Type"] = "application/json";
      const raw = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
      answer = await fetch(address(name, args), { method: ROUTES[name].method, headers: sent, body: raw, signal });
    } catch (error) {
      if (error instanceof SessionOver || error.name === "AbortError") throw error;
      heard(false);
      throw new Offline("No answer from the API.");
    }
    heard(true);
    if (answer.status === 401 && turn === 0) continue;
    if (answer.status === 401) { over(); throw new SessionOver(); }
    if (answer.status === 304) return { status: 304, data: null, etag: null };
    const data = await answer.json().catch(() => null);
    const after = Number(answer.headers.get("Retry-After")) || 0;
    if (!answer.ok) throw new Problem(answer.status, data && typeof data === "object" ? data : {}, after);
    return { status: answer.status, data, etag: answer.headers.get("ETag"), after };
  }
}

const quoted = (value) => (/^[\w@%+=:,./-]+$/.test(value) ? value : `'${String(value).replace(/'/g, "'\\''")}'`);

/** The request as curl, with the token's variable and never the token. */
export function asRequest(name, args = {}, body) {
  const { method } = ROUTES[name];
  const parts = ["curl -s", ...(method === "GET" ? [] : [`-X ${method}`]), '-H "Authorization: Bearer $STOCKYARD_TOKEN"'];
  if (session.acting) parts.push(`-H ${quoted(`X-Stockyard-Tenant: ${session.acting}`)}`);
  if (body !== undefined) {
    const kind = typeof body === "string" ? "application/yaml" : "application/json";
    parts.push(`-H 'Content-Type: ${kind}'`, `--data-binary ${quoted(typeof body === "string" ? body : JSON.stringify(body))}`);
  }
  return `${parts.join(" ")} ${quoted(location.origin + address(name, args))}`;
}

/** A command line of words, quoted where the shell wants it. */
export const asCommand = (...words) => ["stockyard", ...words.map(String).map(quoted)].join(" ");

/** A key of one form: pressed twice, the request happens once. */
export const freshKey = () => crypto.randomUUID();
