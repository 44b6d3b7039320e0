"""Resources that manifests ask for, compared with what is there: every check is made before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stockyard.domain.clusters.manifests import ClusterDocument
from stockyard.domain.clusters.own_labels import unknown_labels
from stockyard.domain.manifest_sets import Names, said_names
from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.declared_types import declared
from stockyard.domain.nodes.manifests import (
    FieldPath,
    ProviderDocument,
    Warnings,
    asked_requirements,
    provider_warnings,
)
from stockyard.domain.nodes.os_images import OSImageDocument
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.platform import PLATFORM, provider_name
from stockyard.domain.pools.manifests import PoolsDocument
from stockyard.domain.profiles.cluster_profiles import ProfileDocument
from stockyard.domain.records import Cluster, Name, NodeClaim, NodeProvider
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.rights import of_person
from stockyard.errors import FieldProblem, Forbidden, IllegalTransition, InUse, InvalidInput, NotFound
from stockyard.lifecycle.nodes.node_claim import FAILED
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.manifests.clusters import DesiredCluster, desired_cluster
from stockyard.operations.manifests.document_faults import told_by_document
from stockyard.operations.manifests.former import Former
from stockyard.operations.manifests.os_images import DesiredOSImage, desired_os_image
from stockyard.operations.manifests.pools import (
    DesiredPools,
    desired_pools,
    drafts_of,
    pool_faults,
    pools_of_cluster,
    property_keys,
    sole_cluster,
)
from stockyard.operations.manifests.profiles import DesiredProfile, desired_profile, with_drafts
from stockyard.operations.manifests.prune import settled
from stockyard.operations.node_claims.create import draft_of
from stockyard.operations.node_providers.os_images import QUOTA as OS_IMAGES
from stockyard.operations.node_providers.providers import QUOTA, changed_provider, check_provider, draft
from stockyard.operations.node_providers.trials import trial_faults
from stockyard.operations.quotas.limits import CLUSTERS, check_room
from stockyard.operations.quotas.node_claims import check_claims_room
from stockyard.operations.services import Services

if TYPE_CHECKING:
    from stockyard.domain.models.manifests.read_manifests import Document

_DEFAULT = "720h"
"""What Karpenter's ``expireAfter`` is when nobody writes it."""
_CHANGEABLE = ("display_name", "labels", "annotations", "power")
_OF_A_PROVIDER = ("display_name", "properties", "price_per_cost_unit", "labels", "annotations")
_FIXED: Mapping[str, Mapping[str, str]] = {
    "vcluster": {"cluster_ref": "vClusterRef", "provider_ref": "providerRef", "resources": "desiredCapacity"},
    "karpenter": {"resources": "resources"},
    "stockyard": {
        "cluster_ref": "cluster",
        "provider_ref": "provider",
        "resources": "resources",
        "termination_grace_period": "terminationGracePeriod",
    },
}
"""By form: fields of a claim that cannot change and whose names differ in the manifest."""
_FIXED_EVERYWHERE: Mapping[str, str] = {
    "properties": "properties",
    "taints": "taints",
    "startup_taints": "startupTaints",
    "kubelet_args": "kubeletArgs",
    "priority": "priority",
    "keep_failed": "keepFailed",
}


@dataclass(frozen=True, slots=True)
class DesiredProvider:
    """A provider to make, or with ``current`` to change by ``fields``."""

    path: FieldPath
    document: ProviderDocument
    provider: NodeProvider
    current: NodeProvider | None
    fields: Mapping[str, Any]
    names: Names = field(default_factory=dict)
    """Fields beside the block that the document says."""

    @property
    def warnings(self) -> Warnings:
        """Warnings about the provider."""
        return provider_warnings(
            self.provider, (*self.path, "spec", self.provider.kind), (*self.path, "spec", "properties")
        )


