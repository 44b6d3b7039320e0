"""A toy cluster is one address in AWS for each phase but the first, which reads the account's role."""

from __future__ import annotations

from collections.abc import Sequence

import boto3

from stockyard.domain.records import Cluster, Resource
from stockyard.ports import CloudWork, ClusterDriver, ClusterPlan, Finding, Outcome, PriceList
from stockyard.providers.clouds.aws import DEFAULT_REGION, tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds.ec2 import ADDRESS
from stockyard.providers.clouds.aws.kinds.registry import KINDS
from stockyard.providers.clouds.aws.resources.making import DesiredResource, Reconciler
from stockyard.providers.clouds.aws.sessions import Sessions


class ToyClusterDriver(ClusterDriver):
    """Implements ``ports.ClusterDriver``."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._sessions = Sessions(boto3.Session)

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        """Any settings will do."""
        return ()

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        """The address of the network, without a price."""
        return ClusterPlan((("address", "network"),), ())

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        """Nothing beyond the settings can be wrong."""
        return ()

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """Allocate the phase's address."""
        reconciler = self._reconciler(work)
        if phase == "account":
            return Outcome(True)

        def allocate(line: Resource, carried: dict[str, str]) -> str:
            specification = tags.specification(["elastic-ip"], carried)
            answer = reconciler.calls.call("ec2", "allocate_address", Domain="vpc", TagSpecifications=specification)
            return str(answer["AllocationId"])

        address = reconciler.want(DesiredResource(ADDRESS, phase, reconciler.name(phase), allocate))
        return Outcome(True, f"Address {address.vendor_id}")

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        """Release the phase's address."""
        return self._reconciler(work).unmake(phase)

    def _reconciler(self, work: CloudWork) -> Reconciler:
        cluster = work.cluster
        owner = tags.Owner(
            work.installation, work.tenant, cluster.id, str(cluster.generation), cluster.client_id, self._prefix
        )
        calls = Calls(self._sessions.of(work.account, work.session), DEFAULT_REGION)
        return Reconciler(calls, work.ledger, owner, work.now, 0, KINDS, "Make another.")
