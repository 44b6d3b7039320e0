"""The product's client of the Kubernetes API on a real API server: it compares and sets, and faults name their field.

The same on the simulated API is in ``tests/unit/providers/kubernetes/test_client_over_tls.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stockyard.domain.clusters.kubeconfigs import check
from stockyard.errors import VendorRefused
from stockyard.providers.kubernetes.client import ClientCertificate, KubernetesApi
from stockyard.providers.kubernetes.errors import ObjectChanged
from tests.kubernetes.conftest import Cluster

ROUNDS, WRITERS = 5, 6


@pytest.fixture
def client(web: Cluster) -> Iterator[KubernetesApi]:
    fields = check(web.plane.kubeconfig.read_text())
    key = ClientCertificate(fields["client-certificate-data"], fields["client-key-data"])
    client = KubernetesApi(web.plane.url, fields["certificate-authority-data"], lambda: "", certificate=key)
    yield client
    client.delete("v1", "ConfigMap", "compared", "web")
    client.close()


def config(**data: Any) -> dict[str, Any]:
    meta = {"name": "compared", "namespace": "web"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def test_what_was_compared_is_changed_by_the_first_alone(client: KubernetesApi) -> None:
    version = client.apply(config(x="1"))["metadata"]["resourceVersion"]
    first = client.apply(config(x="1", owner="a"), resource_version=version)
    for force in (True, False):
        with pytest.raises(ObjectChanged, match="409 Conflict"):
            client.apply(config(owner="b"), resource_version=version, force=force)
    with pytest.raises(ObjectChanged, match=r"\.data\.owner"):
        client.apply(config(owner="b"), manager="other", force=False)
    assert client.get("v1", "ConfigMap", "compared", "web") == first
    client.delete("v1", "ConfigMap", "compared", "web")
    meta = first["metadata"]
    with pytest.raises(ObjectChanged, match="uid mismatch"):
        client.apply(config(x="1"), resource_version=meta["resourceVersion"], uid=meta["uid"])
    assert client.get("v1", "ConfigMap", "compared", "web") is None
    again = client.apply(config(x="1"), resource_version=meta["resourceVersion"])
    assert again["metadata"]["uid"] != meta["uid"], "a version alone does not keep what is gone away"


def test_of_many_who_compare_the_same_version_one_wins(client: KubernetesApi) -> None:
    def take(number: int, version: str) -> bool:
        try:
            client.apply(config(owner=str(number)), resource_version=version)
        except ObjectChanged:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        for turn in range(ROUNDS):
            version = client.apply(config(turn=str(turn)))["metadata"]["resourceVersion"]
            assert sum(pool.map(take, range(WRITERS), [version] * WRITERS)) == 1


def test_a_field_that_no_schema_has_is_named(client: KubernetesApi) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "compared", "namespace": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "portz": 1}]}}},
    }
    for document, fault in (
        ({**config(), "data1": {}}, r"500: \.data1 \(field not declared in schema\)"),
        (config(a=17), r"500: \.data\.a \(expected string\)"),
        (deployment, r"500: \.spec\.template\.spec\.containers\[\]\.portz \(field not declared in schema\)"),
    ):
        with pytest.raises(VendorRefused, match=fault) as refused:
            client.apply(document)
        assert "17" not in refused.value.detail
