"""Refusals of DynamoDB as the store handles them, by a client that answers as told."""

from __future__ import annotations

import re
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from stockyard import errors
from stockyard.adapters.dynamodb import calls, codec
from stockyard.adapters.dynamodb.requests import transact_item
from stockyard.adapters.dynamodb.store import DynamoStore
from stockyard.domain.records import Fact, Name
from stockyard.ports import Add, Check, Create, Put, Remove, Write

TIME = "2026-01-31T12:00:00.000Z"
NONE = {"Code": "None"}
BUSY = {"Code": "TransactionConflict"}
REFUSED = {"Code": "ConditionalCheckFailed"}


def cancelled(*reasons: dict[str, Any]) -> ClientError:
    response: Any = {
        "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
        "CancellationReasons": list(reasons),
    }
    return ClientError(response, "TransactWriteItems")


def refusal(code: str, status: int = 400) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "TransactWriteItems")


class FakeClient:
    """Answers each call with the next of ``answers``: an exception is raised. Keeps what it was called with."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[dict[str, Any]] = []

    def _call(self, **parameters: Any) -> Any:
        self.calls.append(parameters)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    transact_write_items = get_item = query = update_item = _call


class Pauses(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def make(client: FakeClient, pauses: Pauses | None = None) -> DynamoStore:
    return DynamoStore(client, "stockyard", "acme", sleep=pauses if pauses is not None else Pauses())


def test_a_cancelled_transaction_in_the_way_of_another_is_tried_again() -> None:
    client, pauses = FakeClient(cancelled(BUSY, NONE), cancelled(NONE, BUSY), {}), Pauses()
    make(client, pauses).commit(Put(Fact("f", "v", TIME)), Remove(Name, "n"))
    assert len(client.calls) == 3
    assert len(pauses) == 2
    assert all(0 <= pause <= 0.02 * 2**attempt for attempt, pause in enumerate(pauses))
    tokens = {call["ClientRequestToken"] for call in client.calls}
    assert len(tokens) == 3


def test_it_gives_up_on_busy_records() -> None:
    client, pauses = FakeClient(*[cancelled(BUSY)] * 7), Pauses()
    with pytest.raises(errors.StoreUnavailable):
        make(client, pauses).commit(Create(Name("n", "clu_1")))
    assert client.answers == []
    assert sum(pauses) < 3


def test_a_failed_condition_counts_before_a_busy_record() -> None:
    client = FakeClient(cancelled(BUSY, REFUSED))
    with pytest.raises(errors.Conflict) as caught:
        make(client).commit(Put(Fact("f", "v", TIME)), Create(Name("n", "clu_1")))
    assert caught.value.index == 1


def test_every_commit_has_a_token_of_its_own() -> None:
    client = FakeClient({}, {})
    store = make(client)
    for _ in range(2):
        store.commit(Create(Name("n", "clu_1")))
    assert len({call["ClientRequestToken"] for call in client.calls}) == 2


def test_a_counter_that_rises_while_it_is_emptied_is_subtracted_from() -> None:
    client = FakeClient(cancelled(REFUSED), cancelled(REFUSED), {})
    make(client).commit(Add("clusters", -1))
    updates = [call["TransactItems"][0]["Update"]["UpdateExpression"] for call in client.calls]
    assert updates[0] == updates[2] != updates[1]


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize(
    "write",
    [
        Create(Name("n", "clu_1")),
        Put(Fact("f", "v", TIME)),
        Remove(Name, "n"),
        Check(Name, "n", {"owner": "clu_1"}),
        Add("clusters", 1),
        Add("clusters", 2, limit=1),
        Add("clusters", 1, limit=5),
        Add("clusters", -1),
    ],
    ids=str,
)
def test_no_write_has_a_placeholder_that_it_does_not_use(write: Write, emptied: bool) -> None:
    """DynamoDB refuses it: "unused in expressions"."""
    (member,) = transact_item("table", "acme", write, emptied).values()
    expressions = " ".join(text for name, text in member.items() if name.endswith("Expression"))
    placeholders = {**member.get("ExpressionAttributeNames", {}), **member.get("ExpressionAttributeValues", {})}
    assert {placeholder for placeholder in placeholders if not re.search(rf"{placeholder}\b", expressions)} == set()


@pytest.mark.parametrize(
    "fault",
    [
        refusal("ThrottlingException"),
        refusal("ProvisionedThroughputExceededException"),
        refusal("TransactionInProgressException"),
        refusal("SomethingNew", 503),
        ReadTimeoutError(endpoint_url="https://table"),
    ],
)
def test_a_table_that_does_not_answer_is_unavailable(fault: Exception) -> None:
    client = FakeClient(fault, fault, fault)
    store = make(client)
    with pytest.raises(errors.StoreUnavailable):
        store.commit(Create(Name("n", "clu_1")))
    with pytest.raises(errors.StoreUnavailable):
        store.get(Name, "n")
    with pytest.raises(errors.StoreUnavailable):
        store.list(Name)


def test_other_refusals_are_errors_that_no_retry_helps() -> None:
    with pytest.raises(errors.StoreError, match="AccessDenied") as caught:
        make(FakeClient(refusal("AccessDeniedException"))).get(Name, "n")
    assert not caught.value.retryable
    with pytest.raises(errors.StoreError, match="ItemCollectionSizeLimitExceeded"):
        make(FakeClient(cancelled({"Code": "ItemCollectionSizeLimitExceeded"}))).commit(Create(Name("n", "c")))


def test_an_empty_page_of_the_table_is_not_the_end() -> None:
    item = codec.to_item("acme", Name("n", "clu_1"))
    last = {"pk": item["pk"], "sk": {"S": "m"}}
    client = FakeClient(
        {"Items": [], "ScannedCount": 2, "LastEvaluatedKey": last}, {"Items": [item], "ScannedCount": 1}
    )
    page = make(client).list(Name, where={"owner": "clu_1"})
    assert page.items == [Name("n", "clu_1")]
    assert client.calls[1]["ExclusiveStartKey"] == last
    assert all(call["ConsistentRead"] for call in client.calls)


def test_reads_are_consistent_and_of_the_tenant() -> None:
    client = FakeClient({})
    assert make(client).get(Name, "n") is None
    assert client.calls == [
        {"TableName": "stockyard", "Key": {"pk": {"S": "T#acme#Name"}, "sk": {"S": "n"}}, "ConsistentRead": True}
    ]


def test_the_client_has_short_time_outs_and_standard_retries() -> None:
    config = calls.client("us-east-1").meta.config
    retries: Any = getattr(config, "retries", None)
    assert (retries["mode"], retries["total_max_attempts"]) == ("standard", 4)
    assert getattr(config, "read_timeout", 60) <= 5
