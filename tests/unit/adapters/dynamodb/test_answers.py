"""The own parser of DynamoDB's answers reads what botocore's reads."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.parsers import JSONParser
from botocore.session import get_session

from stockyard.adapters.dynamodb.answers import AnswerParsers

SERVICE = get_session().get_service_model("dynamodb")
BINARY = base64.b64encode(b"\x00\xffbytes").decode()
PLAIN = {
    "text": {"S": "a"},
    "letter": {"S": "B"},
    "number": {"N": "1.5"},
    "flag": {"BOOL": False},
    "nothing": {"NULL": True},
    "names": {"SS": ["a", "b"]},
    "map": {"M": {"B": {"S": "a"}, "list": {"L": [{"N": "1"}, {"M": {}}]}}},
}
ITEMS = (
    {},
    PLAIN,
    {"data": {"B": BINARY}, **PLAIN},
    {"many": {"BS": [BINARY, ""]}},
    {"deep": {"M": {"list": {"L": [{"B": BINARY}, {"M": {"x": {"B": BINARY}}}]}}}},
)


def parsed(parser: Any, operation: str, body: Any, status: int = 200) -> Any:
    response = {"status_code": status, "headers": {"x-amzn-requestid": "r"}, "body": json.dumps(body).encode()}
    return parser.parse(response, SERVICE.operation_model(operation).output_shape)


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize(
    ("operation", "wrap"),
    [
        ("GetItem", lambda item: {"Item": item}),
        ("Query", lambda item: {"Items": [item, item], "Count": 2, "LastEvaluatedKey": item}),
        ("BatchGetItem", lambda item: {"Responses": {"t": [item]}, "UnprocessedKeys": {"t": {"Keys": [item]}}}),
        ("UpdateItem", lambda item: {"Attributes": item, "ConsumedCapacity": {"TableName": "t", "CapacityUnits": 1}}),
    ],
)
def test_items_are_read_as_botocore_reads_them(item: Any, operation: str, wrap: Any) -> None:
    body = wrap(item)
    assert parsed(AnswerParsers().create_parser("json"), operation, body) == parsed(JSONParser(), operation, body)


@pytest.mark.parametrize("item", ITEMS)
def test_refusals_are_read_as_botocore_reads_them(item: Any) -> None:
    body = {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": "no",
        "CancellationReasons": [{"Code": "ConditionalCheckFailed", "Item": item}, {"Code": "None"}],
    }
    own, usual = AnswerParsers().create_parser("json"), JSONParser()
    assert parsed(own, "TransactWriteItems", body, 400) == parsed(usual, "TransactWriteItems", body, 400)


def test_other_protocols_have_botocores_parser() -> None:
    assert type(AnswerParsers().create_parser("query")).__module__ == "botocore.parsers"
