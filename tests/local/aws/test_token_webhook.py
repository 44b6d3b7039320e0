"""The webhook of the local cloud's EKS takes the product's tokens, and refuses what aws-iam-authenticator refuses."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

import boto3
import pytest
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.sts.models import sts_backends

from local.aws import signatures
from local.aws.presigned import presigned_requests
from local.aws.token_webhook import (
    AccessEntry,
    Rejected,
    TokenWebhook,
    Unanswered,
    asked_at,
    canonical,
    policy_bindings,
)
from stockyard.providers.clouds.aws.cluster_tokens import presign

NOW = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)
KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "secret", "SessionToken": "session"}
ROLE = "arn:aws:iam::222222222222:role/vantage-demo-viewer-role"
ARN = "arn:aws:sts::222222222222:assumed-role/vantage-demo-viewer-role/ann@example.test"
ENTRY = AccessEntry(ROLE, policies=("AmazonEKSViewPolicy",), groups=("readers",))
ANSWER = f"<Arn>{ARN}</Arn><UserId>AROAEXAMPLE:ann@example.test</UserId><Account>222222222222</Account>"


class Sts:
    """STS that knows one key and checks its signatures."""

    def __init__(self, status: int = 0, answer: str = ANSWER) -> None:
        self.status, self.answer = status, answer
        self.calls: list[tuple[SplitResult, Mapping[str, str]]] = []

    def __call__(self, url: SplitResult, headers: Mapping[str, str]) -> tuple[int, str]:
        self.calls.append((url, headers))
        good = signatures.holds(url.netloc, url.path, url.query, headers, KEYS["SecretAccessKey"])
        return (self.status or 200, self.answer) if good else (403, "SignatureDoesNotMatch")


def webhook(sts: Any, *, cluster: str = "demo", minutes: float = 0, entries: Any = (ENTRY,)) -> TokenWebhook:
    return TokenWebhook(cluster, lambda: entries, sts, lambda: NOW + timedelta(minutes=minutes))


def review(hook: TokenWebhook, token: str) -> dict[str, Any]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = hook.review(body)
    assert (answer["apiVersion"], answer["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
    return dict(answer["status"])


def token(cluster: str = "demo", now: datetime = NOW) -> str:
    return presign(KEYS, cluster, "us-east-1", now)


def decoded(text: str) -> SplitResult:
    encoded = text.removeprefix("k8s-aws-v1.")
    return urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())


def encoded(url: str) -> str:
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def test_a_token_of_the_cluster_is_a_person_with_groups():
    sts = Sts()
    assert review(webhook(sts), token()) == {
        "authenticated": True,
        "user": {
            "username": "arn:aws:sts::222222222222:assumed-role/vantage-demo-viewer-role/ann-example.test",
            "uid": "aws-iam-authenticator:222222222222:AROAEXAMPLE",
            "groups": ["readers", "eks-access-policy:AmazonEKSViewPolicy"],
            "extra": {"arn": [ARN], "canonicalArn": [ROLE], "sessionName": ["ann@example.test"]},
        },
    }
    ((url, headers),) = sts.calls
    assert url == decoded(token())
    assert headers == {"x-k8s-aws-id": "demo", "accept": "application/json", "host": "sts.us-east-1.amazonaws.com"}


def test_an_entry_may_name_the_user():
    entry = AccessEntry(ROLE, "stockyard:{{AccountID}}:{{SessionNameRaw}}")
    user = review(webhook(Sts(), entries=[entry]), token())["user"]
    assert (user["username"], user["groups"]) == ("stockyard:222222222222:ann@example.test", [])


def test_without_an_entry_nobody_comes_in():
    entries = [AccessEntry(ROLE.replace("viewer", "admin"), policies=("AmazonEKSClusterAdminPolicy",))]
    assert review(webhook(Sts(), entries=entries), token()) == {
        "authenticated": False,
        "error": f"no access entry for {ROLE}",
    }


@pytest.mark.parametrize(("role_id", "good"), [("AROAEXAMPLE", True), ("AROAFORMER", False), (None, True)])
def test_an_entry_is_of_the_role_that_it_was_made_for(role_id: str | None, good: bool):
    entry = AccessEntry(ROLE, principal_id=role_id)
    assert review(webhook(Sts(), entries=[entry]), token())["authenticated"] is good


@pytest.mark.parametrize(("minutes", "good"), [(0, True), (14.9, True), (15.1, False), (600, False)])
def test_a_token_lives_a_quarter_of_an_hour(minutes: float, good: bool):
    sts = Sts()
    assert review(webhook(sts, minutes=minutes), token())["authenticated"] is good
    assert len(sts.calls) == good


def test_a_token_of_another_cluster_is_refused():
    assert review(webhook(Sts()), token("other")) == {"authenticated": False, "error": "STS answered 403"}


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda url, _: url._replace(scheme="http"), "scheme"),
        (lambda url, _: url._replace(netloc="evil.example.test"), "host"),
        (lambda url, _: url._replace(netloc="sts.us-east-1.amazonaws.com.evil.test"), "host"),
        (lambda url, _: url._replace(netloc="sts.us-east-1.amazonaws.com:8443"), "host"),
        (lambda url, _: url._replace(netloc="evil@sts.us-east-1.amazonaws.com"), "host"),
        (lambda url, _: url._replace(netloc="ec2.us-east-1.amazonaws.com"), "host"),
        (lambda url, _: url._replace(path=""), "path"),
        (lambda url, _: url._replace(path="/x"), "path"),
        (lambda url, query: url._replace(query=urlencode({**query, "Action": "AssumeRole"})), "action"),
        (lambda url, query: url._replace(query=urlencode({**query, "RoleArn": "x"})), "not allowed"),
        (lambda url, query: url._replace(query=urlencode({**query, "action": "GetCallerIdentity"})), "twice"),
        (lambda url, query: url._replace(query=urlencode({**query, "X-Amz-SignedHeaders": "host"})), "not signed"),
        (lambda url, query: url._replace(query=urlencode({**query, "X-Amz-Expires": "901"})), "Expires"),
        (lambda url, query: url._replace(query=urlencode({**query, "X-Amz-Expires": "-1"})), "Expires"),
        (lambda url, query: url._replace(query=urlencode({**query, "X-Amz-Date": "today"})), "Date"),
        (lambda url, _: url._replace(query="Action"), "cannot be read"),
        (lambda url, _: url._replace(query=url.query[:-1] + "\x1a"), "no URL"),
        (lambda url, _: url._replace(query=url.query + " x"), "no URL"),
    ],
)
def test_another_form_is_refused_before_anybody_is_asked(
    edit: Callable[[SplitResult, dict[str, str]], SplitResult], reason: str
):
    url, sts = decoded(token()), Sts()
    status = review(webhook(sts), encoded(edit(url, dict(parse_qsl(url.query))).geturl()))
    assert status["authenticated"] is False
    assert reason in status["error"]
    assert sts.calls == []


@pytest.mark.parametrize(
    "text",
    ["", "k8s-aws-v1.", "bearer", "k8s-aws-v1.a=", "k8s-aws-v1.a b", "k8s-aws-v1.gICA", "k8s-aws-v1." + "a" * 5000],
)
def test_what_is_no_token_is_refused(text: str):
    sts = Sts()
    assert review(webhook(sts), text)["authenticated"] is False
    assert sts.calls == []


@pytest.mark.parametrize("name", ["X-Amz-Date", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-Security-Token"])
def test_a_token_that_was_changed_is_refused(name: str):
    url = decoded(token())
    query = dict(parse_qsl(url.query))
    query[name] = query[name].replace("2026", "2027") if "2026" in query[name] else query[name][::-1]
    assert review(webhook(Sts()), encoded(url._replace(query=urlencode(query)).geturl()))["authenticated"] is False


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_fault_of_sts_says_nothing_of_the_token(status: int):
    with pytest.raises(Unanswered):
        webhook(Sts(status)).review({"spec": {"token": token()}})
    with pytest.raises(Unanswered):
        webhook(Sts(200, "<html>")).review({"spec": {"token": token()}})


@pytest.mark.parametrize(
    ("arn", "named"),
    [
        (ARN, ROLE),
        ("arn:aws:sts::222222222222:assumed-role/a/b/session", "arn:aws:iam::222222222222:role/a/b"),
        (ROLE, ROLE),
        ("arn:aws:iam::222222222222:user/ann", "arn:aws:iam::222222222222:user/ann"),
        ("arn:aws:iam::222222222222:root", "arn:aws:iam::222222222222:root"),
    ],
)
def test_a_session_is_named_by_its_role(arn: str, named: str):
    assert canonical(arn) == named


@pytest.mark.parametrize(
    "arn", ["", "arn:aws:s3:::bucket", "arn:aws:sts::222222222222:assumed-role/a", "arn:aws:iam::2:x"]
)
def test_other_names_are_none(arn: str):
    with pytest.raises(Rejected):
        canonical(arn)


def test_each_access_policy_has_a_role_of_kubernetes():
    bindings = {binding["subjects"][0]["name"]: binding["roleRef"]["name"] for binding in policy_bindings()}
    assert bindings == {
        "eks-access-policy:AmazonEKSViewPolicy": "view",
        "eks-access-policy:AmazonEKSEditPolicy": "edit",
        "eks-access-policy:AmazonEKSClusterAdminPolicy": "cluster-admin",
    }


@pytest.fixture
def sts_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    with presigned_requests():
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


def test_the_local_cloud_takes_its_own_tokens_and_no_others(sts_url: str):
    client = boto3.client("sts", region_name="us-east-1", endpoint_url=sts_url)
    keys = client.assume_role(RoleArn=ROLE, RoleSessionName="ann@example.test", DurationSeconds=900)["Credentials"]
    hook = TokenWebhook("demo", lambda: [ENTRY], asked_at(sts_url))
    now = datetime.now(UTC)
    good = presign(keys, "demo", "us-east-1", now)
    assert review(hook, good)["user"]["extra"]["canonicalArn"] == [ROLE]
    late = presign(keys, "demo", "us-east-1", now - timedelta(minutes=16))
    false_keys = {**keys, "SecretAccessKey": "guessed"}
    for text in (
        presign(keys, "other", "us-east-1", now),
        presign(false_keys, "demo", "us-east-1", now),
        presign({**keys, "SessionToken": "another"}, "demo", "us-east-1", now),
        good[:-4] + good[-8:-4],
        late,
    ):
        assert review(hook, text)["authenticated"] is False
    session = sts_backends["222222222222"]["aws"].get_assumed_role_from_access_key(keys["AccessKeyId"])
    session.expiration = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=1)
    assert review(hook, good) == {"authenticated": False, "error": "STS answered 403"}, "it dies with its session"


def test_an_unreachable_sts_is_a_fault():
    with pytest.raises(Unanswered):
        TokenWebhook("demo", lambda: [ENTRY], asked_at("http://127.0.0.1:1"), lambda: NOW).review(
            {"spec": {"token": token()}}
        )
