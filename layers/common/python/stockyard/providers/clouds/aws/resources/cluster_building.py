"""Making and unmaking what a cluster consists of, whichever driver makes it; see ``making``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, Generic, Protocol, Self, TypeVar

from stockyard.domain.records import Resource
from stockyard.errors import CredentialsRevoked, PermissionDenied
from stockyard.ports import CloudWork, Outcome
from stockyard.ports.clusters import GonePart
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds.base import GIVEN_NETWORK, State
from stockyard.providers.clouds.aws.kinds.registry import KINDS
from stockyard.providers.clouds.aws.resources.making import Create, Reconciler
from stockyard.providers.clouds.aws.sessions import account_number

_LOST = "Delete the cluster and create it again; the cloud has lost a part of it."


class ClusterConfig(Protocol):
    """Needs of a builder from a driver's configuration. Fields mean what they mean in ``stockyard.settings``."""

    @property
    def name_prefix(self) -> str: ...

    @property
    def visibility_seconds(self) -> int: ...


Config = TypeVar("Config", bound=ClusterConfig)


@dataclass(frozen=True, slots=True)
class ClusterBuilder(Reconciler, Generic[Config]):
    """One phase of one cluster."""

    work: CloudWork
    config: Config

    @classmethod
    def of(cls, calls: Calls, work: CloudWork, config: Config) -> Self:
        """A builder whose owner is the cluster of ``work``."""
        cluster = work.cluster
        owner = tags.Owner(
            installation=work.installation,
            tenant=work.tenant,
            resource_id=cluster.id,
            generation=str(cluster.generation),
            client_id=cluster.client_id,
            prefix=config.name_prefix,
            own_tags=cluster.tags,
        )
        return cls(calls, work.ledger, owner, work.now, config.visibility_seconds, KINDS, _LOST, work, config)

    def creation(
        self, operation: str, resource_type: str, *path: str, by_token: bool = False, **parameters: Any
    ) -> Create:
        """A creating call of EC2 whose answer holds the thing's id at ``path``; ``by_token``: it takes the line's."""

        def create(line: Resource, marks: dict[str, str]) -> str:
            token = {"ClientToken": line.token} if by_token else {}
            tagged = {"TagSpecifications": tags.specification([resource_type], marks)}
            answer: Any = self.calls.call("ec2", operation, **parameters, **token, **tagged)
            return str(reduce(getitem, path, answer))

        return create


def gone_parts(builder: ClusterBuilder[Any], lines: Sequence[Resource]) -> list[GonePart]:
    """See ``ports.clusters.LooksAtParts``."""
    parts: list[GonePart] = []
    for line in lines:
        # A thing of a later template that we may not look at counts as there.
        with suppress(PermissionDenied):
            parts += _gone_parts_of_line(builder, line)
    return parts


def _gone_parts_of_line(builder: ClusterBuilder[Any], line: Resource) -> Iterator[GonePart]:
    kind = builder.kinds[line.kind]
    if kind is GIVEN_NETWORK:
        named = (*(subnet for subnet, _ in line.detail.get("places") or ()), *(line.detail.get("balanced") or ()))
        ids = list(dict.fromkeys((line.vendor_id, *named)))
        words = [{"Name": "subnet-id", "Values": ids}]
        there = {item["SubnetId"] for item in builder.calls.call("ec2", "describe_subnets", Filters=words)["Subnets"]}
        yield from (GonePart(line, f"subnet {subnet}", is_given=True) for subnet in ids if subnet not in there)
    elif not builder.recent(line.made_at) and kind.state(builder.calls, line.vendor_id) is State.ABSENT:
        yield GonePart(line, f"{kind.name.replace('_', ' ')} {line.vendor_id}")


def check_account(builder: ClusterBuilder[Any]) -> Outcome:
    """The role or the access key works, and leads into the account that it is to be of."""
    account = str(builder.calls.call("sts", "get_caller_identity")["Account"])
    expected = account_number(builder.work.account)
    if account != expected:
        raise CredentialsRevoked(
            f"the cloud account leads into AWS account {account}, not {expected}", hint="Correct its attributes."
        )
    return Outcome(True, f"AWS account {account}")
