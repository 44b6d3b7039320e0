"""Asynchronous invocation of a function's own kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stockyard.adapters.background import LambdaBackground
from stockyard.errors import VendorThrottled


class Client:
    def __init__(self, code: str = "") -> None:
        self.code, self.calls = code, []

    def invoke(self, **parameters: Any) -> None:
        if self.code:
            raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, "Invoke")
        self.calls.append(parameters)


def test_an_event_is_handed_to_lambda_and_not_waited_for() -> None:
    client = Client()
    LambdaBackground(client, "stockyard-dev-reaper").invoke({"tenant": "acme", "place": "account/1"})
    (call,) = client.calls
    assert (call["FunctionName"], call["InvocationType"]) == ("stockyard-dev-reaper", "Event")
    assert json.loads(call["Payload"]) == {"tenant": "acme", "place": "account/1"}


def test_what_lambda_refuses_is_an_error_of_ours() -> None:
    with pytest.raises(VendorThrottled):
        LambdaBackground(Client("TooManyRequestsException"), "f").invoke({})
