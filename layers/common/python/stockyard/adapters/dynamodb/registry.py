"""What spans tenants: due work, all accounts and clusters, and the installation's own records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from stockyard.adapters.dynamodb import calls, codec, keys, platform
from stockyard.adapters.dynamodb.requests import Expression
from stockyard.adapters.dynamodb.store import DynamoStore
from stockyard.domain import times
from stockyard.domain.records import NodeClaim, Record
from stockyard.ports import Store

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
        self._installation: str | None = None

    def store(self, tenant: str) -> Store:
        """The records of one tenant. Raises ``Forbidden`` for a name no tenant can have."""
        return DynamoStore(self._client, self._table, tenant)

    def platform(self) -> Store:
        """The records of the installation itself."""
        return DynamoStore.platform(self._client, self._table)

    def due(
        self, kind: type[R], before: datetime, limit: int = 100, since: datetime | None = None
    ) -> Sequence[tuple[str, R]]:
        """(tenant, record) of what is due before the moment, the oldest first; see ``ports.Registry.due``."""
        # DynamoDB takes one condition on the sort key: both ends are within it. Times are whole milliseconds.
        low, high = times.to_text(since or _EVER), times.to_text(before - times.TICK)
        partitions = keys.due_partitions(kind)
        if low > high:
            return []
        entries: list[tuple[str, str, R]] = []
        for partition in partitions:
            expression = Expression()
            condition = (
                f"{expression.name('due_pk')} = {expression.value({'S': partition})}"
                f" AND {expression.name('due_sk')}"
                f" BETWEEN {expression.value({'S': low})} AND {expression.value({'S': high})}"
            )
            items = islice(self._indexed(kind, keys.DUE_INDEX, condition, expression, limit), limit)
            entries += [(keys.due_at(record) or "", tenant, record) for tenant, record in items]
        entries.sort(key=lambda entry: (entry[0], entry[2].id))
        return [(tenant, record) for _, tenant, record in entries[:limit]]

    def in_hand(self, cluster_id: str) -> Sequence[tuple[str, NodeClaim]]:
        """See ``ports.Registry.in_hand``."""
        expression = Expression()
        condition = f"{expression.name('due_pk')} = {expression.value({'S': keys.hand_partition(cluster_id)})}"
        return list(self._indexed(NodeClaim, keys.DUE_INDEX, condition, expression, _PAGE))

    def all(self, kind: type[R]) -> Iterator[tuple[str, R]]:
        """(tenant, record) of every record of the kind, in order of id and tenant, page by page."""
        expression = Expression()
        condition = f"{expression.name('all_pk')} = {expression.value({'S': keys.everything_partition(kind)})}"
        return self._indexed(kind, keys.EVERYTHING_INDEX, condition, expression, _PAGE)

    def tenant_of(self, kind: type[R], id: str) -> str | None:
        """See ``ports.Registry.tenant_of``."""
        expression = Expression()
        condition = (
            f"{expression.name('all_pk')} = {expression.value({'S': keys.everything_partition(kind)})}"
            f" AND begins_with({expression.name('all_sk')}, {expression.value({'S': f'{id}#'})})"
        )
        entry = next(self._indexed(kind, keys.EVERYTHING_INDEX, condition, expression, 1), None)
        return entry[0] if entry else None

    def table_id(self) -> str:
        """DynamoDB's own id of the table; a restored table has another one."""
        with calls.translated():
            return str(self._client.describe_table(TableName=self._table)["Table"]["TableId"])

    def installation(self, randomness: bytes) -> str:
        """The installation's id; made of ``randomness`` when there is none yet."""
        if self._installation is None:
            self._installation = platform.installation(self.platform(), randomness)
        return self._installation

    def _indexed(
        self, kind: type[R], index: str, condition: str, expression: Expression, page: int
    ) -> Iterator[tuple[str, R]]:
        query: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": index,
            "KeyConditionExpression": condition,
            "Limit": page,
            **expression.parameters(),
        }
        while True:
            with calls.translated():
                answer: Any = self._client.query(**query)
            for item in answer["Items"]:
                yield item["tenant"]["S"], codec.from_item(kind, item)
            last = answer.get("LastEvaluatedKey")
            if not last:
                return
            query["ExclusiveStartKey"] = last
