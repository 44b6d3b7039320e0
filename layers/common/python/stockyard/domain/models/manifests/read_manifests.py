"""Reads manifests into documents of providers, clusters, pools and claims, all of them before anything is done with
one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.manifests import ClusterDocument
from stockyard.domain.models.base import read, without_nulls
from stockyard.domain.models.manifests import manifests as models
from stockyard.domain.models.manifests.own_clusters import KIND as CLUSTER_KIND
from stockyard.domain.models.manifests.own_clusters import read_own_cluster
from stockyard.domain.models.manifests.profile_manifests import read_profile
from stockyard.domain.models.nodes.block_fields import block_document
from stockyard.domain.models.nodes.node_claims import claim_fields
from stockyard.domain.models.nodes.os_images import read_os_image
from stockyard.domain.models.pools.node_pools import read_node_pool
from stockyard.domain.models.pools.own_pools import read_own_pool
from stockyard.domain.models.pools.read_vcluster import KNOWN_PROPERTIES, is_vcluster, read_vcluster
from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.manifests import CLUSTER, KARPENTER, OWN, PROVIDER, VCLUSTER, FieldPath, ProviderDocument
from stockyard.domain.nodes.os_images import OS_IMAGE_KIND, OSImageDocument
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.pools.manifests import PoolsDocument
from stockyard.domain.pools.records import DYNAMIC, STATIC
from stockyard.domain.profiles.cluster_profiles import PROFILE_KIND, ProfileDocument
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.spelling import closest
from stockyard.errors import FieldProblem, InvalidInput

Document = ProviderDocument | OSImageDocument | ProfileDocument | ClusterDocument | PoolsDocument | NewClaim


def read_manifests(
    documents: Sequence[Mapping[str, Any]],
    properties: Collection[str] = KNOWN_PROPERTIES,
    paths: Sequence[FieldPath] | None = None,
) -> list[Document]:
    """The documents in their order; ``properties`` are the names of properties that node types have. ``paths`` say
    where each document was sent; without them by its number.

    ``InvalidInput`` has every fault, below the place of its document.
    """
    paths = [(number,) for number in range(len(documents))] if paths is None else paths
    manifests: list[Document] = []
    faults: list[FieldProblem] = []
    for path, document in zip(paths, documents, strict=True):
        try:
            manifests.append(_read(document, path, properties))
        except InvalidInput as refused:
            faults.extend(refused.errors)
    faults += _repeated(manifests, paths) if not faults else []
    if faults:
        raise InvalidInput.of(faults)
    return manifests


def _repeated(documents: Sequence[Document], paths: Sequence[FieldPath]) -> list[FieldProblem]:
    """Providers, profiles, clusters and claims that come twice; of pools only their clusters tell."""
    names = [
        None if isinstance(document, PoolsDocument) else (_noun(document), document.name) for document in documents
    ]
    return [
        FieldProblem(pointer(*paths[number], "metadata", "name"), f"another {name[0]} of this name is given before")
        for number, name in enumerate(names)
        if name is not None and name in names[:number]
    ]


def _noun(document: ProviderDocument | OSImageDocument | ProfileDocument | ClusterDocument | NewClaim) -> str:
    if isinstance(document, ProfileDocument):
        return PROFILE_KIND
    if isinstance(document, OSImageDocument):
        return OS_IMAGE_KIND
    if isinstance(document, ClusterDocument):
        return "cluster"
    return "NodeProvider" if isinstance(document, ProviderDocument) else "NodeClaim"


def _read(document: Mapping[str, Any], path: FieldPath, properties: Collection[str]) -> Document:
    if is_vcluster(document):
        return read_vcluster(document, at=path, properties=properties)
    version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        raise _unknown(document, path)
    cluster_kind = cloud_kinds.manifest_kinds().get((version, kind))
    if cluster_kind is not None:
        return cloud_kinds.cluster_form(cluster_kind).read_cluster(document, path)
    reader = _READERS.get((version, kind))
    if reader is None:
        raise _unknown(document, path)
    # Only in the settings of a cluster does null say something.
    is_cluster = (version, kind) == (OWN, CLUSTER_KIND)
    return reader(document if is_cluster else without_nulls(document), path)


def is_known(version: str, kind: str) -> bool:
    """Whether manifests of this kind and version are read."""
    return (version, kind) in _READERS or (version, kind) in cloud_kinds.manifest_kinds()


def is_meant_for_us(version: str, kind: str) -> bool:
    """Whether a kind that is not read was probably meant to be one that is: it is misspelt or of an old version."""
    return bool(_version_today(version, kind) or _likely(version, kind))


def is_node_class(kind: str) -> bool:
    """Whether the kind is a node class of a Karpenter, by the names that its providers give to theirs."""
    return kind.endswith(("NodeClass", "NodeTemplate"))


def _known_kinds() -> list[tuple[str, str]]:
    return [*_READERS, *cloud_kinds.manifest_kinds()]


def _unknown(document: Mapping[str, Any], path: FieldPath) -> InvalidInput:
    version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        lacking = "kind" if isinstance(version, str) else "apiVersion"
        body = _body_of(document) if lacking == "apiVersion" else ""
        return InvalidInput.at(pointer(*path, lacking), body or "this field is required")
    if today := _version_today(version, kind):
        return InvalidInput.at(pointer(*path, "apiVersion"), f"this version is not read; write it as {today}")
    if is_node_class(kind):
        text = "a node class is not read: a node provider says how nodes are made"
        return InvalidInput.at(pointer(*path, "kind"), text)
    kinds, likely = sorted(f"{known_kind} of {of}" for of, known_kind in _known_kinds()), _likely(version, kind)
    text = f"is not one of {', '.join(kinds)}" + (f"; did you mean {likely}?" if likely else "")
    return InvalidInput.at(pointer(*path, "kind"), text)


_FORMER: Mapping[str, str] = {"Provisioner": "NodePool", "Machine": "NodeClaim"}
"""Kinds of Karpenter before ``karpenter.sh/v1beta1``, and what they are called since."""


def _version_today(version: str, kind: str) -> str:
    """The version of a kind that is read, where this is another version of its group; else empty."""
    group = version.partition("/")[0]
    kind = _FORMER.get(kind, kind) if group == KARPENTER.partition("/")[0] else kind
    versions = [of for of, known_kind in _known_kinds() if known_kind == kind and of.partition("/")[0] == group]
    return f"{kind} of {versions[0]}" if versions and version not in versions else ""


def _likely(version: str, kind: str) -> str:
    """The kind that was probably meant by one that nobody knows; empty where none is much like it."""
    if is_node_class(kind):
        return ""
    group = version.partition("/")[0]
    in_group = {known_kind: of for of, known_kind in _known_kinds() if of.partition("/")[0] == group}
    if not in_group:
        return closest(f"{kind} of {version}", [f"{known_kind} of {of}" for of, known_kind in _known_kinds()])
    elsewhere = next((f"{known_kind} of {of}" for of, known_kind in _known_kinds() if known_kind == kind), "")
    likely = closest(kind, in_group)
    return f"{likely} of {in_group[likely]}" if likely else elsewhere


def _body_of(document: Mapping[str, Any]) -> str:
    """Hint that a document without ``apiVersion`` is the body of another request; empty where nobody knows."""
    if {"cluster_type", "cloud_account_id"} & document.keys():
        return _ELSEWHERE.format("a cluster", "POST /v1/clusters", "cluster create")
    if document.get("kind") in provider_kinds.names():
        return _ELSEWHERE.format("a node provider", "POST /v1/node-providers", "provider create")
    if document.get("kind") in (STATIC, DYNAMIC):
        return _ELSEWHERE.format("a pool", "POST /v1/clusters/{id}/pools", "pool create")
    if "cluster" in document:
        return _ELSEWHERE.format("a node claim", "POST /v1/node-claims", "claim create")
    return ""


_ELSEWHERE = "this field is required in a manifest; a request body of {} goes to {} (stockyard {} -f)"


# --- one function a form ----------------------------------------------------------------------------------------------


def _provider(document: Any, path: FieldPath, *, own: bool) -> ProviderDocument:
    manifest = read(models.provider_manifest(own=own), document, at=path)
    ((kind, block),) = manifest.spec.blocks().items()
    return ProviderDocument(
        name=manifest.metadata.name,
        kind=kind,
        block=block_document(block),
        display_name=manifest.spec.display_name,
        properties=dict(manifest.spec.properties),
        price_per_cost_unit=getattr(manifest.spec, "price_per_cost_unit", None),
        labels=manifest.metadata.kept_labels(),
        annotations=dict(manifest.metadata.annotations),
    )


def _vcluster_claim(document: Any, path: FieldPath) -> NewClaim:
    manifest = read(models.VClusterClaim, document, at=path)
    spec = manifest.spec
    spec_fields = {
        "owner": spec.owner,
        "access": spec.access,
        "typeRef": spec.type_ref,
        "environmentRef": spec.environment_ref,
        "profileRef": spec.profile_ref,
    }
    document = {"spec": {"controlPlane": spec.control_plane, **{k: v for k, v in spec_fields.items() if v is not None}}}
    power = spec.power.state if "power" in spec.model_fields_set else ""
    return _claim(
        manifest, form="vcluster", document=document, power=power or "On", keeps_power=not power, strict=False
    )


def _karpenter_claim(document: Any, path: FieldPath) -> NewClaim:
    manifest = read(models.KarpenterClaim, document, at=path)
    spec, labels = manifest.spec, manifest.metadata.labels
    spec_fields = {
        "nodeClassRef": spec.node_class_ref.model_dump(by_alias=True) if spec.node_class_ref else None,
        "terminationGracePeriod": spec.termination_grace_period,
        "expireAfter": spec.expire_after,
    }
    return _claim(
        manifest,
        form="karpenter",
        cluster_ref=labels.get(CLUSTER, ""),
        provider_ref=labels.get(PROVIDER, ""),
        resources={name: str(quantity) for name, quantity in spec.resources.requests.items()},
        document={"spec": {key: value for key, value in spec_fields.items() if value is not None}},
        keeps_power=True,
        strict=False,
    )


def _own_claim(document: Any, path: FieldPath) -> NewClaim:
    manifest = read(models.OwnClaim, document, at=path)
    spec = manifest.spec
    document = {"spec": {"type": spec.type}} if spec.type else {}
    return _claim(manifest, form="stockyard", document=document, keeps_power="power" not in spec.model_fields_set)


def _claim(manifest: models.VClusterClaim | models.KarpenterClaim | models.OwnClaim, **more: Any) -> NewClaim:
    metadata = {
        "name": manifest.metadata.name,
        "labels": manifest.metadata.kept_labels(),
        "annotations": dict(manifest.metadata.annotations),
    }
    return NewClaim(**{**claim_fields(manifest.spec), **metadata, **more})


_READERS: Mapping[tuple[str, str], Callable[[Any, FieldPath], Document]] = {
    (VCLUSTER, "NodeProvider"): lambda document, path: _provider(document, path, own=False),
    (OWN, "NodeProvider"): lambda document, path: _provider(document, path, own=True),
    (VCLUSTER, "NodeClaim"): _vcluster_claim,
    (KARPENTER, "NodeClaim"): _karpenter_claim,
    (OWN, "NodeClaim"): _own_claim,
    (KARPENTER, "NodePool"): lambda document, path: read_node_pool(document, at=path),
    (OWN, PROFILE_KIND): read_profile,
    (OWN, OS_IMAGE_KIND): read_os_image,
    (OWN, CLUSTER_KIND): read_own_cluster,
    (OWN, "Pool"): lambda document, path: read_own_pool(document, at=path),
}
