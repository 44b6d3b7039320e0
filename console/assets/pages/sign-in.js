// The page for who has no session.
import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { begin, onSession, readIssuer, session } from "../core/session.js";
import { Icon } from "../parts/icons.js";
import { Button } from "../parts/ui.js";

const drafts = () => { try { return Object.keys(sessionStorage).filter((key) => key.startsWith("stockyard.draft.")).map((key) => key.slice(16)); } catch { return []; } };

export function SignIn({ problem }) {
  const [, draw] = useState(0), [busy, set] = useState(null), [failed, fail] = useState(null);
  useEffect(() => { document.title = "Sign in · Stockyard"; readIssuer(); return onSession(() => draw((n) => n + 1)); }, []);
  const kept = drafts(), said = failed || problem || session.problem;
  const leave = async () => {
    set("Opening");
    try { await begin(); } catch (error) { fail(`The identity provider cannot be reached. ${error.message}`); set(null); }
  };
  return html`<main class="sign-in" id="page"><section class="card sign" aria-labelledby="sign-title">
    <p class="brand"><${Icon} name="yard" size=${18} />Stockyard</p>
    <h1 id="sign-title">${kept.length ? "Sign in to go on" : "Sign in"}</h1>
    <p class="second">${kept.length ? "What you typed is kept in this tab." : `To the console of ${location.host}.`}</p>
    ${kept.map((name) => html`<p key=${name} class="kept"><${Icon} name="file" size=${14} /><span class="break">${name}<br /><span class="quiet small">not applied</span></span></p>`)}
    ${said && html`<p class="bad" role="alert">${said}</p>`}
    <${Button} kind="primary" busy=${busy} onClick=${leave}>Continue to sign in<//>
    <p class="small quiet">Opens <code>${session.issuerHost || "your identity provider"}</code>. This page keeps no password, and its token ends with this tab.</p></section></main>`;
}
