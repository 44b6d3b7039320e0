"""Labels of instance types are those that Karpenter's AWS provider documents, from what EC2 describes."""

from __future__ import annotations

import pytest

from stockyard.adapters.catalog import _offline
from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.offers import InstanceOffer, InstanceTraits
from stockyard.providers.clouds.aws.catalog import reserved
from stockyard.providers.clouds.aws.catalog.type_labels import KNOWN_LABELS, PREFIX, labels

OF_ALL = {"category": "m", "capability-flex": "false", "tenancy": "default", "hypervisor": "nitro"}
SHIPPED = {
    "m6i.large": {
        **OF_ALL,
        "family": "m6i",
        "generation": "6",
        "size": "large",
        "pods": "29",
        "cpu": "2",
        "memory": "8192",
        "cpu-manufacturer": "intel",
        "cpu-sustained-clock-speed-mhz": "3500",
        "ebs-bandwidth": "10000",
        "network-bandwidth": "781",
        "encryption-in-transit-supported": "true",
    },
    "m6id.large": {"local-nvme": "118"},
    "m7i-flex.large": {"family": "m7i-flex", "capability-flex": "true"},
    "m7g.large": {"cpu-manufacturer": "aws"},
    "m4.large": {"hypervisor": "xen", "encryption-in-transit-supported": "false"},
    "m5.metal": {"hypervisor": ""},
    "g6.xlarge": {"gpu-name": "l4", "gpu-manufacturer": "nvidia", "gpu-count": "1", "gpu-memory": "22888"},
    "inf2.24xlarge": {
        "accelerator-name": "inferentia2",
        "accelerator-manufacturer": "aws",
        "accelerator-count": "6",
    },
    "trn1.2xlarge": {"accelerator-name": "trainium", "accelerator-manufacturer": "aws", "accelerator-count": "1"},
    "c6in.32xlarge": {"network-bandwidth": "200000"},
}


def shipped(name: str) -> InstanceOffer:
    return _offline()[0].instances[name]


@pytest.mark.parametrize("name", SHIPPED)
def test_labels_of_shipped_types(name: str) -> None:
    all_labels = labels(shipped(name), reserved.pods(shipped(name)))
    assert {key: all_labels.get(f"{PREFIX}-{key}") for key in SHIPPED[name]} == SHIPPED[name]
    assert all_labels["karpenter.k8s.aws/tenancy"] == "default"
    assert all_labels.keys() <= KNOWN_LABELS


def test_each_label_that_karpenter_documents_of_types_has_a_value_on_some_type() -> None:
    offers = _offline()[0].instances.values()
    told_labels = {key for offer in offers for key in labels(offer, 110)}
    untold_labels = KNOWN_LABELS - told_labels
    assert {key.rpartition("/")[2].rpartition("-")[0] for key in untold_labels} == {
        "capacity-reservation",
        "placement-group",
    }


def test_what_nobody_has_told_is_no_label() -> None:
    plain = labels(InstanceOffer("m6i.large", 2, 8192, "x86_64", 3, 10), 29)
    assert {f"{PREFIX}-{name}" for name in ("hypervisor", "local-nvme", "cpu-manufacturer")}.isdisjoint(plain)
    told_labels = labels(InstanceOffer("m6i.large", 2, 8192, "x86_64", 3, 10, traits=InstanceTraits("nitro")), 29)
    assert told_labels[f"{PREFIX}-hypervisor"] == "nitro"
    assert f"{PREFIX}-ebs-bandwidth" not in told_labels


def test_accelerators_are_resources_of_their_own() -> None:
    resources = reserved.capacity(shipped("inf2.24xlarge"))
    assert (resources["aws.amazon.com/neuron"], resources["aws.amazon.com/neuroncore"]) == (6, 12)


def test_the_domain_is_told_once_for_all_kinds() -> None:
    assert [domain.name for domain in provider_kinds.label_domains()] == ["karpenter.k8s.aws"]
