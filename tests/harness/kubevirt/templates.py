"""Generated templates of virtual machines and settings of node types, and the machines that are made of them."""

from __future__ import annotations

import random
from typing import Any

from stockyard.providers.nodes.kubevirt.templates import template_of
from stockyard.providers.nodes.kubevirt.virtual_machines import Names, document
from tests.harness.kubevirt.host import IMAGE

NAMES = Names("stockyard-a-1", "machines", {"stockyard.dev/resource": "ncl_1", "stockyard.dev/generation": "1"})
COUNT = 500
"""Of the templates that are tried."""


def generated(chance: random.Random) -> dict[str, Any]:
    """A template that KubeVirt takes, as people write them."""
    names = chance.sample(["data", "scratch", "logs", "cache"], chance.randint(0, 3))
    domain: dict[str, Any] = {
        "devices": {"disks": [{"name": name, "disk": {"bus": chance.choice(["virtio", "sata"])}} for name in names]},
        "resources": {"requests": {"cpu": chance.choice(["1", 2, "500m"]), "memory": chance.choice(["2Gi", "4096Mi"])}},
    }
    if chance.random() < 0.3:
        domain["cpu"] = {"cores": chance.randint(1, 8), "sockets": 1}
    if chance.random() < 0.3:
        domain["memory"] = {"guest": "2Gi"}
    spec: dict[str, Any] = {
        "domain": domain,
        "volumes": [{"name": name, "emptyDisk": {"capacity": "1Gi"}} for name in names],
    }
    if chance.random() < 0.5:
        domain["devices"]["interfaces"] = [{"name": "default", "masquerade": {}}]
        spec["networks"] = [{"name": "default", "pod": {}}]
    if chance.random() < 0.3:
        spec |= {"nodeSelector": {"disk": "fast"}, "tolerations": [{"key": "x", "operator": "Exists"}]}
    if chance.random() < 0.3:
        spec["terminationGracePeriodSeconds"] = chance.randint(0, 300)
    whole_template: dict[str, Any] = {"spec": {"template": {"spec": spec}}}
    if chance.random() < 0.5:
        whole_template["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "any text: at all"}}
    if chance.random() < 0.3:
        whole_template["spec"]["running"] = True
    if chance.random() < 0.3:
        volume = {"metadata": {"name": "extra"}, "spec": {"source": {"blank": {}}, "storage": {}}}
        whole_template["spec"]["dataVolumeTemplates"] = [volume]
        spec["volumes"].append({"name": "extra", "dataVolume": {"name": "extra"}})
        domain["devices"]["disks"].append({"name": "extra", "disk": {}})
    return whole_template


def settings(chance: random.Random) -> dict[str, str]:
    """Settings of a node type that are allowed together."""
    allowed = dict(IMAGE) if chance.random() < 0.7 else {"kubevirt.vcluster.com/image-datasource": "images/ubuntu"}
    allowed["kubevirt.vcluster.com/root-disk-size"] = "20Gi"
    if chance.random() < 0.4:
        allowed["kubevirt.vcluster.com/network-attachment-definition"] = "machines/lan"
        allowed["kubevirt.vcluster.com/interface-binding"] = chance.choice(["bridge", "sriov"])
        allowed["kubevirt.vcluster.com/multus-default"] = chance.choice(["true", "false"])
        if chance.random() < 0.5:
            allowed["kubevirt.vcluster.com/interface-template"] = '{"macAddress": "02:00:00:00:00:01"}'
    if chance.random() < 0.3:
        allowed["kubevirt.vcluster.com/root-disk-template"] = "spec: {storage: {storageClassName: fast}}"
    return allowed


def generated_machine(chance: random.Random, base: Any, change: Any, allowed: dict[str, str]) -> dict[str, Any]:
    """The machine that is made from a template, its change, and settings."""
    entry: dict[str, Any] = {"name": "small", "mergeVirtualMachineTemplate": change}
    if chance.random() < 0.3:
        entry["resources"] = {"cpu": "3", "memory": "6Gi"}
    block = {"virtualMachineTemplate": base}
    return document(template_of(block, entry), NAMES, entry, allowed, has_network_data=chance.random() < 0.5)
