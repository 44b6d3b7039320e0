"""Sets of manifests: a thing belongs to the set that has applied it, and to one alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain.manifest_sets import Names, SetMember, member_id, names_of
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.nodes.os_images import OSImage
from stockyard.domain.nodes.records import NodeClaim, NodeProvider
from stockyard.domain.pools.records import Pool
from stockyard.domain.profiles.records import ClusterProfile
from stockyard.domain.records import UNSEEN, Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.errors import Conflict, FieldProblem, InUse
from stockyard.operations.listing import every
from stockyard.operations.manifests.clusters import DesiredCluster
from stockyard.operations.manifests.desired import Desired, DesiredClaim, DesiredProvider, LeftOut
from stockyard.operations.manifests.documents import sorted_out
from stockyard.operations.manifests.os_images import DesiredOSImage
from stockyard.operations.manifests.pools import DesiredPools
from stockyard.operations.manifests.profiles import DesiredProfile
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Replace

Thing = Cluster | Pool | NodeProvider | NodeClaim | ClusterProfile | OSImage
KINDS: Mapping[str, type[Thing]] = {
    "os-image": OSImage,
    "node-provider": NodeProvider,
    "cluster-profile": ClusterProfile,
    "cluster": Cluster,
    "pool": Pool,
    "node-claim": NodeClaim,
}
"""The record of each kind, in the order in which they are made."""
_KIND_OF: Mapping[type[Desired], str] = {
    DesiredOSImage: "os-image",
    DesiredProvider: "node-provider",
    DesiredProfile: "cluster-profile",
    DesiredCluster: "cluster",
    DesiredPools: "pool",
    DesiredClaim: "node-claim",
}


def thing_of(services: Services, member: SetMember) -> Thing | None:
    """The thing that the set has applied. None when it is gone or going; one that somebody has made again under its
    name is another thing."""
    thing = services.store.get(KINDS[member.kind], member.subject)
    if thing is None or thing.created_at != member.made_at or _leaves(thing):
        return None
    return thing


def _leaves(thing: Thing) -> bool:
    if isinstance(thing, Cluster):
        return thing.status in {"deleting", *UNSEEN}
    return isinstance(thing, Pool | NodeClaim) and thing.deleting


def owner_of(services: Services, kind: str, thing: Thing) -> SetMember | None:
    """The membership of a thing; None while it belongs to no set."""
    member = services.store.get(SetMember, member_id(kind, thing.id))
    return member if member is not None and member.made_at == thing.created_at else None


@dataclass(frozen=True, slots=True)
class ManifestSet:
    """The documents of one request that are of a set. ``takes``: also what belongs to another set."""

    services: Services
    name: str
    documents: Mapping[FieldPath, Mapping[str, Any]]
    takes: bool = False

    @classmethod
    def of(
        cls, services: Services, name: str, sent: Sequence[Mapping[str, Any]], *, takes: bool = False
    ) -> ManifestSet:
        """The set of this name with the documents of a request, whose lists are taken apart."""
        read = sorted_out(sent)
        return cls(services, name, dict(zip(read.paths, read.documents, strict=True)), takes)

    def check(self, desired: Sequence[Desired]) -> None:
        """``InUse`` with each thing that belongs to another set."""
        if self.takes:
            return
        faults = [
            FieldProblem(pointer(*path, "metadata", "name"), f"{thing.name} belongs to the set {owner.set_name}")
            for manifest in desired
            for path, kind, thing in _present(manifest)
            if (owner := owner_of(self.services, kind, thing)) is not None and owner.set_name != self.name
        ]
        if faults:
            listed = "; ".join(fault.detail for fault in faults)
            raise InUse(f"{listed}: apply with take to move them into the set {self.name}.", errors=faults)

    def unnamed(self, desired: Sequence[Desired]) -> list[dict[str, Any]]:
        """Living members without a document, each as a ``SetMemberView`` document. What is used comes before its
        users."""
        named = {member_id(kind, thing.id) for manifest in desired for _, kind, thing in _present(manifest)}
        members = [
            member
            for member in every(self.services.store, SetMember, where={"set_name": self.name})
            if member.id not in named and thing_of(self.services, member) is not None
        ]
        return [member_view(member) for member in sorted(members, key=lambda each: list(KINDS).index(each.kind))]

    def note(self, manifest: Desired, results: Sequence[Mapping[str, Any]]) -> None:
        """Enter what a manifest has made, changed or entries as it says into the set."""
        if isinstance(manifest, LeftOut):
            return
        kind, document = _KIND_OF[type(manifest)], self._document(manifest.path)
        for result, names in zip(results, self._names(manifest, document), strict=False):
            thing = self.services.store.get(KINDS[kind], str(result["id"]))
            if thing is not None and result["action"] != "deleted":
                self._enter(kind, thing, labels_of(document), names)

    def forget_gone(self) -> None:
        """Let go of members whose things are gone."""
        for member in list(every(self.services.store, SetMember, where={"set_name": self.name})):
            thing = self.services.store.get(KINDS[member.kind], member.subject)
            if thing is None or thing.created_at != member.made_at:
                self._commit(Remove(SetMember, member.id, version=member.version))

    def _document(self, path: FieldPath) -> Mapping[str, Any]:
        return next((document for at, document in self.documents.items() if path[: len(at)] == at), {})

    def _names(self, manifest: Desired, document: Mapping[str, Any]) -> list[Names]:
        """Names of the fields that the manifest says of each of its things, in their order."""
        if isinstance(manifest, DesiredPools):
            return [pool.names for pool in manifest.pools]
        if isinstance(manifest, DesiredProvider | DesiredClaim | DesiredOSImage):
            return [manifest.names]
        return [names_of(document.get("spec")) or {}]

    def _enter(self, kind: str, thing: Thing, labels: dict[str, str], names: Names) -> None:
        former = self.services.store.get(SetMember, member_id(kind, thing.id))
        member = SetMember(
            member_id(kind, thing.id),
            set_name=self.name,
            kind=kind,
            subject=thing.id,
            name=thing.name,
            cluster=self._cluster_of(thing),
            made_at=thing.created_at,
            applied_at=self.services.now(),
            labels=labels,
            fields=names,
        )
        if former is None:
            self._commit(Create(member))
        elif replace(former, applied_at=member.applied_at, version=1) != member:
            self._commit(Replace(replace(member, version=former.version + 1)))

    def _cluster_of(self, thing: Thing) -> str | None:
        if not isinstance(thing, Pool):
            return None
        cluster = self.services.store.get(Cluster, thing.cluster_id)
        return cluster.name if cluster else None

    def _commit(self, write: Create | Replace | Remove) -> None:
        """Write a membership. Where two applies meet, the other one's stays: the next apply enters it again."""
        try:
            self.services.store.commit(write)
        except Conflict:
            return


