"""The well-known labels of an EC2 instance type, by which Karpenter's users choose: facts of its name and size."""

from __future__ import annotations

import re

from stockyard.domain.offers import InstanceOffer

PREFIX = "karpenter.k8s.aws/instance"
_NAME = re.compile(r"(?P<category>[a-z]+)(-[0-9]+tb)?(?P<generation>[0-9]+)?[a-z0-9-]*\.(?P<size>[a-z0-9-]+)")


def labels(offer: InstanceOffer) -> dict[str, str]:
    """Family, category, generation, size, cpu, memory in MiB, and what GPUs there are."""
    found = {f"{PREFIX}-cpu": str(offer.vcpu), f"{PREFIX}-memory": str(offer.memory_mib)}
    parts = _NAME.fullmatch(offer.name)
    if parts is not None:
        found[f"{PREFIX}-family"] = offer.name.partition(".")[0]
        found[f"{PREFIX}-category"] = parts["category"]
        found[f"{PREFIX}-size"] = parts["size"]
        if parts["generation"]:
            found[f"{PREFIX}-generation"] = parts["generation"]
    for gpu in offer.gpus[:1]:
        found[f"{PREFIX}-gpu-name"] = _label(gpu.name)
        found[f"{PREFIX}-gpu-manufacturer"] = _label(gpu.manufacturer)
        found[f"{PREFIX}-gpu-count"] = str(sum(one.count for one in offer.gpus))
        found[f"{PREFIX}-gpu-memory"] = str(gpu.memory_mib)
    return found


def _label(text: str) -> str:
    return text.lower().replace(" ", "-")
