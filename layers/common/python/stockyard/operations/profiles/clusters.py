"""The profiles of one cluster: shown, planned, changed, compared with what stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from stockyard.domain.profiles.cluster_profiles import Pack, object_documents, reference, spoken
from stockyard.domain.profiles.pack_diffs import object_changes
from stockyard.domain.profiles.pack_rights import stored_choices, with_rights
from stockyard.domain.profiles.records import ClusterPacks
from stockyard.domain.records import CloudAccount, Cluster, Operation
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import (
    Conflict,
    IllegalTransition,
    InvalidInput,
    PermissionDenied,
    UnexpectedBehavior,
    VendorError,
)
from stockyard.lifecycle.clusters.cluster_changes import PROFILES
from stockyard.operations import cluster_secrets
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.profiles.phase import look_again
from stockyard.operations.profiles.resolve import (
    Choice,
    Resolved,
    check_removal,
    check_rights,
    resolve,
    statuses,
    uses,
)
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, Create, Replace, Write
from stockyard.ports.clusters import PACKS_MANAGER, PacksAccount


def packs_record(services: Services, cluster: Cluster) -> ClusterPacks:
    """The record of a cluster's packs; an empty one of version 0 where it never had a profile."""
    record = services.store.get(ClusterPacks, cluster.id)
    if record is None:
        return ClusterPacks(cluster.id, profiles=(), packs=(), version=0)
    return replace(record, profiles=stored_choices(record.profiles))


def profiles_view(services: Services, cluster: Cluster) -> dict[str, Any]:
    """The profiles of a cluster with the status of each pack."""
    record = packs_record(services, cluster)
    return {
        "profiles": [dict(profile) for profile in record.profiles],
        "packs": [asdict(status) for status in record.packs],
        "objects": len(record.objects),
        "drift": list(record.drift),
        "compared_at": record.compared_at,
    }


def check_driver(services: Services, driver: str, choices: Sequence[Choice]) -> None:
    """``InvalidInput`` where clusters of the driver can have no profiles."""
    if choices and services.cluster_drivers[driver].packs_admin is None:
        raise InvalidInput.at("/profiles", f"clusters of the driver {driver} have no profiles")


def creation_writes(services: Services, cluster_id: str, resolved: Resolved) -> list[Write]:
    """Writes for the profiles of a new cluster."""
    if not resolved.profiles:
        return []
    record = ClusterPacks(cluster_id, profiles=resolved.profiles, packs=statuses(resolved.packs))
    return [Create(record), *uses(services, cluster_id, (), resolved.profiles)]


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """Other profiles for a standing cluster: the record of its packs before and after, and what both come to."""

    record: ClusterPacks
    before: Resolved
    after: Resolved
    rights: str
    """Of who changes them."""

    @property
    def is_needed(self) -> bool:
        """Whether anything is chosen otherwise than before."""
        return self.record.profiles != self.after.profiles

    @property
    def entry(self) -> dict[str, Any]:
        """Entry of the change that an operation remembers."""
        before, after = (
            [{"name": profile["name"], "version": profile["version"]} for profile in profiles]
            for profiles in (self.record.profiles, self.after.profiles)
        )
        return {"pointer": PROFILES, "before": before, "after": after}

    def step(self) -> str:
        """The change in words."""
        diff = difference(self.before, self.after)
        changed = len({entry["pointer"].split("/")[2] for entry in diff["changes"] if "/objects/" in entry["pointer"]})
        names = ", ".join(f"{profile['name']} {profile['version']}" for profile in self.after.profiles)
        counts = f"{len(diff['creates'])} objects come, {changed} change, {len(diff['deletes'])} go"
        return f"Apply the packs of {names} layer by layer: {counts}." if names else f"Remove all packs: {counts}."

    def writes(self, services: Services) -> list[Write]:
        """Writes that go with the operation that begins."""
        after = replace(
            self.record,
            profiles=self.after.profiles,
            packs=statuses(self.after.packs),
            drift=(),
            compared_at=None,
            rights=self.rights,
            version=self.record.version + 1,
        )
        return [
            Create(after) if self.record.version == 0 else Replace(after),
            *uses(services, self.record.id, self.record.profiles, self.after.profiles),
        ]


def profile_change(
    services: Services, cluster: Cluster, target: Cluster, choices: Sequence[Choice], rights: str
) -> ProfileChange:
    """The consequence for the cluster when a person with these rights chooses these profiles, now the target.
    ``InvalidInput`` with every fault."""
    check_driver(services, cluster.driver, choices)
    record = packs_record(services, cluster)
    after = resolve(services, with_rights(choices, rights), cluster.driver, record.profiles)
    if after.kubernetes_version not in ("", target.kubernetes_version):
        text = f"the layer k8s is {after.kubernetes_version}, and the cluster's minor {target.kubernetes_version}"
        raise InvalidInput.at(PROFILES, f"{text}; change kubernetes_version with it")
    check_rights(after)
    check_removal(record, after, rights)
    return ProfileChange(record, resolve(services, record.profiles, cluster.driver), after, rights)


