"""The published examples of hosts of bare metal: those that ask us to install something are refused at that field, and
without it each gives a node."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.nodes.os_images import OSImageContent
from stockyard.domain.records import CloudAccount, NodeClaim, NodeProvider, PriceSheet
from stockyard.domain.values import ids
from stockyard.edge.http.yaml_body import parse
from stockyard.errors import InvalidInput
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_providers.os_images import create_os_image
from stockyard.ports import Put
from stockyard.providers.clouds.kubernetes import bare_metal
from tests.harness.bare_metal.yard import ROUTED
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER
from tests.workflows.bare_metal_life import BareMetalLife

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "examples" / "vcluster"
FILES = [path for path in sorted(FOLDER.glob("nodeprovider-*.yaml")) if "\n  metal3:\n" in path.read_text()]
PUBLISHED_SPACE, ACCOUNT_NAME = "metal3-system", "bare-metal-cluster"
IMAGE = OSImageContent(url="https://images.example.test/noble.qcow2", checksum="b" * 64, format="qcow2")

pytestmark = pytest.mark.skipif(not FILES, reason="the published examples are not beside this repository")


class ExampleLife(BareMetalLife):
    """A life on hosts of the example, by the provider that the example declares."""

    provider = "metal3-provider."

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__()
        services, yard = self.nodes.services, self.yard
        for name in yard.machines:
            yard.machines[name] = {"role": "compute"}
            labels = {"kind": None, "role": "compute"}
            path = f"/apis/metal3.io/v1alpha1/namespaces/{NAMESPACE}/baremetalhosts/{name}"
            yard.caller.call("PATCH", path, {"metadata": {"labels": labels}}, "application/merge-patch+json")
        account = services.store.get(CloudAccount, NUMBER)
        assert account is not None
        moment = services.now()
        sheet = services.clouds["kubernetes"].offers(account, "acme", moment)
        services.store.commit(Put(PriceSheet(ids.account_sheet(NUMBER), moment, sheet)))
        for provider in services.store.list(NodeProvider, limit=10).items:
            if provider.name == "hall":
                spec = copy.deepcopy(provider.spec)
                spec["metal3"]["nodeTypes"] = []
                services.store.commit(Put(type(provider)(**{**_fields(provider), "spec": spec})))
        create_os_image(services, "ubuntu-noble", IMAGE, "user:ann", services.new_id("osi"))
        desired = read_desired(services, [document], "user:ann", admin=True)
        (result,) = apply_manifests(services, desired, "user:ann", "req-1")
        assert result["action"] == "created"
        self.images: list[dict[str, Any]] = []

    def _power(self, state: str) -> None:
        self.images += [
            host["spec"]["image"] for host in self.yard.hosts().values() if bare_metal.holder(host) is not None
        ]
        super()._power(state)


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def with_our_host(document: dict[str, Any]) -> dict[str, Any]:
    """The example with the account and the namespace of the test's host."""
    document = copy.deepcopy(document)
    document["spec"]["metal3"]["clusterRef"] = {"cluster": NUMBER, "namespace": NAMESPACE}
    document["spec"]["properties"] = ROUTED
    return document


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_to_be_deployed_is_refused_with_the_commands_and_the_rest_gives_a_node(path: Path) -> None:
    (document,) = parse(path.read_bytes(), 32)
    assert document["spec"]["metal3"]["clusterRef"] == {"cluster": ACCOUNT_NAME, "namespace": PUBLISHED_SPACE}
    document = with_our_host(document)
    deploys = sorted(document["spec"]["metal3"]["deploy"])
    with pytest.raises(InvalidInput) as refused:
        ExampleLife(document)
    pointers = sorted(fault.pointer for fault in refused.value.errors)
    assert pointers == [f"/0/spec/metal3/deploy/{name}" for name in deploys]
    assert all("Its owner does it" in fault.detail for fault in refused.value.errors)
    del document["spec"]["metal3"]["deploy"]
    life = ExampleLife(document)
    assert life.run() == "Available"
    assert life.cloud.leftovers() == []
    assert list(every(life.nodes.services.store, NodeClaim)) == []
    assert life.images[0] == {"url": IMAGE.url, "checksum": "b" * 64, "checksumType": "sha256", "format": "qcow2"}


@pytest.mark.parametrize("field", ["neutronEnabled", "netris", "netBox"])
def test_other_programs_are_refused_by_name(field: str) -> None:
    (document,) = parse(FILES[0].read_bytes(), 32)
    document = with_our_host(document)
    del document["spec"]["metal3"]["deploy"]
    document["spec"]["metal3"][field] = True if field == "neutronEnabled" else {"secretRef": {"name": "a"}}
    with pytest.raises(InvalidInput) as refused:
        ExampleLife(document)
    assert [fault.pointer for fault in refused.value.errors] == [f"/0/spec/metal3/{field}"]
    assert "leave this field out" in refused.value.detail