def labels_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The labels by which a document is selected: those of its metadata, the tags of a Cluster, the labels of a
    Pool."""
    metadata, spec = document.get("metadata"), document.get("spec")
    sources = [(metadata, "labels"), (spec, "tags"), (spec, "labels")]
    labels: dict[str, str] = {}
    for holder, name in reversed(sources):
        entries = holder.get(name) if isinstance(holder, Mapping) else None
        labels |= {str(key): str(value) for key, value in entries.items()} if isinstance(entries, Mapping) else {}
    return labels


def _present(manifest: Desired) -> Iterator[tuple[FieldPath, str, Thing]]:
    """Things of a manifest that are there already, each with its place and kind."""
    if isinstance(manifest, DesiredPools):
        yield from ((pool.at, "pool", pool.current) for pool in manifest.pools if pool.current is not None)
    elif not isinstance(manifest, LeftOut) and manifest.current is not None:
        yield manifest.path, _KIND_OF[type(manifest)], manifest.current


def member_view(member: SetMember) -> dict[str, Any]:
    """``member`` as a ``SetMemberView`` document."""
    return {
        "set": member.set_name,
        "kind": member.kind,
        "id": member.subject,
        "name": member.name,
        "cluster": member.cluster,
        "labels": dict(member.labels),
        "fields": dict(member.fields),
        "applied_at": member.applied_at,
    }
