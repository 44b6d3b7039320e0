// Login by code with PKCE (RFC 7636) at the issuer. Tokens stay in the memory of this tab.
/** @typedef {{issuer: string, client_id: string}} Config */
/** @typedef {{name: string, tenant: string, roles: string[]}} Person */

const PENDING = "stockyard.login";
const KNOWN = "stockyard.signed-in";
const EARLY_MS = 30_000;
const listeners = new Set();

export class SessionOver extends Error {}

/** What pages see of the session. `state`: none, in, over. */
export const session = {
  state: "none",
  /** @type {Person | null} */ person: null,
  /** @type {string | null} */ acting: null,
  issuerHost: "",
  endedAt: 0,
  problem: null,
};
let config = null, endpoints = null, tokens = null, renewing = null;

export const onSession = (listener) => { listeners.add(listener); return () => listeners.delete(listener); };
const tell = () => listeners.forEach((listener) => listener());

const text = (bytes) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const random = () => text(crypto.getRandomValues(new Uint8Array(32)));
const redirect = () => `${location.origin}/console/sign-in`;

function kept(area, name, value) {
  try {
    if (value === undefined) return area.getItem(name);
    if (value === null) area.removeItem(name); else area.setItem(name, value);
  } catch { /* storage may be switched off */ }
  return null;
}

async function discover() {
  if (endpoints) return;
  config = await (await fetch("/console/config.json")).json();
  session.issuerHost = new URL(config.issuer).host;
  const answer = await fetch(`${config.issuer}/.well-known/openid-configuration`);
  if (!answer.ok) throw new Error(`${session.issuerHost} answered ${answer.status}`);
  endpoints = await answer.json();
}

/** Name of the issuer, for the page that asks to sign in. */
export async function readIssuer() {
  try { await discover(); } catch (error) { session.problem = `The identity provider cannot be reached. ${error.message}`; }
  tell();
}

/** Leave for the issuer; `silent` asks it for a session that it may still have. */
export async function begin(silent = false) {
  await discover();
  const verifier = random(), state = random();
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const back = location.pathname.startsWith("/console/sign-in") ? returnAddress() : location.pathname + location.search;
  kept(sessionStorage, PENDING, JSON.stringify({ verifier, state, back }));
  const query = new URLSearchParams({
    response_type: "code", client_id: config.client_id, redirect_uri: redirect(), scope: "openid organization",
    state, code_challenge: text(hash), code_challenge_method: "S256", ...(silent ? { prompt: "none" } : {}),
  });
  location.assign(`${endpoints.authorization_endpoint}?${query}`);
}

/** Address to go on with after the sign-in page: of this origin and the console alone. */
export function returnAddress() {
  const back = new URLSearchParams(location.search).get("back") || "/console/";
  return /^\/console\/(?!sign-in)/.test(back) ? back : "/console/";
}

/** At the start of a page: finish a login, or ask the issuer silently. Resolves to what the page does next:
 * {go}: show that address; {leaving}: the browser goes away; {signIn}: ask the person. */
export async function resume() {
  const query = new URLSearchParams(location.search);
  const pending = JSON.parse(kept(sessionStorage, PENDING) || "null");
  if (location.pathname === "/console/sign-in" && query.has("state")) {
    kept(sessionStorage, PENDING, null);
    const back = pending && /^\/console\/(?!sign-in)/.test(pending.back) ? pending.back : "/console/";
    if (!pending || pending.state !== query.get("state")) return { signIn: back, problem: "The login was begun in another tab or long ago. Sign in again." };
    if (query.has("error")) {
      kept(localStorage, KNOWN, null);
      const silent = query.get("error") === "login_required" || query.get("error") === "interaction_required";
      return { signIn: back, problem: silent ? null : `The identity provider refused: ${query.get("error_description") || query.get("error")}.` };
    }
    try {
      await discover();
      await exchange({ grant_type: "authorization_code", code: query.get("code"), redirect_uri: redirect(), code_verifier: pending.verifier });
    } catch (error) { return { signIn: back, problem: `The login was not finished. ${error.message}` }; }
    kept(localStorage, KNOWN, "1");
    return { go: back };
  }
  if (location.pathname !== "/console/sign-in" && kept(localStorage, KNOWN)) {
    try { await begin(true); return { leaving: true }; } catch { /* the sign-in page says that the issuer is away */ }
  }
  return { signIn: location.pathname === "/console/sign-in" ? returnAddress() : location.pathname + location.search };
}

async function exchange(form) {
  const answer = await fetch(endpoints.token_endpoint, {
    method: "POST", body: new URLSearchParams({ ...form, client_id: config.client_id }),
  });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const error = new Error(body.error_description || body.error || `status ${answer.status}`);
    error.refused = answer.status >= 400 && answer.status < 500 && answer.status !== 429;
    throw error;
  }
  const now = Date.now();
  tokens = { access: body.access_token, refresh: body.refresh_token || tokens?.refresh, id: body.id_token || tokens?.id, ends: now + 1000 * (body.expires_in || 60) };
  session.person = personOf(claims(tokens.access));
  session.state = "in";
  tell();
}

function claims(token) {
  const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0))));
}

/** @returns {Person} */
function personOf(read) {
  const tenants = read.organization ? (Array.isArray(read.organization) ? read.organization : Object.keys(read.organization)) : [];
  const roles = (read.realm_access?.roles || []).filter((role) => role.startsWith("stockyard-"));
  return { name: read.preferred_username || read.sub, tenant: tenants[0] || read.tenant || "platform", roles };
}

/** A token that is good for a while. Raises `SessionOver`, or what `fetch` raises without a network. */
export async function token(renew = false) {
  if (session.state !== "in" || !tokens) throw new SessionOver();
  if (!renew && tokens.ends - Date.now() > EARLY_MS) return tokens.access;
  renewing ||= exchange({ grant_type: "refresh_token", refresh_token: tokens.refresh }).finally(() => { renewing = null; });
  try { await renewing; } catch (error) {
    if (!error.refused) throw error;
    over();
    throw new SessionOver();
  }
  return tokens.access;
}

/** The session has ended; what is shown stays. */
export function over() {
  if (session.state === "over") return;
  session.state = "over";
  session.endedAt = Date.now();
  tokens = null;
  tell();
}

/** End the session here and at the issuer. */
export function signOut() {
  kept(localStorage, KNOWN, null);
  const query = new URLSearchParams({ client_id: config.client_id, post_logout_redirect_uri: redirect(), ...(tokens?.id ? { id_token_hint: tokens.id } : {}) });
  tokens = null;
  location.assign(endpoints.end_session_endpoint ? `${endpoints.end_session_endpoint}?${query}` : redirect());
}

/** Act for a tenant, with the platform's role; null: as oneself. */
export function actFor(tenant) {
  session.acting = tenant;
  tell();
}
