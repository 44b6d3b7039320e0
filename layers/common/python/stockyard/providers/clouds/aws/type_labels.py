"""The well-known labels of an EC2 instance type, by which Karpenter's users choose: facts of its name and size."""

from __future__ import annotations

import re

from stockyard.domain.offers import InstanceOffer

PREFIX = "karpenter.k8s.aws/instance"
_NAME = re.compile(r"(?P<category>[a-z]+)(-[0-9]+tb)?(?P<generation>[0-9]+)?[a-z0-9-]*\.(?P<size>[a-z0-9-]+)")


def labels(offer: InstanceOffer) -> dict[str, str]:
    """Family, category, generation, size, cpu, memory in MiB, and what GPUs there are."""
    label_values = {f"{PREFIX}-cpu": str(offer.vcpu), f"{PREFIX}-memory": str(offer.memory_mib)}
    parts = _NAME.fullmatch(offer.name)
    if parts is not None:
        label_values[f"{PREFIX}-family"] = offer.name.partition(".")[0]
        label_values[f"{PREFIX}-category"] = parts["category"]
        label_values[f"{PREFIX}-size"] = parts["size"]
        if parts["generation"]:
            label_values[f"{PREFIX}-generation"] = parts["generation"]
    for gpu in offer.gpus[:1]:
        label_values[f"{PREFIX}-gpu-name"] = _label(gpu.name)
        label_values[f"{PREFIX}-gpu-manufacturer"] = _label(gpu.manufacturer)
        label_values[f"{PREFIX}-gpu-count"] = str(sum(model.count for model in offer.gpus))
        label_values[f"{PREFIX}-gpu-memory"] = str(gpu.memory_mib)
    return label_values


def _label(text: str) -> str:
    return text.lower().replace(" ", "-")
