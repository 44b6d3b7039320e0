"""Records that span tenants: due work, all accounts and clusters, and the installation's own records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from stockyard import errors
from stockyard.adapters.dynamodb import calls, codec, keys
from stockyard.adapters.dynamodb.store import DynamoStore
from stockyard.domain.records import Fact, NodeClaim, Record
from stockyard.domain.values import times
from stockyard.ports import Create, Store

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

R = TypeVar("R", bound=Record)

_PAGE = 500
"""Records that one query of a whole index asks for at most."""
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


class DynamoRegistry:
    """Implements ``ports.Registry``. Its lists come from indexes, so they may be a moment old."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def store(self, tenant: str) -> Store:
        """The records of one tenant. Raises ``Forbidden`` for a name no tenant can have."""
        return DynamoStore(self._client, self._table, tenant)

    def platform(self) -> Store:
        """The records of the installation itself."""
        return DynamoStore.platform(self._client, self._table)

    def due(
        self,
        kind: type[R],
        before: datetime,
        limit: int = 100,
        since: datetime | None = None,
        tenants: Collection[str] | None = None,
    ) -> Sequence[tuple[str, R]]:
        """(tenant, record) of what is due before the moment, the oldest first; see ``ports.Registry.due``."""
        # DynamoDB takes one condition on the sort key: both ends are within it. Times are whole milliseconds.
        low, high = times.to_text(since or _EVER), times.to_text(before - times.TICK)
        partitions = keys.due_partitions(kind, tenants)
        if low > high:
            return []
        condition = "due_pk = :partition AND due_sk BETWEEN :low AND :high"
        entries: list[tuple[str, str, R]] = []
        for partition in partitions:
            items = self._indexed(kind, keys.DUE_INDEX, condition, limit, partition=partition, low=low, high=high)
            own = (entry for entry in items if tenants is None or entry[0] in tenants)
            entries += [(keys.due_at(record) or "", tenant, record) for tenant, record in islice(own, limit)]
        entries.sort(key=lambda entry: (entry[0], entry[2].id))
        return [(tenant, record) for _, tenant, record in entries[:limit]]

    def in_hand(self, cluster_id: str) -> Sequence[tuple[str, NodeClaim]]:
        """See ``ports.Registry.in_hand``."""
        partition = keys.hand_partition(cluster_id)
        return list(self._indexed(NodeClaim, keys.DUE_INDEX, "due_pk = :partition", partition=partition))

    def all(self, kind: type[R]) -> Iterator[tuple[str, R]]:
        """(tenant, record) of every record of the kind, in order of id and tenant, page by page."""
        partition = keys.everything_partition(kind)
        return self._indexed(kind, keys.EVERYTHING_INDEX, "all_pk = :partition", partition=partition)

    def tenant_of(self, kind: type[R], id: str) -> str | None:
        """See ``ports.Registry.tenant_of``."""
        condition, partition = "all_pk = :partition AND begins_with(all_sk, :id)", keys.everything_partition(kind)
        entry = next(self._indexed(kind, keys.EVERYTHING_INDEX, condition, 1, partition=partition, id=f"{id}#"), None)
        return entry[0] if entry else None

    def table_id(self) -> str:
        """DynamoDB's own id of the table; a restored table has another one."""
        with calls.translated():
            return str(self._client.describe_table(TableName=self._table)["Table"]["TableId"])

    def installation(self, randomness: bytes) -> str:
        """The installation's id; made of ``randomness`` when there is none yet."""
        return first_id(self.platform(), randomness)

    def _indexed(
        self, kind: type[R], index: str, condition: str, page: int = _PAGE, **values: str
    ) -> Iterator[tuple[str, R]]:
        # not by botocore's paginator: to load its model takes a cold function longer than the query itself
        query: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": index,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": {f":{name}": {"S": text} for name, text in values.items()},
            "Limit": page,
        }
        while query.get("ExclusiveStartKey", True):
            with calls.translated():
                answer: Any = self._client.query(**query)
            for item in answer["Items"]:
                yield item["tenant"]["S"], codec.from_item(kind, item)
            query["ExclusiveStartKey"] = answer.get("LastEvaluatedKey")


def first_id(store: Store, randomness: bytes) -> str:
    """The installation's random id in the platform's ``store``; made of ``randomness`` when there is none yet.

    Of two that make it at once, the first wins and both get its id.
    """
    fact = store.get(Fact, keys.INSTALLATION)
    if fact is None:
        with suppress(errors.Conflict):
            store.commit(Create(Fact(keys.INSTALLATION, randomness.hex(), "")))
        fact = store.get(Fact, keys.INSTALLATION)
    if fact is None:
        raise errors.StoreError("The installation's id was removed while it was read")
    return fact.value
