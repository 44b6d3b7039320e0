"""Hosts of bare metal that a cluster's owner lends: who holds one, what is written to take it, and how it goes back.

A host is a ``BareMetalHost`` of Metal3. Its operator wipes a host whose image is taken away or changed, and asks
nobody; so every document here is for the host as it was read, and no other. The fields that we apply are ours alone
after that: what is left out of the next document is removed. So each document has all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.providers.clouds.kubernetes.features import BARE_METAL_HOST
from stockyard.providers.kubernetes.client import MANAGER, KubernetesApi

Host = Mapping[str, Any]
CONSUMER_API, CONSUMER_KIND = "stockyard.dev/v1", "NodeClaim"
MARK = "stockyard.dev/"
BEFORE = f"{MARK}before"
"""The annotation of a host that we hold: what it had of what we replace."""
ADDRESS = "metal3.vcluster.com/ip-address"
"""The annotation of the address that a host has; its owner's, or one that we have chosen for it."""
FREE = frozenset({"available", "ready"})
"""States in which a host has no image and was wiped; the second in old releases."""
PROVISIONED = "provisioned"
_PAGE = 20
_ASIDE = frozenset({"baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached"})
"""Annotations by which an owner keeps the operator from a host."""


def listed(api: KubernetesApi, namespace: str, labels: str = "") -> Sequence[Host]:
    """The hosts of a namespace, by a label selector. What an inspection finds makes them large, so few come at once: an
    answer has to go through a site."""
    return api.list(BARE_METAL_HOST.api_version, BARE_METAL_HOST.kind, namespace, labels, page=_PAGE)


def holder(host: Host) -> str | None:
    """The claim of ours that holds the host, by its id; None where nobody does, or somebody else."""
    consumer_ref = host["spec"].get("consumerRef") or {}
    if (consumer_ref.get("apiVersion"), consumer_ref.get("kind")) != (CONSUMER_API, CONSUMER_KIND):
        return None
    return str(consumer_ref.get("name") or "") or None


def consumer(claim_id: str, namespace: str) -> dict[str, str]:
    """Reference to a claim as the consumer of a host."""
    return {"apiVersion": CONSUMER_API, "kind": CONSUMER_KIND, "name": claim_id, "namespace": namespace}


def state(host: Host) -> str:
    """The operator's word for the host; empty before it has any."""
    return str(_provisioning(host).get("state") or "")


def is_on(host: Host) -> bool:
    """Whether the host is powered, as its operator last saw it."""
    return _status(host).get("poweredOn") is True


def fault(host: Host) -> str | None:
    """Error of the operator with the host; None for none."""
    status = _status(host)
    if status.get("operationalStatus") != "error" and not status.get("errorType"):
        return None
    kind, message = str(status.get("errorType") or "error"), str(status.get("errorMessage") or "")
    return f"{kind}: {message}"[:300] if message else kind


def blocker(host: Host) -> str | None:
    """Reason why the host cannot be taken; None when it can."""
    meta, spec = host["metadata"], host["spec"]
    annotations = meta.get("annotations") or {}
    if spec.get("consumerRef"):
        return "in use"
    if meta.get("deletionTimestamp"):
        return "being deleted"
    if spec.get("image") or spec.get("customDeploy") or spec.get("externallyProvisioned"):
        return "in use"
    if _ASIDE & annotations.keys() or _status(host).get("operationalStatus") == "detached":
        return "paused or detached"
    if fault(host) is not None:
        return "in error"
    return None if state(host) in FREE else "not available yet"


