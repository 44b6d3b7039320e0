"""Reads manifests into documents of providers and claims, all of them before anything is done with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stockyard.domain.manifests import CLUSTER, KARPENTER, OWN, PROVIDER, VCLUSTER, ClaimDocument, ProviderDocument
from stockyard.domain.models import manifests as models
from stockyard.domain.models.base import read, summary
from stockyard.domain.models.node_blocks import block_document
from stockyard.domain.models.node_fields import CamelRequirement, TaintInput
from stockyard.domain.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

Document = ProviderDocument | ClaimDocument
_LATER: Mapping[str, str] = {
    KARPENTER: "NodePool",
    "infrastructure.modelplane.ai/v1alpha1": "EKSCluster",
}
_OF_A_VCLUSTER = frozenset({"privateNodes", "controlPlane", "sync", "networking", "policies", "integrations"})
_HANDED_ON = ("Template", "selector")
"""How the names of objects end that another system reads: nothing is taken out of them."""


def read_manifests(documents: Sequence[Mapping[str, Any]]) -> list[Document]:
    """The documents in their order. ``InvalidInput`` has every fault, below the number of its document."""
    found: list[Document] = []
    faults: list[FieldProblem] = []
    for place, document in enumerate(documents):
        try:
            found.append(_read(document, place))
        except InvalidInput as refused:
            faults.extend(refused.errors)
    faults += _repeated(found) if not faults else []
    if faults:
        raise InvalidInput(summary(faults), errors=faults)
    return found


def kind_name(document: Document) -> str:
    """What its manifest calls it."""
    return "NodeProvider" if isinstance(document, ProviderDocument) else "NodeClaim"


def _repeated(documents: Sequence[Document]) -> list[FieldProblem]:
    names = [(kind_name(one), one.name) for one in documents]
    return [
        FieldProblem(pointer(place, "metadata", "name"), f"another {name[0]} of this name is given before")
        for place, name in enumerate(names)
        if name in names[:place]
    ]


def _read(document: Mapping[str, Any], place: int) -> Document:
    version, kind = document.get("apiVersion"), document.get("kind")
    reader = _READERS.get((version, kind)) if isinstance(version, str) and isinstance(kind, str) else None
    if reader is None:
        raise _unknown(document, place)
    return reader(_without_nulls(document), place)


def _unknown(document: Mapping[str, Any], place: int) -> InvalidInput:
    version, kind = document.get("apiVersion"), document.get("kind")
    if version is None and kind is None and _OF_A_VCLUSTER & set(document):
        fault = FieldProblem(pointer(place), "a vcluster.yaml cannot be applied: it is not built yet")
    elif not isinstance(version, str) or not isinstance(kind, str):
        lacking = "kind" if isinstance(version, str) else "apiVersion"
        fault = FieldProblem(pointer(place, lacking), "this field is required")
    elif _LATER.get(version) == kind:
        fault = FieldProblem(pointer(place, "kind"), f"{kind} of {version} is not built yet")
    else:
        known = sorted({f"{one} of {of}" for of, one in _READERS})
        fault = FieldProblem(pointer(place, "kind"), f"is not one of {', '.join(known)}")
    return InvalidInput(summary([fault]), errors=[fault])


def _without_nulls(value: Any, name: str = "") -> Any:
    """``value`` without the fields that are null: to Kubernetes they are not there."""
    if name.endswith(_HANDED_ON):
        return value
    if isinstance(value, dict):
        return {key: _without_nulls(inner, str(key)) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


# --- one function a form ----------------------------------------------------------------------------------------------


def _provider(model: type[models.ForeignProvider | models.OwnProvider], document: Any, place: int) -> ProviderDocument:
    given = read(model, document, at=(place,))
    ((kind, block),) = given.spec.blocks().items()
    return ProviderDocument(
        name=given.metadata.name,
        kind=kind,
        block=block_document(block),
        display_name=given.spec.display_name,
        properties=dict(given.spec.properties),
        price_per_cost_unit=getattr(given.spec, "price_per_cost_unit", None),
        labels=given.metadata.kept_labels(),
        annotations=dict(given.metadata.annotations),
    )


def _vcluster_claim(document: Any, place: int) -> ClaimDocument:
    given = read(models.VClusterClaim, document, at=(place,))
    spec = given.spec
    kept = {
        "owner": spec.owner,
        "access": spec.access,
        "typeRef": spec.type_ref,
        "environmentRef": spec.environment_ref,
        "profileRef": spec.profile_ref,
    }
    return ClaimDocument(
        **_shared(given, "vcluster"),
        cluster_ref=spec.v_cluster_ref or "",
        provider_ref=spec.provider_ref or "",
        type_ref=spec.type_ref or "",
        resources=_texts(spec.desired_capacity),
        properties=dict(spec.properties),
        kubelet_args=dict(spec.kubelet_args),
        power=(spec.power.state or None) if "power" in spec.model_fields_set else None,
        display_name=spec.display_name,
        document={"spec": {"controlPlane": spec.control_plane, **{k: v for k, v in kept.items() if v is not None}}},
        strict=False,
    )


def _karpenter_claim(document: Any, place: int) -> ClaimDocument:
    given = read(models.KarpenterClaim, document, at=(place,))
    spec = given.spec
    kept = {
        "nodeClassRef": spec.node_class_ref.model_dump(by_alias=True),
        "terminationGracePeriod": spec.termination_grace_period,
        "expireAfter": spec.expire_after,
    }
    return ClaimDocument(
        **_shared(given, "karpenter"),
        cluster_ref=given.metadata.labels.get(CLUSTER, ""),
        provider_ref=given.metadata.labels.get(PROVIDER, ""),
        resources=_texts(spec.resources.requests),
        document={"spec": {key: value for key, value in kept.items() if value is not None}},
        strict=False,
    )


def _own_claim(document: Any, place: int) -> ClaimDocument:
    given = read(models.OwnClaim, document, at=(place,))
    spec = given.spec
    return ClaimDocument(
        **_shared(given, "stockyard"),
        cluster_ref=spec.cluster,
        provider_ref=spec.provider or "",
        type_ref=spec.type or "",
        resources=_texts(spec.resources),
        properties=dict(spec.properties),
        kubelet_args=dict(spec.kubelet_args),
        power=spec.power if "power" in spec.model_fields_set else None,
        priority=spec.priority,
        display_name=spec.display_name,
        document={"spec": {"type": spec.type}} if spec.type else {},
    )


def _shared(given: models.VClusterClaim | models.KarpenterClaim | models.OwnClaim, form: str) -> dict[str, Any]:
    requirements: Sequence[CamelRequirement] = given.spec.requirements
    taints: Sequence[TaintInput] = given.spec.taints
    startup: Sequence[TaintInput] = given.spec.startup_taints
    return {
        "name": given.metadata.name,
        "form": form,
        "labels": given.metadata.kept_labels(),
        "annotations": dict(given.metadata.annotations),
        "requirements": tuple(one.entry() for one in requirements),
        "taints": tuple(one.entry() for one in taints),
        "startup_taints": tuple(one.entry() for one in startup),
    }


def _texts(resources: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in resources.items()}


_READERS: Mapping[tuple[str, str], Callable[[Any, int], Document]] = {
    (VCLUSTER, "NodeProvider"): lambda document, place: _provider(models.ForeignProvider, document, place),
    (OWN, "NodeProvider"): lambda document, place: _provider(models.OwnProvider, document, place),
    (VCLUSTER, "NodeClaim"): _vcluster_claim,
    (KARPENTER, "NodeClaim"): _karpenter_claim,
    (OWN, "NodeClaim"): _own_claim,
}
