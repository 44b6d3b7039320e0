"""The policies for Services of clusters on EKS on a real API server: CEL gives our tag, or warns that it lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stockyard.domain.clusters.kubeconfigs import check
from stockyard.providers.clusters.eks import balancers
from stockyard.providers.clusters.eks.balancers import ANNOTATION
from stockyard.providers.kubernetes.client import ClientCertificate, KubernetesApi
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.rigs import until

PAIR = "stockyard:installation=inst-1"


@pytest.fixture
def api(web: Cluster) -> Iterator[KubernetesApi]:
    fields = check(web.plane.kubeconfig.read_text())
    key = ClientCertificate(fields["client-certificate-data"], fields["client-key-data"])
    api = KubernetesApi(web.plane.url, fields["certificate-authority-data"], lambda: "", certificate=key)
    yield api
    for sort in ("Mutating", "Validating"):
        for suffix in ("Binding", ""):
            kind = f"{sort}AdmissionPolicy{suffix}"
            api.delete("admissionregistration.k8s.io/v1", kind, balancers.NAME)
    api.close()


@dataclass
class Services:
    """Makes Services in the namespace of the tests."""

    web: Cluster
    folder: Path

    def create(self, annotations: dict[str, str] | None, kind: str = "LoadBalancer") -> tuple[str | None, str]:
        """The annotation that a new Service has in the end, None where it has none; and what kubectl was warned of."""
        meta = {"name": "balanced", **({} if annotations is None else {"annotations": annotations})}
        spec = {"type": kind, "ports": [{"port": 80}], "selector": {"app": "x"}}
        file = self.folder / "service.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}))
        self.web.plane.kubectl("delete", "service", "balanced", "-n", "web", "--ignore-not-found")
        answer = self.web.plane.kubectl("create", "-n", "web", "-o", "json", "-f", str(file))
        return self._tags(answer.stdout), answer.stderr

    def changed(self, patch: str) -> str | None:
        """The annotation once the Service was patched."""
        answer = self.web.plane.kubectl("patch", "service", "balanced", "-n", "web", "-o", "json", "-p", patch)
        return self._tags(answer.stdout)

    @staticmethod
    def _tags(text: str) -> str | None:
        value: str | None = (json.loads(text)["metadata"].get("annotations") or {}).get(ANNOTATION)
        return value


@pytest.fixture
def services(web: Cluster, tmp_path: Path) -> Iterator[Services]:
    yield Services(web, tmp_path)
    web.plane.kubectl("delete", "service", "balanced", "-n", "web", "--ignore-not-found")


def test_a_service_with_a_balancer_gets_our_tag_beside_its_own(services: Services, api: KubernetesApi) -> None:
    for document in balancers.giving("inst-1"):
        api.apply(document)
    until(lambda: services.create(None)[0] == PAIR)
    other = "service.beta.kubernetes.io/aws-load-balancer-scheme"
    for annotated, tags in (
        ({other: "internal"}, PAIR),
        ({ANNOTATION: ""}, PAIR),
        ({ANNOTATION: "Team=a,Cost Center=b"}, f"Team=a,Cost Center=b,{PAIR}"),
        ({ANNOTATION: f"Team=a,{PAIR}"}, f"Team=a,{PAIR}"),
        ({ANNOTATION: PAIR}, PAIR),
    ):
        assert services.create(annotated)[0] == tags
    assert services.create(None, "ClusterIP")[0] is None
    assert services.changed('{"spec": {"type": "LoadBalancer"}}') == PAIR


def test_a_service_without_our_tag_is_made_with_a_warning(services: Services, api: KubernetesApi) -> None:
    for document in balancers.warning("inst-1"):
        api.apply(document)
    until(lambda: ANNOTATION in services.create({})[1])
    assert PAIR in services.create({ANNOTATION: "Team=a"})[1]
    assert "Warning" not in services.create({ANNOTATION: f"Team=a,{PAIR}"})[1]
    assert "Warning" not in services.create(None, "ClusterIP")[1]
