"""A Kubernetes host with an account, on a real API server: the template is applied as its owner does."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from local.kubernetes.real.client import Client
from local.kubernetes.real.control_plane import ControlPlane
from stockyard.domain.clusters.kubeconfigs import check
from stockyard.domain.values.ids import account_secret
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.kubernetes import host_template
from stockyard.providers.clouds.kubernetes.access import Access
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.kubernetes.client import _trust
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, TENANT, KubernetesHost, kubernetes_account
from tests.harness.worlds.memory import FixedClock, MemorySecrets
from tests.kubernetes.rigs import until

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


class RealHost(KubernetesHost):
    """The host; what the owner does goes by ``kubectl``."""

    def __init__(self, plane: ControlPlane, clock: FixedClock | None = None) -> None:
        self.plane, self.clock = plane, clock or FixedClock()
        self.allowed_lines: set[str] = set()
        self._accesses: list[Access] = []
        self._admin = Client.of_kubeconfig(plane.kubeconfig)
        fields = check(plane.kubeconfig.read_text())
        self.authority = fields["certificate-authority-data"]
        self._wire = httpx.HTTPTransport(verify=_trust(self.authority), trust_env=False)
        self.apply(list(host_template.documents([NAMESPACE], self.features)))
        created = plane.kubectl("create", "token", host_template.NAME, "-n", NAMESPACE, "--duration", "1h")
        self.token = created.stdout.strip()
        self.account = kubernetes_account(
            server=plane.url, certificate_authority=self.authority, features=list(self.features)
        )
        self.secrets = MemorySecrets()
        self.secrets.put(account_secret(TENANT, NUMBER, "token"), self.token)
        self.clear()

    def close(self) -> None:
        """Leave nothing to the next test."""
        self.clear()
        for access in self._accesses:
            access.close()
        self._wire.close()

    def clear(self) -> None:
        """Remove the objects that carry our marks, and give every right."""
        for kind in ("configmaps", "secrets"):
            for object_name in self.objects(kind):
                self.plane.kubectl("delete", kind, object_name.partition("/")[2], "-n", NAMESPACE, "--ignore-not-found")
        roles = [each for each in host_template.documents([NAMESPACE], self.features) if each["kind"] == "Role"]
        self.apply(roles)

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Apply as the host's owner."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "template.json"
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
            self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))

    def guard(self) -> Guard:
        """Guard that lets the loopback address of the API server through, as a local cloud's does."""
        return Guard(stand_ins=frozenset({urlsplit(self.plane.url).netloc}))

    def access(self, transport: httpx.BaseTransport | None = None) -> Access:
        access = Access(lambda: self.secrets, self.guard(), self.site_transport, transport)
        self._accesses.append(access)
        return access

    def cloud(self) -> KubernetesHosts:
        return KubernetesHosts(self.access())

    def answer(self, request: httpx.Request) -> httpx.Response:
        target = httpx.URL(self.plane.url).copy_with(raw_path=request.url.raw_path)
        headers = {**request.headers, "host": target.netloc.decode()}
        answer = self._wire.handle_request(
            httpx.Request(request.method, target, headers=headers, content=request.read())
        )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.read())

    def objects(self, resource: str) -> Mapping[str, Any]:
        path = f"/api/v1/namespaces/{NAMESPACE}/{resource}?labelSelector=stockyard.dev%2Fresource"
        items = self._admin.call("GET", path)["items"]
        return {f"{NAMESPACE}/{item['metadata']['name']}": item for item in items}

    def _change_role(self, resource: str, namespace: str, change: Callable[[list[str]], list[str]]) -> None:
        path = f"{_RBAC}/namespaces/{namespace}/roles/{host_template.NAME}"
        role = self._admin.call("GET", path)
        for rule in role["rules"]:
            if resource in rule["resources"]:
                before, rule["verbs"] = set(rule["verbs"]), change(rule["verbs"])
                changed = before ^ set(rule["verbs"])
        self._admin.call("PUT", path, role)
        api = self.access().client(TENANT, self.account)
        wish = changed - before
        # The API server reads roles by a watch.
        group = next((rule["apiGroups"][0] for rule in role["rules"] if resource in rule["resources"]), "")
        until(lambda: all(api.may(verb, group, resource, namespace) is (verb in wish) for verb in changed))
