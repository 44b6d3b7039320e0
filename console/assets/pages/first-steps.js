// The fleet without clusters: what it is, what to do first, and the command.
import { html } from "../vendor/preact-htm.js";
import { asCommand, may } from "../core/api.js";
import { useRead } from "../core/data.js";
import { since } from "../core/format.js";
import { to } from "../core/router.js";
import { Icon } from "../parts/icons.js";
import { Copy, LinkButton, Ready } from "../parts/ui.js";

const EXAMPLE = asCommand("cluster", "create", "-f", "examples/aws-cluster.json", "--dry-run");

export function FirstSteps() {
  const read = useRead("ListCloudAccounts", { page_size: 50 });
  return html`<div class="prose"><h2 class="large">No clusters yet</h2><p class="second">A cluster stands in your own cloud account. You see its plan and price before anything is made, and deleting it removes all that was made.</p></div>
    <${Ready} read=${read} what="accounts">${({ items }) => {
      const good = items.find((each) => each.verification === "verified");
      if (!may("CreateCluster")) return html`<p>${good ? `Account ${good.name} is connected. ` : ""}Somebody with the role operator or admin may create the first one.</p>`;
      return html`<ol class="steps"><li class=${good ? "" : "now"}><span class=${good ? "ok" : "run"}>${good ? html`<${Icon} name="ok" size=${14} />` : "1"}</span><div><p class="strong">Connect a cloud account</p>
          <p class="small second">${good ? `${good.name}, ${good.provider}, verified ${since(good.verified_at)} ago.` : "An admin registers it, and the API proves that its role can be assumed."}</p>
          ${!good && html`<p><${LinkButton} to=${to("accounts")}>To the accounts<//></p>`}</div></li>
        <li class=${good ? "now" : ""}><span class="run">2</span><div><div class="head"><p class="strong">See what a cluster would cost</p>${good && html`<span class="verbs"><${LinkButton} kind="primary" to=${to("new")}>Create cluster…<//></span>`}</div>
          <p class="small second">The form shows the plan and its price while you type; nothing is made.</p><pre class="said" tabindex="0">${EXAMPLE}</pre><p><${Copy} text=${EXAMPLE} label="Copy" /></p></div></li>
        <li><span class="quiet">3</span><div><p class="strong second">Apply the plan and watch it come up</p></div></li></ol>`;
    }}<//>`;
}
