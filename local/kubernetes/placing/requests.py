"""Resources and host ports that a pod takes of a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.domain.values.quantities import milli

Port = tuple[str, str, int]
"""Address, protocol, number."""
ANY_ADDRESS = "0.0.0.0"


def requests_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """Requests of the pod, in thousandths, and its own place among the pods of its node.

    Sidecars (init containers that restart always) run beside the containers. Other init containers run one after the
    other, each beside the sidecars that began before it. What is only limited is requested as well. What the pod says
    for itself stands in place of what its containers say.
    """
    spec = pod["spec"]
    amounts: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        amounts.update(_requests(container))
    beside: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        own = _requests(container)
        if is_sidecar(container):
            beside.update(own)
        for name in {*own, *beside}:
            together = beside[name] + (0 if is_sidecar(container) else own.get(name, 0))
            most[name] = max(most[name], together)
    amounts.update(beside)
    for name, amount in most.items():
        amounts[name] = max(amounts[name], amount)
    return {**_with_own(spec, amounts), "pods": 1000}


def _with_own(spec: Mapping[str, Any], amounts: Counter[str]) -> dict[str, int]:
    """With the resources of the pod itself, and what its runtime takes."""
    own = spec.get("resources") or {}
    own_requests = {name: milli(quantity) for name, quantity in (own.get("requests") or {}).items()}
    limited = {name: milli(quantity) for name, quantity in (own.get("limits") or {}).items() if name not in amounts}
    together = Counter({**amounts, **limited, **own_requests})
    together.update({name: milli(quantity) for name, quantity in (spec.get("overhead") or {}).items()})
    return dict(together)


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    quantities = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: milli(quantity) for name, quantity in quantities.items()}


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Whether an init container keeps running beside the others."""
    return bool(container.get("restartPolicy") == "Always")


def ports_of(pod: Mapping[str, Any]) -> frozenset[Port]:
    """The host ports of the pod's containers and sidecars. On the node's network each port is one of the node."""
    spec = pod["spec"]
    sidecars = [container for container in spec.get("initContainers") or () if is_sidecar(container)]
    ports = set()
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if number:
                ports.add((port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", int(number)))
    return frozenset(ports)


def clash(ports: Iterable[Port], taken_ports: Iterable[Port]) -> bool:
    """Whether one of the ports is taken. An address of all clashes with each."""
    taken_ports = tuple(taken_ports)
    return any(
        protocol == other[1] and number == other[2] and (address == other[0] or ANY_ADDRESS in (address, other[0]))
        for address, protocol, number in ports
        for other in taken_ports
    )
