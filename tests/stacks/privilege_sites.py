"""Calls of functions for a site and its connector, in the run of the tests of permissions."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from stacks.names import Names
from stockyard.adapters.clock import SystemClock
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.adapters.envelope import EnvelopeSecrets
from stockyard.adapters.site_requests import StoredSiteRequests
from stockyard.ports.sites import SiteCall
from tests.harness.beside import side_by_side
from tests.harness.worlds.kubernetes_host import authority_b64
from tests.stacks.privilege_events import send_event

if TYPE_CHECKING:
    from local.testing.serving import Served


def site_requests(served: Served) -> StoredSiteRequests:
    """Requests for sites of acme, as a function makes them."""
    names = Names("dev")
    registry = DynamoRegistry(served.aws("dynamodb"), names.table)
    seals = EnvelopeSecrets(partial(served.aws, "kms"), names.secrets_key, registry.store)
    return StoredSiteRequests(registry.store("acme"), seals, SystemClock(), time.sleep)


def sites_once(served: Served, good: Callable[..., Any]) -> None:
    """A site is made, its connector brings an answer to a request, and it is removed with one that waits."""
    site = good("POST", "sites", {"name": "room"})
    good("POST", "sites", {"name": "second-room"})
    more = good("GET", "sites?page_size=1")["next_page_token"]
    good("GET", f"sites?page_size=1&page_token={more}")
    credentials = good("POST", f"sites/{site['id']}/credentials")
    token = served.client_token(credentials["client_id"], credentials["client_secret"])
    path = f"/v1/sites/{site['id']}/exchange"
    asking = site_requests(served)
    assert asking.ask("room", SiteCall("GET", "/version", {}, b""), seconds=0) is None
    answer = served.call("POST", path, {"version": "1", "wants": 1}, token=token)
    assert answer.status == 200, answer.text
    (request,) = answer.body["requests"]
    reply = {"version": "1", "answers": [{"id": request["id"], "status": 200}], "wants": 0}
    assert served.call("POST", path, reply, token=token).status == 200
    assert asking.ask("room", SiteCall("GET", "/version", {}, b""), seconds=0) is None
    good("DELETE", "sites/room")
    _templates_tried(served, good)


def _templates_tried(served: Served, good: Callable[..., Any]) -> None:
    """Templates of machines are tried in a host behind a site, whose connector is away: a provider is made, by the
    route, as a manifest and by an event. They are tried in a host by its token, at an address that is not called."""
    attributes = {"via": "second-room", "namespaces": ["machines"], "features": ["kubevirt"]}
    account = good("POST", "cloud-accounts", {"provider": "kubernetes", "name": "host", "attributes": attributes})
    domain = {"resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    machine = {"domain": domain, "volumes": [{"name": "root", "containerDisk": {"image": "example.test/root"}}]}
    block = {
        "clusterRef": {"cluster": str(account["id"]), "namespace": "machines"},
        "virtualMachineTemplate": {"spec": {"template": {"spec": machine}}},
        "nodeTypes": [{"name": "small"}],
    }
    document = {"apiVersion": "management.loft.sh/v1", "kind": "NodeProvider", "metadata": {"name": "vms-too"}}
    side_by_side(
        partial(good, "POST", "node-providers", {"name": "vms", "kind": "kubeVirt", "spec": block}),
        partial(good, "POST", "apply", [{**document, "spec": {"kubeVirt": block}}]),
    )
    send_event(served, "CreateNodeProvider", {"body": {"name": "vms-by-event", "kind": "kubeVirt", "spec": block}})
    by_event = "/v1/node-providers/vms-by-event"
    served.wait("the provider of the event", lambda: served.call("GET", by_event).status == 200)
    for name in ("vms", "vms-too", "vms-by-event"):
        good("DELETE", f"node-providers/{name}")
    good("DELETE", f"cloud-accounts/{account['id']}")
    attributes = {
        "server": "https://169.254.169.254:6443",
        "certificate_authority": authority_b64(),
        "token": "a-token-of-nobody",
        "namespaces": ["machines"],
        "features": ["kubevirt"],
    }
    account = good("POST", "cloud-accounts", {"provider": "kubernetes", "name": "host", "attributes": attributes})
    block["clusterRef"] = {"cluster": str(account["id"]), "namespace": "machines"}
    answer = served.call("POST", "/v1/node-providers", {"name": "vms", "kind": "kubeVirt", "spec": block})
    assert answer.status == 422, answer.text
    good("DELETE", f"cloud-accounts/{account['id']}")
