"""The phase ``profile``: the packs of a cluster, layer by layer, and away with what no pack has any more.

What is to be applied is on the list of what may stand before it is applied, and comes off when it is gone, so that an
interrupted run leaves nothing that nobody knows. A pack that is applied again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.profiles.cluster_profiles import WORKLOADS, Pack, identity, in_order, readiness, reference, spoken
from stockyard.domain.profiles.pack_rights import OPENED, OPENED_FOR, RIGHTS, rights_faults, stored_choices
from stockyard.domain.profiles.pack_templates import Object, TemplateFault
from stockyard.domain.profiles.records import (
    PACK_APPLYING,
    PACK_FAILED,
    PACK_PENDING,
    PACK_READY,
    ClusterPacks,
    PackStatus,
)
from stockyard.domain.records import Cluster, Operation
from stockyard.domain.values.rights import ADMIN
from stockyard.errors import PermissionDenied, VendorError, VendorNotFound, VendorRefused
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.clusters.cluster_changes import PROFILES
from stockyard.lifecycle.phases import CREATE_CLUSTER
from stockyard.operations.engine.tell import tell
from stockyard.operations.profiles.resolve import resolve
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterDriver, Outcome, Remove, Replace
from stockyard.ports.clusters import PACKS_MANAGER, AdmitsPacks, PacksAccount

PHASE = "profile"
WAIT_SECONDS = 15
UNSERVED_SECONDS = 300
"""How long a kind is waited for that the cluster does not serve, where nobody waits for pods."""
OPERATORS_HINT = (
    f"It was chosen with an operator's rights. An administrator may choose the version by its number, or open the"
    f" namespace by the label {OPENED}={OPENED_FOR}"
)
SECONDS_AT_ONCE = 45
"""After so long the function is called again, which has 120 seconds."""


def awaited_kinds(operation: Operation) -> frozenset[str]:
    """The kinds whose pods an operation waits for.

    A cluster gets its workers once it is ready, so a creation waits for no pods but those that run on every node; and
    a change of something else is not held up by what a pod lacks.
    """
    if any(change["pointer"] == PROFILES for change in operation.changes):
        return WORKLOADS
    return frozenset({"DaemonSet"}) if operation.kind == CREATE_CLUSTER else frozenset()


def run_profile(
    services: Services, cluster: Cluster, driver: ClusterDriver, work: CloudWork, kinds: frozenset[str]
) -> Outcome:
    """Bring the packs of a cluster about, and wait for pods of ``kinds``. What has no answer just now is waited for, as
    long as the phase may take; ``VendorRefused`` for an object that the cluster refuses, or a job that has failed.

    The record of a cluster that has no profile any more goes last: as long as it is there, so may the account be."""
    record = services.store.get(ClusterPacks, cluster.id)
    if record is None:
        return Outcome(True, "The cluster has no profile.")
    packs_admin = driver.packs_admin
    if packs_admin is None:
        raise VendorRefused("clusters of this driver have no profiles")
    record = replace(record, profiles=stored_choices(record.profiles))
    packs = resolve(services, record.profiles, cluster.driver).packs
    record = _listed(services, record, packs)
    try:
        outcome = _apply_all(services, record, packs_admin, work, packs, kinds)
        if outcome.done and not record.profiles:
            packs_admin.forget_packs(work)
            services.store.commit(Remove(ClusterPacks, cluster.id))
    except VendorError as error:
        if not error.retryable:
            raise
        return Outcome(False, f"The cluster gives no answer: {error.detail}", WAIT_SECONDS)
    return outcome


def _apply_all(
    services: Services,
    record: ClusterPacks,
    packs_admin: AdmitsPacks,
    work: CloudWork,
    packs: Sequence[Pack],
    kinds: frozenset[str],
) -> Outcome:
    """The cluster is not asked where nothing is to do."""
    surplus = len(record.objects) - sum(len(pack.objects) for pack in packs)
    if not surplus and all(status.condition == PACK_READY for status in record.packs):
        return Outcome(True, f"{len(packs)} packs are ready.")
    api = packs_admin.packs_api(work)
    try:
        return _Application(services, record, api, kinds).run(packs)
    finally:
        api.close()


def look_again(services: Services, record: ClusterPacks, api: PacksAccount, packs: Sequence[Pack]) -> ClusterPacks:
    """Write down which packs have become ready since they were applied; the record as it then is."""
    return _Application(services, record, api, frozenset()).look(packs)


def _listed(services: Services, record: ClusterPacks, packs: Sequence[Pack]) -> ClusterPacks:
    """The record with all that is about to be applied on its list."""
    target_lines = [reference(pack.key, item) for pack in packs for item in pack.objects]
    things = {identity(line) for line in target_lines}
    surplus = [line for line in record.objects if identity(line) not in things]
    objects = (*surplus, *target_lines)
    return record if objects == record.objects else _stored(services, replace(record, objects=objects))


def _stored(services: Services, record: ClusterPacks) -> ClusterPacks:
    stored = replace(record, version=record.version + 1)
    services.store.commit(Replace(stored))
    return stored


class _Application:
    """One run of the phase."""

    def __init__(self, services: Services, record: ClusterPacks, api: PacksAccount, kinds: frozenset[str]) -> None:
        self._services, self._record, self._api, self._kinds = services, record, api, kinds
        self._begun = services.clock.now()

    def run(self, packs: Sequence[Pack]) -> Outcome:
        for layer in in_order(packs):
            for pack in layer:
                if self._status(pack).condition in (PACK_PENDING, PACK_FAILED) and not self._applied(pack):
                    return self._waiting(pack)
                if (self._services.clock.now() - self._begun).total_seconds() > SECONDS_AT_ONCE:
                    return Outcome(False, f"{pack.name} is applied", 1)
            for pack in layer:
                if self._status(pack).condition != PACK_READY and not self._is_ready(pack):
                    return self._waiting(pack)
        return self._prune(packs)

    def look(self, packs: Sequence[Pack]) -> ClusterPacks:
        """See ``look_again``."""
        for pack in packs:
            if self._status(pack).condition == PACK_APPLYING:
                self._is_ready(pack)
        return self._record

    def _waiting(self, pack: Pack) -> Outcome:
        return Outcome(False, f"{pack.name}: {self._status(pack).message}", WAIT_SECONDS)

    def _status(self, pack: Pack) -> PackStatus:
        return next(s for s in self._record.packs if (s.profile, s.name) == (pack.profile, pack.name))

    def _applied(self, pack: Pack) -> bool:
        """Whether all objects of the pack are applied. Those of a kind that is not served yet are waited for."""
        api = self._api.acting_as(pack.rights)
        for item in pack.objects:
            try:
                _check(item, pack.rights)
                api.apply(item, manager=PACKS_MANAGER)
            except VendorNotFound as missing:
                text = f"{spoken(reference('', item))}: {missing.detail}"
                if self._has_waited(pack):
                    self._say(pack, PACK_FAILED, text)
                    raise VendorRefused(f"{pack.name}: {text}", code=missing.code) from missing
                self._say(pack, PACK_PENDING, text)
                return False
            except VendorError as error:
                if error.retryable:
                    raise
                raise self._refused(pack, item, error) from error
        self._say(pack, PACK_APPLYING, "applied")
        return True

    def _refused(self, pack: Pack, item: Object, error: VendorError) -> VendorRefused:
        """The error for an object that the cluster refuses, which the pack's status tells too."""
        is_operators = isinstance(error, PermissionDenied) and pack.rights != ADMIN
        detail = f"{error.detail}. {OPERATORS_HINT}" if is_operators else error.detail
        self._say(pack, PACK_FAILED, f"{spoken(reference('', item))}: {detail}")
        return VendorRefused(f"{pack.name}: {detail}", code=error.code, hint=error.hint)

    def _has_waited(self, pack: Pack) -> bool:
        """Whether a kind will not be served any more: only a change of profiles waits for what pods bring."""
        begin = self._status(pack).started_at
        waited = self._services.seconds_since(begin) if begin and self._kinds != WORKLOADS else 0
        return waited > UNSERVED_SECONDS

    def _is_ready(self, pack: Pack) -> bool:
        """Whether the next layer may follow. A pack whose pods are not waited for stays until somebody looks."""
        lack = None
        for item in pack.objects:
            is_awaited = item["kind"] not in WORKLOADS or item["kind"] in self._kinds
            item_lack = self._lack(pack, item, is_awaited=is_awaited)
            if item_lack and is_awaited:
                self._say(pack, PACK_APPLYING, item_lack)
                return False
            lack = lack or item_lack
        self._say(pack, PACK_APPLYING if lack else PACK_READY, lack or "")
        return True

    def _lack(self, pack: Pack, item: Object, *, is_awaited: bool) -> str | None:
        meta = item["metadata"]
        api = self._api.acting_as(pack.rights)
        try:
            live = api.get(item["apiVersion"], item["kind"], meta["name"], meta.get("namespace") or "")
            return readiness(item, live)
        except PermissionDenied as error:
            raise self._refused(pack, item, error) from error
        except TemplateFault as fault:
            if not is_awaited:
                return str(fault)
            self._say(pack, PACK_FAILED, str(fault))
            raise VendorRefused(f"{pack.name}: {fault}", code="JobFailed") from fault

    def _prune(self, packs: Sequence[Pack]) -> Outcome:
        """Remove what no pack has any more, in the reverse of the order in which it was applied."""
        target_lines = {identity(reference(pack.key, item)) for pack in packs for item in pack.objects}
        for line in reversed([line for line in self._record.objects if identity(line) not in target_lines]):
            key, api_version, kind, namespace, name = line.split("|", 4)
            api = self._api.acting_as(self._removal_rights(key))
            live = api.get(api_version, kind, name, namespace)
            if live is not None and _is_ours(live):
                api.delete(api_version, kind, name, namespace)
                if api.get(api_version, kind, name, namespace) is not None:
                    return Outcome(False, f"{spoken(line)} is being removed", WAIT_SECONDS)
            objects = tuple(other for other in self._record.objects if other != line)
            self._record = _stored(self._services, replace(self._record, objects=objects))
        ready = sum(self._status(pack).condition == PACK_READY for pack in packs)
        return Outcome(True, f"{ready} of {len(packs)} packs are ready.")

    def _removal_rights(self, key: str) -> str:
        """With whose rights an object of a pack is removed: those of its profile's choice, of a profile that is not
        chosen any more those of who has chosen last."""
        name = key.partition("/")[0]
        rights = (choice[RIGHTS] for choice in self._record.profiles if choice["name"] == name)
        return str(next(rights, self._record.rights))

    def _say(self, pack: Pack, condition: str, message: str) -> None:
        """Write where a pack is; with an event when its condition is another one."""
        before, now = self._status(pack), self._services.now()
        started = before.started_at or now
        end = now if condition in (PACK_READY, PACK_FAILED) else None
        after = replace(before, condition=condition, message=message, started_at=started, ended_at=end)
        if (before.condition, before.message) == (condition, message):
            return
        statuses = tuple(after if status is before else status for status in self._record.packs)
        record = replace(self._record, packs=statuses, version=self._record.version + 1)
        if before.condition == condition:
            self._services.store.commit(Replace(record))
        else:
            record = replace(record, sequence=record.sequence + 1)
            text = f"Pack {pack.name} {pack.tag} is {condition}{': ' if message else ''}{message}."
            transition = Transition("ClusterPack", before.condition, condition, f"Pack{condition}", text)
            events = tell(self._services, "workflow", record, transition, f"{record.id}/{pack.name}")
            self._services.store.commit(Replace(record), *events)
        self._record = record


def _check(item: Object, rights: str) -> None:
    """``VendorRefused`` for what may not be chosen with these rights: the rules may be stricter than they were."""
    fault = next(rights_faults(item, rights), None)
    if fault:
        raise VendorRefused(fault, code="PackRights")


def _is_ours(live: dict[str, object]) -> bool:
    """Whether the object has fields of ours: one that somebody else has made anew under the name stays."""
    meta = live.get("metadata")
    entries = meta.get("managedFields") if isinstance(meta, dict) else None
    return any(entry.get("manager") == PACKS_MANAGER for entry in entries or ())
