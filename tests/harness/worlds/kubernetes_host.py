"""A Kubernetes host with an account: the simulated API in this process, and a service account with the template's
rights alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from agent.stockyard_agent.transport import HttpRequest, HttpResponse, Unreachable
from agent.stockyard_site import allowed
from agent.stockyard_site.site_api import GivenRequest
from agent.stockyard_site.target import Target
from local.authority import Authority
from local.kubernetes.api import ConnectionReset, KubeApi
from local.kubernetes.store import Key
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.site_content import packed_call, packed_reply, unpacked_call, unpacked_reply
from stockyard.domain.values.ids import account_secret
from stockyard.ports.sites import WAIT_SECONDS, SiteCall, SiteReply
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.kubernetes import host_template
from stockyard.providers.clouds.kubernetes.access import Access
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.clouds.kubernetes.features import BASE
from stockyard.providers.sites import SiteTransport
from tests.harness.worlds.memory import FixedClock, MemorySecrets

TENANT, NUMBER, NAMESPACE, SITE = "acme", "3", "machines", "basement"
"""``NUMBER`` is the account's."""
SERVER, PUBLIC = "https://host.example.test:6443", "192.0.2.10"


@cache
def authority_b64() -> str:
    """The certificate of an authority, as accounts have it."""
    with TemporaryDirectory() as folder:
        return base64.b64encode(Authority(Path(folder)).pem.encode()).decode()


def kubernetes_account(number: str = NUMBER, **attributes: Any) -> CloudAccount:
    """An account of the host."""
    usual = {"server": SERVER, "certificate_authority": authority_b64(), "namespaces": [NAMESPACE], "features": [BASE]}
    return CloudAccount(
        number, "kubernetes", "host", "", {**usual, **attributes}, "ext", "verified", "", "t", "t", secrets=("token",)
    )


class KubernetesHost:
    """The host. ``api`` is its API, ``account`` what the tenant has registered, for machines of these ``features``."""

    features: Sequence[str] = (BASE,)

    def __init__(self, namespaces: Sequence[str] = (NAMESPACE,), clock: FixedClock | None = None) -> None:
        self.clock = clock or FixedClock()
        self.allowed_lines: set[str] = set()
        """Lines of the connector's allow-list by which requests went through a site."""
        self.api = KubeApi(now=self.clock.now)
        self.api.install(list(host_template.documents(list(namespaces), self.features)))
        self.token = self.api.issue(namespaces[0], host_template.NAME)
        self.account = kubernetes_account(namespaces=list(namespaces), features=list(self.features))
        self.secrets = MemorySecrets()
        self.secrets.put(account_secret(TENANT, NUMBER, "token"), self.token)

    def transport(self) -> httpx.MockTransport:
        """Transport that reaches the API in this process."""
        return httpx.MockTransport(self.answer)

    def site_transport(self, tenant: str, site: str) -> SiteTransport:
        """Way to the host through the only site that there is, whose connector adds the token."""
        assert (tenant, site) == (TENANT, SITE)
        return SiteTransport(self, site)

    def ask(self, site: str, call: SiteCall, seconds: float = WAIT_SECONDS) -> SiteReply | None:
        """See ``ports.sites.SiteRequests.ask``: a connector with the allow-list of the template carries it out."""
        given_call = unpacked_call(call.method, call.path, packed_call(call))
        lines = host_template.allow_list(self.account.attributes["namespaces"], self.features)
        allowed_list = allowed.read("\n".join(lines))
        target = Target(SERVER, self._exchange, lambda: self.token, lambda: allowed_list)
        answer = target.carry_out(
            GivenRequest(site, given_call.method, given_call.path, given_call.headers, given_call.body, seconds)
        )
        for rule, line in zip(allowed_list.rules, lines, strict=True):
            path = given_call.path.partition("?")[0]
            if rule.allows(given_call.method, allowed.path_segments(path)):
                self.allowed_lines.add(line)
        reply = SiteReply(answer.status, answer.headers, answer.body, answer.failure)
        return unpacked_reply(packed_reply(reply))

    def _exchange(self, request: HttpRequest) -> HttpResponse:
        """Answer of the host to what the connector sends."""
        wire = httpx.Request(request.method, request.url, headers=dict(request.headers), content=request.body)
        try:
            answer = self.answer(wire)
        except httpx.TransportError as error:
            raise Unreachable(str(error)) from None
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(answer.status_code, headers, answer.read())

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer of the API to one request."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        target = request.url.raw_path.decode()
        try:
            status, body = self.api.request(request.method, target, headers, request.content)
        except ConnectionReset:
            raise httpx.ReadError("the connection was reset", request=request) from None
        return httpx.Response(status, text=body) if isinstance(body, str) else httpx.Response(status, json=body)

    def access(self, transport: httpx.BaseTransport | None = None) -> Access:
        """The way of clouds and sources to the host."""
        guard = Guard(resolve=lambda _host, _port: (PUBLIC,))
        return Access(lambda: self.secrets, guard, self.site_transport, transport or self.transport())

    def cloud(self) -> KubernetesHosts:
        """The cloud of such accounts."""
        return KubernetesHosts(self.access(), self.clock.now)

    def cluster(self, cluster_id: str = "clu_01KDVJXQ80000000000000HHHH", name: str = "own-host") -> Cluster:
        """The host as a cluster that Stockyard made, with its sealed kubeconfig."""
        inner = {"server": SERVER, "certificate-authority-data": authority_b64()}
        document = {
            "clusters": [{"name": "c", "cluster": inner}],
            "users": [{"name": "u", "user": {"token": self.api.administrator()}}],
        }
        self.secrets.put(f"{TENANT}/{cluster_id}/kubeconfig", json.dumps(document))
        return Cluster(cluster_id, name, "", "k8s", "aws", 1, f"{name}-client", "ready", {}, "t", "t", endpoint=SERVER)

    def without(self, verb: str, resource: str, namespace: str = NAMESPACE) -> None:
        """Take one verb from the service account, as the host's owner may."""
        self._change_role(resource, namespace, lambda verbs: [each for each in verbs if each != verb])

    def grant(self, verb: str, resource: str, namespace: str = NAMESPACE) -> None:
        """Give one verb back."""
        self._change_role(resource, namespace, lambda verbs: [*verbs, verb])

    def _change_role(self, resource: str, namespace: str, change: Callable[[list[str]], list[str]]) -> None:
        key = Key("rbac.authorization.k8s.io", "roles", namespace, host_template.NAME)
        role = json.loads(json.dumps(self.api.store.get(key)))
        for rule in role["rules"]:
            if resource in rule["resources"]:
                rule["verbs"] = change(rule["verbs"])
        self.api.store.replace(key, role)

    def objects(self, resource: str) -> Mapping[str, Any]:
        """Objects of a resource with our marks, by namespace and name."""
        return {
            f"{key.namespace}/{key.name}": document
            for key, document in self.api.store.objects.items()
            if key.resource == resource and "stockyard.dev/resource" in (document["metadata"].get("labels") or {})
        }

    def exchange_token(self) -> None:
        """The owner gives another token, and the old one is worth nothing."""
        old, self.token = self.token, self.api.issue(self.account.attributes["namespaces"][0], host_template.NAME)
        self.api.revoke(old)
        self.secrets.put(account_secret(TENANT, NUMBER, "token"), self.token)
        self.account = replace(self.account, version=self.account.version + 1)