@dataclass(frozen=True, slots=True)
class DesiredClaim:
    """A claim to make, or with ``current`` to change by ``fields``."""

    path: FieldPath
    document: NewClaim
    current: NodeClaim | None
    fields: Mapping[str, Any]
    comes_with_cluster: bool = False
    """Whether its cluster is one that the documents make."""
    names: Names = field(default_factory=dict)
    """Labels and annotations that the document says."""

    @property
    def plannable(self) -> NewClaim:
        """The claim as far as it can be planned: one of a cluster that is not there yet names none."""
        return replace(self.document, cluster_ref="") if self.comes_with_cluster else self.document

    @property
    def provider_name(self) -> str:
        """The provider that it names, by itself or before the name of a type; empty for none."""
        return self.document.provider_ref or self.document.type_ref.partition(".")[0]

    @property
    def warnings(self) -> Warnings:
        """Warnings about parts of the claim that are kept and not honoured yet, or were probably meant otherwise."""
        spec = self.document.document.get("spec") or {}
        warnings = unknown_labels(self.document.labels, (*self.path, "metadata", "labels"))
        if spec.get("expireAfter") not in (None, _DEFAULT):
            warnings.append(((*self.path, "spec", "expireAfter"), "This is kept, and does nothing yet."))
        return warnings


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Parts of the documents that are not read, as warnings. Nothing is asked for by them."""

    warnings: Warnings


Desired = DesiredProvider | DesiredOSImage | DesiredProfile | DesiredCluster | DesiredPools | DesiredClaim | LeftOut


def read_desired(
    services: Services,
    documents: Sequence[Mapping[str, Any]],
    actor: str,
    *,
    admin: bool,
    create_only: bool = False,
    prune: bool = False,
    set_name: str | None = None,
) -> list[Desired]:
    """The manifests, compared with what is there; nothing is written.

    Raises ``InvalidInput`` with every fault below the number of its document, ``Forbidden`` for providers without
    ``admin``, ``QuotaExceeded`` when they are too many together, ``InUse`` for a node type that would go and has nodes,
    and with ``create_only`` for whatever is there already, ``IllegalTransition`` for a claim or a pool that is being
    deleted. ``prune`` and ``set_name``: see ``prune.settled``.
    """
    from stockyard.domain.models.manifests.read_manifests import read_manifests
    from stockyard.domain.models.pools.read_vcluster import KNOWN_PROPERTIES, is_vcluster
    from stockyard.operations.manifests.documents import sorted_out

    sorted_documents = sorted_out(documents)
    former = Former(services, set_name)
    documents, paths = tuple(map(former.completed, sorted_documents.documents)), sorted_documents.paths
    properties = KNOWN_PROPERTIES | property_keys(services) if any(map(is_vcluster, documents)) else KNOWN_PROPERTIES
    with told_by_document(documents, paths):
        read = zip(paths, read_manifests(documents, properties, paths), strict=True)
        desired = _compared(former, list(read), actor, admin=admin)
        if create_only:
            _check_new(desired)
    desired = settled(services, desired, prune=prune, set_name=set_name)
    return [*desired, *([LeftOut(sorted_documents.warnings)] if sorted_documents.warnings else [])]


def _check_new(desired: Sequence[Desired]) -> None:
    """``InUse`` with all that is there already."""
    there = [
        FieldProblem(pointer(*path, "metadata", "name"), f"There is a {noun} called {name}.")
        for manifest in desired
        for path, noun, name in _present(manifest)
    ]
    if there:
        raise InUse(" ".join(fault.detail for fault in there), errors=there)


def _present(manifest: Desired) -> Iterator[tuple[FieldPath, str, str]]:
    """Things that the manifest asks for and that are there already: the place of each in the documents, the thing in
    words, and its name."""
    if isinstance(manifest, DesiredPools):
        yield from ((pool.at, "pool", pool.pool.name) for pool in manifest.pools if pool.current is not None)
    elif not isinstance(manifest, LeftOut) and manifest.current is not None:
        noun = {
            DesiredOSImage: "OS image",
            DesiredProvider: "node provider",
            DesiredProfile: "cluster profile",
            DesiredCluster: "cluster",
        }
        yield manifest.path, noun.get(type(manifest), "node claim"), manifest.current.name


def _compared(former: Former, read: Sequence[tuple[FieldPath, Document]], actor: str, *, admin: bool) -> list[Desired]:
    """Resources that the documents ask for, checked together."""
    services = former.services
    if not admin and any(isinstance(document, ProviderDocument | OSImageDocument) for _, document in read):
        raise Forbidden("NodeProviders and OSImages need the role stockyard-admin or stockyard-platform.")
    if services.tenant == PLATFORM and not all(isinstance(document, ProviderDocument) for _, document in read):
        text = "Clusters, profiles, claims and pools belong to tenants"
        raise Forbidden(f"{text}: name one by the header X-Stockyard-Tenant.")
    rights = of_person(admin=admin)
    profiles = {
        path: desired_profile(services, path, document, rights)
        for path, document in read
        if isinstance(document, ProfileDocument)
    }
    # Clusters may have a profile that comes with them, and pools and claims a cluster.
    drafted = with_drafts(services, profiles.values())
    clusters = {
        path: desired_cluster(drafted, path, document, rights)
        for path, document in read
        if isinstance(document, ClusterDocument)
    }
    new_clusters = drafts_of(drafted, clusters.values())
    desired: list[Desired] = []
    for path, document in read:
        if isinstance(document, ProfileDocument):
            desired.append(profiles[path])
        elif isinstance(document, ClusterDocument):
            pools = pools_of_cluster(clusters[path], new_clusters, former)
            desired += [clusters[path]] if pools is None else [clusters[path], pools]
        else:
            desired.append(_desired(drafted, path, document, new_clusters, former))
    new = {manifest.provider.name: manifest.provider for manifest in desired if isinstance(manifest, DesiredProvider)}
    faults: list[FieldProblem] = []
    for manifest in desired:
        if isinstance(manifest, DesiredProvider):
            faults += _provider_faults(services, manifest)
        elif isinstance(manifest, DesiredClaim):
            faults += _claim_faults(services, manifest, new)
    faults += pool_faults(services, [manifest for manifest in desired if isinstance(manifest, DesiredPools)], new)
    faults = faults or _trial_faults(services, desired)
    if faults:
        raise InvalidInput.of(faults)
    _check_quotas(services, desired, actor)
    return desired


def _desired(
    services: Services,
    path: FieldPath,
    document: ProviderDocument | OSImageDocument | PoolsDocument | NewClaim,
    new_clusters: Mapping[str, Cluster],
    former: Former,
) -> Desired:
    if isinstance(document, PoolsDocument):
        return desired_pools(services, path, document, new_clusters, former)
    if isinstance(document, OSImageDocument):
        return desired_os_image(path, document, former)
    if isinstance(document, ProviderDocument):
        name = services.store.get(Name, provider_name(services.tenant, document.name))
        stored = services.store.get(NodeProvider, name.owner) if name else None
        said_fields = {field_name: getattr(document, field_name) for field_name in _OF_A_PROVIDER}
        if stored is not None:
            fields = former.merge("node-provider", stored.id, stored.created_at, said_fields, stored)
            document = replace(document, **fields)
        provider = draft(services, document)
        changes = _differing(stored, provider, ("spec", *_OF_A_PROVIDER))
        return DesiredProvider(path, document, provider, stored, changes, said_names(said_fields))
    name = services.store.get(Name, f"node-claim/{document.name}")
    current = services.store.get(NodeClaim, name.owner) if name else None
    if document.form == "karpenter" and not document.cluster_ref:
        # Karpenter runs in one cluster, so its claims do not name it.
        named = current.cluster_ref if current else sole_cluster(services, path, document.labels)
        document = replace(document, cluster_ref=named)
    said_fields = {"labels": document.labels, "annotations": document.annotations}
    if current is not None:
        document = replace(document, **former.merge("node-claim", current.id, current.created_at, said_fields, current))
    is_early = document.cluster_ref in new_clusters
    return DesiredClaim(path, document, current, _claim_changes(current, document), is_early, said_names(said_fields))


def _claim_changes(current: NodeClaim | None, document: NewClaim) -> dict[str, Any]:
    """Differences between the claim and its document. A power that the manifest does not say stays; of a machine that
    is being switched, what it will be counts."""
    changes = _differing(current, document, [name for name in _CHANGEABLE if name != "power"])
    if current is not None and not document.keeps_power:
        coming = current.desired_power if current.desired_power in ("On", "Off") else current.power
        changes |= {"power": document.power} if document.power != coming else {}
    return changes


def _differing(current: object, desired: object, names: Sequence[str]) -> dict[str, Any]:
    if current is None:
        return {}
    return {name: getattr(desired, name) for name in names if getattr(desired, name) != getattr(current, name)}


def _provider_faults(services: Services, manifest: DesiredProvider) -> list[FieldProblem]:
    kind, current = manifest.provider.kind, manifest.current
    if current is not None and current.kind != kind:
        text = f"node provider {current.name} is of kind {current.kind}, which cannot change"
        return [FieldProblem(pointer(*manifest.path, "spec", kind), text)]
    faults = check_provider(services, manifest.provider, (*manifest.path, "spec", kind))
    if not faults and current is not None and manifest.fields:
        changed_provider(services, current, current.version, dict(manifest.fields), tried=True)
    return faults


def _trial_faults(services: Services, desired: Sequence[Desired]) -> list[FieldProblem]:
    """Faults of new and changed providers that their vendors find."""
    silent: set[str] = set()
    faults: list[FieldProblem] = []
    for manifest in desired:
        if isinstance(manifest, DesiredProvider) and (manifest.current is None or manifest.fields):
            path = (*manifest.path, "spec", manifest.provider.kind)
            faults += trial_faults(services, manifest.provider, path, silent)
    return faults


def _claim_faults(services: Services, manifest: DesiredClaim, new: Mapping[str, NodeProvider]) -> list[FieldProblem]:
    if manifest.current is not None:
        return _fixed_faults(manifest, manifest.current)
    document = manifest.document
    provider = new.get(manifest.provider_name)
    if provider is not None:
        return _new_provider_faults(services, manifest, provider) if document.strict else []
    try:
        draft_of(services, manifest.plannable, "", None)
    except InvalidInput as refused:
        at = pointer(*manifest.path, "spec")
        return [FieldProblem(at + problem.pointer, problem.detail) for problem in refused.errors] or [
            FieldProblem(at, refused.detail)
        ]
    return []


def _new_provider_faults(services: Services, manifest: DesiredClaim, provider: NodeProvider) -> list[FieldProblem]:
    """Faults of a claim whose provider comes with it: the scheduler does not know that one yet."""
    faults: list[FieldProblem] = []
    try:
        if not manifest.comes_with_cluster:
            find_cluster(services, manifest.document.cluster_ref)
    except NotFound as missing:
        faults.append(FieldProblem(pointer(*manifest.path, "spec", "cluster"), missing.detail))
    type_name = manifest.document.type_ref.removeprefix(f"{provider.name}.")
    if (
        type_name
        and not provider_kinds.kind(provider.kind).discovers
        and type_name not in {node_type.name for node_type in declared(provider)}
    ):
        text = f"There is no node type {manifest.document.type_ref}."
        faults.append(FieldProblem(pointer(*manifest.path, "spec", "type"), text))
    return faults


def _fixed_faults(manifest: DesiredClaim, current: NodeClaim) -> list[FieldProblem]:
    if current.deleting:
        raise IllegalTransition(f"Node claim {current.name} is being deleted.")
    if "power" in manifest.fields and (current.phase == FAILED or current.desired_power):
        state = "is being switched" if current.desired_power else "has failed"
        raise IllegalTransition(f"Node claim {current.name} {state}: its power cannot change now.")
    document = manifest.document
    if document.form != current.form:
        text = f"node claim {current.name} came in another form, which cannot change"
        return [FieldProblem(pointer(*manifest.path, "apiVersion"), text)]
    named = {**_FIXED_EVERYWHERE, **_FIXED[document.form]}
    changed = [
        manifest_name for name, manifest_name in named.items() if getattr(document, name) != getattr(current, name)
    ]
    if document.requirements != asked_requirements(current):
        changed.append("requirements")
    before, after = dict(current.document.get("spec") or {}), document.document.get("spec") or {}
    for name in ("type", "typeRef"):
        # what the scheduler has filled in comes back with a manifest that was read here
        if name not in before and current.type_ref and after.get(name) == current.type_ref:
            before[name] = current.type_ref
    changed += [name for name in {**before, **after} if before.get(name) != after.get(name)]
    faults = [FieldProblem(pointer(*manifest.path, "spec", name), _UNCHANGEABLE) for name in changed]
    for noun in ("cluster", "provider") if document.form == "karpenter" else ():
        if getattr(document, f"{noun}_ref") != getattr(current, f"{noun}_ref"):
            faults.append(FieldProblem(pointer(*manifest.path, "metadata", "labels"), f"the {noun} cannot change"))
    return faults


_UNCHANGEABLE = "cannot be changed after creation"


def _check_quotas(services: Services, desired: Sequence[Desired], actor: str) -> None:
    """Whether all that is new fits at once, so that not only the first ones are made."""
    for kind, quota in ((DesiredProvider, QUOTA), (DesiredOSImage, OS_IMAGES), (DesiredCluster, CLUSTERS)):
        check_room(services, quota, sum(1 for each in desired if isinstance(each, kind) and each.current is None))
    claims = (m.document.provider_ref for m in desired if isinstance(m, DesiredClaim) and m.current is None)
    check_claims_room(services, claims, actor)
