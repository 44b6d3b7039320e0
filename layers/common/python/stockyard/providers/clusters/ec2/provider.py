"""Self-managed Kubernetes clusters on EC2: ``ports.ClusterProvider`` by phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stockyard.domain.records import CloudAccount
from stockyard.errors import CredentialsRevoked, NotYetVisible, PermissionDenied, VendorNotFound
from stockyard.ports import CloudWork, Finding, Outcome, Skipped, Tagged
from stockyard.providers.aws.calls import Calls
from stockyard.providers.aws.sessions import SessionFactory, Sessions, account_number
from stockyard.providers.clusters.ec2 import (
    endpoint,
    identity,
    inspection,
    leftovers,
    machine,
    network,
    security,
    sweep,
)
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.configuration import Ec2Config, region

__all__ = ["Ec2ClusterProvider", "Ec2Config"]

SWEEP_SESSION = "stockyard-sweep"
_NEVER_LATE = frozenset({"InvalidKeyPair.NotFound", "InvalidAMIID.NotFound"})
"""What we did not make, so that waiting does not bring it about."""

_ENSURE: dict[str, Callable[[Builder], Outcome]] = {
    "network": network.ensure,
    "security": security.ensure,
    "identity": identity.ensure,
    "endpoint": endpoint.ensure,
    "control_plane": machine.ensure,
}


class Ec2ClusterProvider:
    """Makes and removes the AWS side of a cluster in the tenant's account."""

    def __init__(self, config: Ec2Config, session_factory: SessionFactory) -> None:
        self._config = config
        self._sessions = Sessions(session_factory)

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        """See ``ports.ClusterProvider.inspect``."""
        calls = self._builder(work).calls
        return list(inspection.findings(calls, work.cluster, work.account))

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterProvider.ensure``. ``KeyError`` for a phase that is not ours."""
        builder = self._builder(work)
        if phase == "account":
            return _account(builder)
        try:
            return _ENSURE[phase](builder)
        except (VendorNotFound, PermissionDenied) as error:
            # What an earlier step made may not be known everywhere yet, nor its tags, which the permissions ask for.
            if error.code not in _NEVER_LATE and builder.hiding():
                raise NotYetVisible(error.detail, code=error.code) from error
            raise

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterProvider.remove``."""
        builder = self._builder(work)
        if phase == "leftovers":
            return leftovers.remove(builder)
        outcome = builder.unmake(phase)
        if phase == "control_plane" and outcome.done:
            return leftovers.remove_rest(builder)
        return outcome

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        """See ``ports.ClusterProvider.tagged``."""
        return sweep.tagged(self._sessions.of(account, SWEEP_SESSION), installation, tenant, regions, skipped)

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        """See ``ports.ClusterProvider.discard``. A thing of another tenant is left alone: False."""
        if thing.tenant != tenant:
            return False
        return sweep.discard(Calls(self._sessions.of(account, SWEEP_SESSION), thing.region), thing)

    def _builder(self, work: CloudWork) -> Builder:
        clients = self._sessions.of(work.account, work.session)
        return Builder.of(Calls(clients, region(work.cluster)), work, self._config)


def _account(builder: Builder) -> Outcome:
    """The role works and leads into the account it names."""
    found = str(builder.calls.call("sts", "get_caller_identity")["Account"])
    wanted = account_number(builder.work.account)
    if found != wanted:
        raise CredentialsRevoked(
            f"the role leads into account {found}, not {wanted}", hint="Correct role_arn of the cloud account."
        )
    return Outcome(True, f"AWS account {found}")