def change_document(host: Host, added: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Document of a host that we hold: as it was read, with other fields of ``spec``; None takes one away. ``added``:
    annotations that it gets besides, and loses when it is given back."""
    meta, before = host["metadata"], dict(_before(host))
    labels = {key: text for key, text in (meta.get("labels") or {}).items() if key.startswith(MARK)}
    there = meta.get("annotations") or {}
    own = {key: there[key] for key in before.get("added") or () if key in there} | dict(added or {})
    before |= {"added": sorted(own)} if own else {}
    own |= {BEFORE: json.dumps(before, separators=(",", ":"))}
    names = ["online", "consumerRef", "image", "userData", *(["networkData"] if _owns_network_data(host) else [])]
    present = {name: host["spec"][name] for name in names if name in host["spec"]}
    return document(host, {**present, **spec}, labels, own)


def document(
    host: Host, spec: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str]
) -> dict[str, Any]:
    """Document to apply to the host, without fields that are None."""
    meta: dict[str, Any] = {"name": host["metadata"]["name"], "namespace": host["metadata"]["namespace"]}
    meta |= {"labels": dict(labels)} if labels else {}
    meta |= {"annotations": dict(annotations)} if annotations else {}
    fields = {name: value for name, value in spec.items() if value is not None}
    return {"apiVersion": host["apiVersion"], "kind": host["kind"], "metadata": meta, "spec": fields}


def take_document(host: Host, claim_id: str, marks: Mapping[str, str]) -> dict[str, Any]:
    """Document that makes the claim the consumer of a free host."""
    spec = host["spec"]
    before = json.dumps({"networkData": spec.get("networkData")}, separators=(",", ":"))
    desired = {
        "online": bool(spec.get("online")),
        "networkData": spec.get("networkData") if _owns_network_data(host) else None,
        "consumerRef": consumer(claim_id, host["metadata"]["namespace"]),
    }
    return document(host, desired, marks, {BEFORE: before})


def is_added(host: Host, annotation: str) -> bool:
    """Whether the annotation is one that we have given the host."""
    return annotation in (_before(host).get("added") or ())


def apply(api: KubernetesApi, host: Host, desired: Mapping[str, Any]) -> dict[str, Any]:
    """Apply to the host that was read. Raises ``ObjectChanged`` where it is another one, or of another version."""
    meta = host["metadata"]
    return api.apply(desired, resource_version=meta["resourceVersion"], uid=meta["uid"])


def network_data_before(host: Host) -> Mapping[str, Any] | None:
    """The network data that the host had before we gave it ours; those that it has where somebody has changed them."""
    present: Mapping[str, Any] | None = host["spec"].get("networkData")
    before = _before(host)
    if not str((present or {}).get("name") or "").startswith(secret_prefix(holder(host) or "")):
        return present
    earlier: Mapping[str, Any] | None = before.get("networkData")
    return earlier


def secret_prefix(claim_id: str) -> str:
    """Prefix of the names of a claim's Secrets, as Kubernetes has names."""
    return f"stockyard-{claim_id.rpartition('_')[2].lower()}-"


def given_back(api: KubernetesApi, host: Host, *, at_once: bool = False) -> bool:
    """Take image, user data and power from a host of ours, and give the host back when its operator has wiped it.

    True when nothing of ours is at it any more. What somebody else holds is not touched.

    ``at_once``: give it back now; it is free when its operator says so. Raises ``ObjectChanged``.
    """
    if holder(host) is None:
        return True
    # What nobody but the owner has applied is not ours to apply, or else the owner could not change it any more.
    before = network_data_before(host) if _owns_network_data(host) else None
    if not at_once:
        if host["spec"].get("image") or host["spec"].get("userData"):
            apply(api, host, change_document(host, image=None, userData=None, networkData=before, online=False))
            return False
        if state(host) not in FREE:
            return False
    # Nobody else has ever owned ``online`` since we took it, and a host cannot be without it.
    apply(api, host, document(host, {"online": False, "networkData": before}, {}, {}))
    return True


def _owns_network_data(host: Host) -> bool:
    """Whether the network data are a field of ours, which goes when we leave it out."""
    return any(
        entry.get("manager") == MANAGER and "f:networkData" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        for entry in host["metadata"].get("managedFields") or ()
    )


def _before(host: Host) -> Mapping[str, Any]:
    text = (host["metadata"].get("annotations") or {}).get(BEFORE)
    try:
        before = json.loads(text) if text else {}
    except ValueError:
        return {}
    return before if isinstance(before, Mapping) else {}


def _status(host: Host) -> Mapping[str, Any]:
    status = host.get("status")
    return status if isinstance(status, Mapping) else {}


def _provisioning(host: Host) -> Mapping[str, Any]:
    provisioning = _status(host).get("provisioning")
    return provisioning if isinstance(provisioning, Mapping) else {}
