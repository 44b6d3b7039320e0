"""``ports.Deployer``: the HTTP conversation with vdeployer, and the in-memory one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx
import pytest
import stamina

from stockyard.adapters.vdeployer import VDeployer
from stockyard.errors import VendorError, VendorRefused, VendorThrottled, VendorTimeout, VendorUnavailable
from tests.harness.worlds.memory import MemoryDeployer

TEMPLATE = "https://{client_id}.clusters.example.com/vdeployer"
SETTINGS = {"provider": "aws", "cluster_name": "my-k8s", "keycloak_client_secret": "canary-secret-value-0001"}


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield


class Wire:
    """A transport that gives prepared answers, the last one for ever."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        headers = {"Location": "https://elsewhere.example.com/"} if 300 <= answer < 400 else {}
        return httpx.Response(answer, json={"message": "canary-secret-value-0001"}, headers=headers)


def deployer(wire: Callable[[httpx.Request], httpx.Response]) -> VDeployer:
    return VDeployer(TEMPLATE, transport=httpx.MockTransport(wire))


def test_deploy_request_has_published_form():
    wire = Wire(200)
    deployer(wire).deploy("my-k8s-0123", SETTINGS, "token")
    (request,) = wire.requests
    assert (request.method, str(request.url)) == (
        "POST",
        "https://my-k8s-0123.clusters.example.com/vdeployer/deploy",
    )
    assert request.headers["Authorization"] == "Bearer token"
    assert json.loads(request.content) == {"settings": SETTINGS}


@pytest.mark.parametrize("status", [200, 409])
def test_deploy_succeeds_when_done_or_already_running(status: int):
    wire = Wire(status)
    deployer(wire).deploy("c", SETTINGS, "token")
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (500, VendorUnavailable),
        (503, VendorUnavailable),
        (429, VendorThrottled),
        (httpx.ConnectError("refused"), VendorUnavailable),
        (httpx.RemoteProtocolError("cut"), VendorUnavailable),
        (httpx.ReadTimeout("slow"), VendorTimeout),
        (httpx.ConnectTimeout("slow"), VendorTimeout),
    ],
)
def test_transient_errors_are_tried_three_times_then_retryable(answer: int | Exception, error: type[VendorError]):
    wire = Wire(answer)
    with pytest.raises(error) as caught:
        deployer(wire).deploy("c", SETTINGS, "token")
    assert caught.value.retryable
    assert len(wire.requests) == 3
    assert "canary" not in str(caught.value)


def test_deploy_succeeds_at_second_try():
    wire = Wire(503, 409)
    deployer(wire).deploy("c", SETTINGS, "token")
    assert len(wire.requests) == 2


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 422])
def test_other_answers_are_refused_at_once(status: int):
    wire = Wire(status)
    with pytest.raises(VendorRefused) as caught:
        deployer(wire).deploy("c", SETTINGS, "token")
    assert caught.value.code == str(status)
    assert not caught.value.retryable
    assert "canary" not in str(caught.value)
    assert len(wire.requests) == 1


def test_deployer_without_url_template_is_not_configured():
    assert VDeployer("").configured is False
    assert VDeployer(TEMPLATE).configured is True


def test_memory_deployer_keeps_calls_and_raises_faults():
    deployer = MemoryDeployer()
    deployer.faults.before("deploy", VendorTimeout("slow"))
    deployer.faults.after("deploy", VendorTimeout("lost"))
    for expected in (0, 1, 2):
        if expected < 2:
            with pytest.raises(VendorTimeout):
                deployer.deploy("c", {"a": 1}, "token")
        else:
            deployer.deploy("c", {"a": 1}, "token")
        assert len(deployer.calls) == expected
    assert deployer.calls[0] == ("c", {"a": 1}, "token")
    assert MemoryDeployer(configured=False).configured is False
