"""The published examples of virtual machines of KubeVirt: refused at a field with the reason, or a node of each type.

They are other projects' files and stand beside the repository, not in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stockyard.edge.http.yaml_body import parse
from stockyard.providers.nodes.kubevirt.inspection import findings
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER
from tests.unit.providers.nodes.kubevirt.yard import Yard

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "examples" / "vcluster"
DOCUMENTS = {
    path.stem: document
    for path in sorted(FOLDER.glob("nodeprovider-*.yaml"))
    for document in parse(path.read_bytes(), 32)
    if "kubeVirt" in document["spec"]
}
REFUSED = {
    "nodeprovider-003": ("/spec/deploy/kubevirt/enabled", "kubectl apply -f https://"),
    "nodeprovider-006": (
        "/spec/nodeTypes/0/properties/netris.vcluster.com~1server-cluster",
        "Netris is not spoken to",
    ),
}
"""Where each of these is refused, and the commands or the reason."""

pytestmark = pytest.mark.skipif(not DOCUMENTS, reason="the published examples are not beside this repository")


def yard_of(document: dict[str, Any]) -> Yard:
    """A host for the example, whose account has another name here."""
    spec = document["spec"]
    block = {**spec["kubeVirt"], "clusterRef": {"cluster": NUMBER, "namespace": NAMESPACE}}
    types = block.pop("nodeTypes", [])
    yard = Yard()
    yard.provider = yard.provider_of(*types, properties=spec.get("properties"), **block)
    return yard


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_an_example_is_refused_by_name_or_gives_a_node_of_each_type(name: str) -> None:
    yard = yard_of(DOCUMENTS[name])
    faults = {each.pointer: each.detail for each in findings(yard.provider, yard.host.account) if not each.warning}
    if name in REFUSED:
        pointer, words = REFUSED[name]
        assert words in faults[pointer]
        return
    assert faults == {}
    assert yard.judged() == {}
    types = [entry["name"] for entry in yard.provider.spec["kubeVirt"]["nodeTypes"]]
    for number, type_name in enumerate(types):
        assert yard.launch(number, type_name).facts["type"] == f"vms.{type_name}"
        assert yard.source.look(yard.work(number, type_name)).state == "running"
    for number in range(len(types)):
        yard.terminate(number)
    assert yard.host.leftovers() == []


def test_a_field_that_no_machine_has_is_left_out_with_a_warning() -> None:
    yard = yard_of(DOCUMENTS["nodeprovider-005"])
    (warning,) = [each for each in findings(yard.provider, yard.host.account) if each.warning]
    assert warning.pointer == "/spec/nodeTypes/1/mergeVirtualMachineTemplate/spec/template/spec/taints"
    yard.launch(1, "high-memory-node")
    (machine,) = yard.host.objects("virtualmachines").values()
    inner = machine["spec"]["template"]["spec"]
    assert "taints" not in inner
    assert inner["domain"]["resources"]["requests"] == {"cpu": "4", "memory": "16Gi"}
    assert machine["metadata"]["labels"]["workload"] == "memory-intensive"
