"""Cloud accounts that are Kubernetes hosts: ``ports.Cloud`` by the API of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.values import times
from stockyard.errors import VendorError, VendorNotFound
from stockyard.ports import Cloud, Skipped, Tagged, Verification
from stockyard.providers.clouds.kubernetes import host_sheets, host_template, orphans
from stockyard.providers.clouds.kubernetes.access import Access
from stockyard.providers.clouds.kubernetes.features import BASE, Right, kinds_of, reads_of, rights_of
from stockyard.providers.kubernetes.client import KubernetesApi

SOON = timedelta(days=30)
"""How long before their end credentials are warned of."""
_AT_ONCE = 8
"""Questions to the API server under way at a time."""
_PROBE = "stockyard-verification"
"""Name of an object that is never made: a dry run of it tells whether the namespace is there."""


class KubernetesHosts(Cloud):
    """Objects with our marks in hosts' namespaces, and proof that accounts have the rights that they need. ``now``
    gives the time by which credentials end."""

    sells_by_account = True

    def __init__(self, access: Access, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._access, self._now = access, now

    def verify(self, account: CloudAccount, tenant: str) -> Verification:
        """Whether the host knows the credentials and grants every right of the account's features in each of its
        namespaces. The message names each that is missing: verb, resource, namespace.

        Raises retryable ``VendorError`` leaves when the host cannot be asked.
        """
        try:
            ends_at = self._access.credentials(tenant, account).ends_at
            if ends_at is not None and ends_at <= self._now():
                return Verification(False, f"The credentials ended at {times.to_text(ends_at)}: give new ones.")
            api = self._access.client(tenant, account)
            refusal = self._refusal(api, account)
            warnings = [] if refusal else list(_blindness(api, account))
        except VendorError as error:
            if error.retryable:
                raise
            return Verification(False, f"{error.detail} {error.hint}".strip())
        if refusal:
            return Verification(False, refusal)
        if ends_at is not None and ends_at - self._now() < SOON:
            warnings.append(f"The credentials end at {times.to_text(ends_at)}: give new ones before.")
        spaces = ", ".join(_namespaces(account))
        return Verification(True, f"The account has every right that it needs in {spaces}.", tuple(warnings))

    def _refusal(self, api: KubernetesApi, account: CloudAccount) -> str | None:
        """Reason why the account cannot work in the host; None when it can."""
        questions = [(space, right) for space in _namespaces(account) for right in rights_of(_features(account))]

        def may(question: tuple[str, Right]) -> bool:
            space, right = question
            return api.may(right.verb, right.group, right.resource, space)

        first = may(questions[0])  # makes the connection that the others use, and fails alone where there is none
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            granted = [first, *pool.map(may, questions[1:])]
        missing = [question for question, is_granted in zip(questions, granted, strict=True) if not is_granted]
        if missing:
            names = "; ".join(f"{right} in namespace {space}" for space, right in missing)
            return f"The account may not: {names}. Its host's owner applies the account's template."
        if BASE in _features(account):
            return next(filter(None, (_absence(api, space) for space in _namespaces(account))), None)
        return None

    def principal(self, attributes: Mapping[str, Any]) -> str:
        """See ``ports.Cloud.principal``: the host. Its credentials may be exchanged at any time."""
        return str(attributes.get("via") or attributes.get("server") or "")

    def check_attributes(self, attributes: Mapping[str, Any]) -> None:
        """See ``ports.Cloud.check_attributes``: what a host has, only a call tells."""

    def machine_roles(self, account: CloudAccount, cluster: Cluster) -> tuple[str, Sequence[str]]:  # noqa: ARG002
        """See ``ports.Cloud.machine_roles``: machines in a host have no keys of it, and prove it by tokens."""
        return "", ()

    def regions(self, account: CloudAccount) -> Sequence[str]:  # noqa: ARG002
        """See ``ports.Cloud.regions``: none that prices are known of."""
        return ()

    def template(self, account: CloudAccount, installation: str) -> dict[str, Any]:  # noqa: ARG002 - the port names it
        """See ``ports.Cloud.template``: a list of objects that the host's owner applies; through a site with the
        allow-list of its connector."""
        selection = _namespaces(account), _features(account)
        items = list(host_template.documents(*selection))
        if account.attributes.get("via"):
            items.append(host_template.site_document(*selection))
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def offers(self, account: CloudAccount, tenant: str, moment: str) -> bytes:
        """See ``ports.clouds.SellsByAccount.offers``: what can be counted, which are hosts of bare metal, and the room
        that nodes have."""
        return host_sheets.counted(lambda: self._access.client(tenant, account), account, tenant, moment)

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],  # noqa: ARG002 - an account has namespaces
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        """See ``ports.Cloud.tagged``: the region of a thing is its namespace."""
        api, spaces = self._access.client(tenant, account), _namespaces(account)
        things: list[Tagged] = []
        failures: list[VendorError] = []
        for space in spaces:
            try:
                things += orphans.marked(api, kinds_of(_features(account)), space, installation, tenant)
            except VendorError as error:
                failures.append(error)
                if skipped is None or len(failures) == len(spaces):
                    raise
                skipped(space, error)
        return things

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        """See ``ports.Cloud.discard``."""
        return orphans.remove(self._access.client(tenant, account), kinds_of(_features(account)), thing, tenant)


def _namespaces(account: CloudAccount) -> Sequence[str]:
    return list(account.attributes.get("namespaces") or ())


def _features(account: CloudAccount) -> Sequence[str]:
    return list(account.attributes.get("features") or (BASE,))


def _blindness(api: KubernetesApi, account: CloudAccount) -> Iterator[str]:
    """Warning of rights in the whole host that the account lacks, without which it works."""
    missing = [
        str(read) for read in reads_of(_features(account)) if not api.may(read.verb, read.group, read.resource, "")
    ]
    if missing:
        yield (
            f"The account may not: {'; '.join(missing)} in the whole host. The room of its nodes is not counted, and"
            " maxCapacity alone bounds virtual machines."
        )


def _absence(api: KubernetesApi, space: str) -> str | None:
    """Reason why nothing can be made in the namespace; None when it can."""
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _PROBE, "namespace": space}}
    try:
        api.apply(probe, dry_run=True)
    except VendorNotFound as error:
        return f"{error.detail}. The host has no namespace {space}."
    return None
