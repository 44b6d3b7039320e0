// The start: session, then the page that the address names.
import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/preact-htm.js";
import { follow } from "./core/feed.js";
import { go, to, useAddress } from "./core/router.js";
import { returnAddress, resume, session } from "./core/session.js";
import { KeyList, listen, Palette } from "./parts/palette.js";
import { Shell } from "./parts/shell.js";
import { Empty, LinkButton, Note } from "./parts/ui.js";
import { SignIn } from "./pages/sign-in.js";
import { pageOf } from "./pages/index.js";

const counts = {};

function NotFound({ path }) {
  return html`<${Empty} page title="No such page"><p>Nothing is at <code class="break">${path}</code>.</p><${LinkButton} to=${to("")}>To the fleet<//><//>`;
}

/** A page that cannot be drawn says so; the frame stays. */
function Guarded({ children }) {
  const [error, reset] = useErrorBoundary((raised) => console.error(raised));
  const { parts } = useAddress();
  useEffect(() => { if (error) reset(); }, [parts.join("/")]);
  if (error) return html`<${Note} kind="bad">This page cannot be shown: ${error.message}. Other pages go on.<//>`;
  return children;
}

function App() {
  const { parts, query } = useAddress();
  const [shown, show] = useState(null), [, draw] = useState(0);
  useEffect(() => listen(show), []);
  const page = pageOf(parts);
  const crumbs = page ? page.crumbs : [["Not found", null]];
  const title = crumbs.map(([text]) => text).reverse().join(" · ");
  useEffect(() => { document.title = `${title} · Stockyard`; }, [title]);
  const count = (name, number) => { if (counts[name] !== number) { counts[name] = number; draw((n) => n + 1); } };
  const key = page ? page.key : "none";
  return html`<${Shell} crumbs=${crumbs} section=${page?.section} counts=${counts} onGo=${() => show("palette")}>
      <${Guarded} key=${`${key} ${session.acting}`}>${page ? html`<${page.view} ...${page.args} query=${query} count=${count} />` : html`<${NotFound} path=${location.pathname} />`}<//><//>
    ${(shown === "palette" || shown === "verbs") && html`<${Palette} verbsOnly=${shown === "verbs"} onClose=${() => show(null)} />`}
    ${shown === "keys" && html`<${KeyList} onClose=${() => show(null)} />`}`;
}

async function start() {
  const next = await resume();
  const root = document.getElementById("app");
  if (next.leaving) return;
  if (next.go) {
    go(next.go, { replace: true });
    follow();
    render(html`<${App} />`, root);
    return;
  }
  const back = next.signIn || returnAddress();
  history.replaceState(null, "", to("sign-in", { back }));
  render(html`<${SignIn} problem=${next.problem} />`, root);
}

start();
