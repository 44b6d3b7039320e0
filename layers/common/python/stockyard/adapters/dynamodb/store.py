"""The records of one tenant in DynamoDB.

Every commit is one ``TransactWriteItems`` call with a client token, single writes too: botocore repeats a call whose
answer was lost, and only a token tells DynamoDB that it is the same commit and not a second one.

What botocore never repeats is a transaction that DynamoDB cancelled because another one touched the same record at
that moment. Nothing was written then, so it is tried again here, a few times with growing random pauses.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from botocore.exceptions import ClientError

from stockyard import errors
from stockyard.adapters.dynamodb import batch, calls, codec, keys, requests
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import Fact, Record
from stockyard.domain.subject_entries import PREFIXES, bound_fact
from stockyard.ports import Add, Check, Create, Page, Remove, Replace, Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

R = TypeVar("R", bound=Record)

_ATTEMPTS = 7
_PAUSE_SECONDS = 0.02
_BATCH_KEYS = 100
"""DynamoDB's limit of keys in a call."""
_FILTER_PAGE = 200
"""Records DynamoDB looks at per call when it filters: a compromise of round trips and read units."""


class DynamoStore:
    """Implements ``ports.Store``.

    A failed write is ``Fenced`` when it is a ``Check``, or a ``Replace`` with a fence whose record is gone or differs
    in a fence attribute: the writer is no longer the current one and drops its result. Every other failed condition
    is a plain ``Conflict``: the writer may load again and decide anew. Where several writes fail, the first counts.
    """

    def __init__(
        self, client: DynamoDBClient, table: str, tenant: str, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = client
        self._table = table
        self._tenant = keys.checked_tenant(tenant)
        self._sleep = sleep

    @classmethod
    def platform(cls, client: DynamoDBClient, table: str) -> DynamoStore:
        """The records of the installation itself, under a name that no tenant can have."""
        store = cls.__new__(cls)
        store._client, store._table, store._tenant, store._sleep = client, table, PLATFORM, time.sleep
        return store

    @property
    def tenant(self) -> str:
        """Tenant of these records."""
        return self._tenant

    def get(self, kind: type[R], id: str) -> R | None:
        """The record, read consistently, or None."""
        keys.checked_id(kind, id)
        with calls.translated():
            answer: Any = self._client.get_item(
                TableName=self._table, Key=requests.key(self._tenant, kind, id), ConsistentRead=True
            )
        item = answer.get("Item")
        return None if item is None else codec.from_item(kind, item)

    def get_all(self, kind: type[R], ids: Sequence[str], *, consistent: bool = True) -> Sequence[R]:
        """The records of these ids; see ``ports.Store.get_all``. Raises ``StoreUnavailable`` when the table leaves
        keys unread again and again."""
        items: dict[str, codec.Item] = {}
        for begin in range(0, len(ids), _BATCH_KEYS):
            names = [keys.checked_id(kind, name) for name in ids[begin : begin + _BATCH_KEYS]]
            unread = [requests.key(self._tenant, kind, name) for name in names]
            items |= {item["sk"]["S"]: item for item in self._batch(unread, consistent=consistent)}
        return [codec.from_item(kind, items[name]) for name in ids if name in items]

    def get_together(self, *names: tuple[type[Any], str]) -> tuple[Any, ...]:
        """See ``ports.Store.get_together``; raises as ``get_all``."""
        entries = [(kind, requests.key(self._tenant, kind, keys.checked_id(kind, name))) for kind, name in names]
        items = {(item["pk"]["S"], item["sk"]["S"]): item for item in self._batch([key for _, key in entries])}
        pairs = [(kind, items.get((key["pk"]["S"], key["sk"]["S"]))) for kind, key in entries]
        return tuple(None if item is None else codec.from_item(kind, item) for kind, item in pairs)

    def _batch(self, unread: Any, *, consistent: bool = True) -> list[codec.Item]:
        """The items of these keys that are there, by as many calls as it takes."""
        items: list[codec.Item] = []
        for attempt in range(_ATTEMPTS):
            request: Any = {self._table: {"Keys": unread, "ConsistentRead": consistent}}
            with calls.translated():
                answer: Any = self._client.batch_get_item(RequestItems=request)
            items += answer["Responses"].get(self._table, ())
            unread = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys")
            if not unread:
                return items
            self._sleep(random.uniform(0, _PAUSE_SECONDS * 2**attempt))
        raise errors.StoreUnavailable("The table left records unread")

    def list(
        self,
        kind: type[R],
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int = 50,
        newest_first: bool = False,
        since: str = "",
        where: Mapping[str, Any] | None = None,
        most: int | None = None,
        consistent: bool = True,
    ) -> Page[R]:
        """A page of records; see ``ports.Store.list``. Reads on until the page is full, ``most`` have been looked at
        or nothing is left."""
        if limit < 1:
            raise ValueError("limit must be at least 1")
        sort = {"after": after, "newest_first": newest_first}
        queries = self._queries(kind, prefix, where or {}, since, sort)
        items: list[codec.Item] = []
        last: Any = None
        read = 0
        for query in queries:
            read_before, goes_on = read, True
            while goes_on and len(items) <= limit:
                query.update({} if "IndexName" in query else {"ConsistentRead": consistent})
                # One more than asked for tells whether there is a next page; one more because `after` may come back.
                is_rare = "FilterExpression" in query and read > read_before
                query["Limit"] = max(limit + 2 - len(items), _FILTER_PAGE if is_rare else 1)
                with calls.translated():
                    answer: Any = self._client.query(**query)
                items += [item for item in answer["Items"] if item["sk"]["S"] != after]
                last, read = answer.get("LastEvaluatedKey"), read + answer["ScannedCount"]
                query["ExclusiveStartKey"] = last
                goes_on = last is not None and (most is None or read < most)
            if last:
                break
        records = [codec.from_item(kind, item) for item in items[:limit]]
        next_id = items[limit - 1]["sk"]["S"] if len(items) > limit else last["sk"]["S"] if last else None
        return Page(records, next_id, read)

    def _queries(
        self, kind: type[R], prefix: str, where: Mapping[str, Any], since: str, sort: Mapping[str, Any]
    ) -> Sequence[dict[str, Any]]:
        """Parameters of the queries that together are a list, in its order. What is about one subject goes by its
        entries as far as all records have one, and by the table from there on."""
        subject = where.get("subject") if kind in PREFIXES and not prefix else None
        bound = self._entries_bound(kind) if isinstance(subject, str) else ""
        query = partial(requests.query, self._table, self._tenant, kind, prefix=prefix, **sort)
        queries = [query(since=max(since, bound), where=where)]
        if bound and isinstance(subject, str):
            filters = {name: value for name, value in where.items() if name != "subject"}
            entries = query(since=since, until=bound, where=filters, subject=subject)
            queries = [*queries, entries] if sort["newest_first"] else [entries, *queries]
        return [each for each in queries if each is not None]

    def _entries_bound(self, kind: keys.Kind) -> str:
        """The text below which all records of the kind have entries by their subject; empty while none need have one.
        An older one than the present serves too."""
        with calls.translated():
            answer: Any = self._client.get_item(
                TableName=self._table, Key=requests.key(self._tenant, Fact, bound_fact(kind))
            )
        item = answer.get("Item")
        return codec.from_item(Fact, item).value if item else ""

    def lacking_entries(self, kind: type[R], *, since: str, until: str, limit: int = 100, most: int = 1000) -> Page[R]:
        """See ``ports.Store.lacking_entries``."""
        query = requests.lacking_entries(self._table, self._tenant, kind, since, until)
        items: list[codec.Item] = []
        read = 0
        while query is not None and len(items) < limit and read < most:
            query["Limit"] = min(_FILTER_PAGE, most - read)
            with calls.translated():
                answer: Any = self._client.query(**query)
            items, last, read = (
                [*items, *answer["Items"]],
                answer.get("LastEvaluatedKey"),
                read + answer["ScannedCount"],
            )
            query = {**query, "ExclusiveStartKey": last} if last else None
        last_id = query["ExclusiveStartKey"]["sk"]["S"] if query else None
        return Page([codec.from_item(kind, item) for item in items], last_id, read)

    def commit(self, *writes: Write) -> None:
        """All writes or none; see ``ports.Store.commit`` and the class for what is ``Fenced``.

        Raises ``InvalidInput`` for a record that cannot be stored, ``StoreUnavailable`` when the outcome is unknown
        or other work was in the way for too long, ``ValueError`` for more than 100 writes or two of one record.
        """
        batch.check(self._tenant, writes)
        if not writes:
            return
        emptied: frozenset[int] = frozenset()
        for attempt in range(_ATTEMPTS):
            reasons = self._transact(writes, emptied)
            if not reasons:
                return
            refused = calls.first_refused(reasons)
            if refused is None and not calls.busy(reasons):
                raise errors.StoreError(f"TransactWriteItems: {[reason.get('Code') for reason in reasons]}")
            if refused is not None:
                write = writes[refused]
                if not (isinstance(write, Add) and write.by < 0):
                    _refuse(write, refused, reasons[refused].get("Item"))
                # The counter is below what is taken from it: it becomes 0. Or it rose in between: subtract after all.
                emptied ^= {refused}
            self._sleep(random.uniform(0, _PAUSE_SECONDS * 2**attempt))
        raise errors.StoreUnavailable("Other writers kept the records busy")

    def next_number(self, counter: str) -> int:
        """Add 1 to a counter and return it. A number may be skipped, never given twice."""
        batch.check(self._tenant, (Add(counter, 1),))
        update = requests.transact_item(self._table, self._tenant, Add(counter, 1))["Update"]
        with calls.translated():
            answer = self._client.update_item(**update, ReturnValues="UPDATED_NEW")
        return int(answer["Attributes"]["value"]["N"])

    def _transact(self, writes: Sequence[Write], emptied: frozenset[int]) -> Sequence[Mapping[str, Any]]:
        """Try once. The reasons why it was cancelled; none when it was done."""
        items: list[Any] = [
            requests.transact_item(self._table, self._tenant, write, index in emptied)
            for index, write in enumerate(writes)
        ]
        try:
            with calls.translated():
                self._client.transact_write_items(TransactItems=items, ClientRequestToken=str(uuid.uuid4()))
        except ClientError as fault:
            return calls.reasons(fault)
        return ()


def _refuse(write: Write, index: int, stored: codec.Item | None) -> NoReturn:
    kind, name = batch.target(write)
    record_name = f"{kind.__name__} {name}"
    if isinstance(write, Check):
        raise errors.Fenced(f"{record_name} has moved on", index=index)
    if isinstance(write, Replace | Remove):
        fence = batch.equalities(kind, write.fence)
        if fence and (stored is None or not all(equal.holds(stored) for equal in fence)):
            raise errors.Fenced(f"{record_name} has moved on", index=index)
    if isinstance(write, Replace):
        raise errors.Conflict(f"{record_name} is not at version {write.record.version - 1}", index=index)
    if isinstance(write, Create):
        raise errors.Conflict(f"{record_name} exists already", index=index)
    if isinstance(write, Add):
        raise errors.Conflict(f"{record_name} would exceed {write.limit}", index=index)
    raise errors.Conflict(f"{record_name} has another version", index=index)