NO_DIFFERENCE: Mapping[str, list[Any]] = {"creates": [], "deletes": [], "changes": []}


def difference(before: Resolved, after: Resolved) -> dict[str, list[Any]]:
    """Differences between two choices of profiles, as a plan."""
    old, new = object_documents(before.packs), object_documents(after.packs)
    return {
        "creates": [_thing(line) for line in new if line not in old],
        "deletes": [_thing(line) for line in old if line not in new],
        "changes": [
            *_value_changes(before.packs, after.packs),
            *(
                change
                for line in new
                if line in old
                for change in object_changes(spoken(f"|{line}"), old[line], new[line])
            ),
        ],
    }


def _value_changes(before: Sequence[Pack], after: Sequence[Pack]) -> list[dict[str, Any]]:
    old, new = ({pack.key: pack for pack in packs} for packs in (before, after))
    changes = []
    for key in (*old, *(key for key in new if key not in old)):
        earlier, later = old.get(key), new.get(key)
        for field in ("tag", "values"):
            pair = [getattr(pack, field) or None if pack is not None else None for pack in (earlier, later)]
            if pair[0] != pair[1]:
                changes.append({"pointer": f"/packs/{_pointed(key)}/{field}", "before": pair[0], "after": pair[1]})
    return changes


def _thing(line: str) -> dict[str, str]:
    _, kind, namespace, name = line.split("|", 3)
    return {"kind": kind, "name": f"{namespace}/{name}" if namespace else name}


def _pointed(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


def packs_work(services: Services, work: CloudWork) -> CloudWork:
    """Work for the driver of a cluster to which packs are applied: with the kubeconfig, where the control plane has
    sent one."""
    name = cluster_secrets.name(services, work.cluster, "kubeconfig")
    return replace(work, kubeconfig=services.secrets.get(name) or "")


def compare(services: Services, cluster: Cluster, actor: str) -> None:
    """Find objects that differ from their applied form, by an apply without changes, and packs that have become ready;
    and write both down.

    ``IllegalTransition`` unless the cluster is ready and nothing works on it; ``UnexpectedBehavior`` when it gives no
    answer.
    """
    record = packs_record(services, cluster)
    current = services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None
    if cluster.status != "ready" or (current is not None and current.status == "running"):
        raise IllegalTransition("Only a ready cluster that nothing works on can be compared.")
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    packs_admin = services.cluster_drivers[cluster.driver].packs_admin
    if not record.profiles or account is None or packs_admin is None:
        return
    ledger = StoreLedger(services, Owner.of_cluster(cluster, "compare", 0), "profile")
    work = CloudWork(services.tenant, services.installation, cluster, account, ledger, services.clock.now(), actor)
    packs = resolve(services, record.profiles, cluster.driver).packs
    try:
        api = packs_admin.packs_api(packs_work(services, work))
        try:
            drift = tuple(_drift(api, packs))
            record = look_again(services, record, api, packs)
        finally:
            api.close()
        compared = replace(record, drift=drift, compared_at=services.now(), version=record.version + 1)
        services.store.commit(Replace(compared))
    except PermissionDenied as error:
        raise IllegalTransition(f"The cluster refuses to be asked: {error.detail}. {error.hint}") from error
    except VendorError as error:
        raise UnexpectedBehavior(f"The cluster could not be asked ({error.error_type}).") from error
    except Conflict as conflict:
        raise IllegalTransition("The profiles of the cluster were changed just now.") from conflict


def _drift(api: PacksAccount, packs: Sequence[Pack]) -> list[str]:
    differences = []
    for pack in packs:
        own = api.acting_as(pack.rights)
        for item in pack.objects:
            meta, name = item["metadata"], f"{pack.name}: {spoken(reference('', item))}"
            live = own.get(item["apiVersion"], item["kind"], meta["name"], meta.get("namespace") or "")
            if live is None:
                differences.append(f"{name} is not there")
            elif _bare(own.apply(item, manager=PACKS_MANAGER, dry_run=True)) != _bare(live):
                differences.append(f"{name} is different")
    return differences


def _bare(document: dict[str, Any]) -> dict[str, Any]:
    """The object without what each write changes."""
    meta = {
        name: value
        for name, value in document["metadata"].items()
        if name not in ("managedFields", "resourceVersion", "generation")
    }
    return {**document, "metadata": meta, "status": None}
