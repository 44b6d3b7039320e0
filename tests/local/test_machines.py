"""The local machines read files from user data and serve instance metadata."""

from __future__ import annotations

import base64
import json
import queue
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from moto.ec2.models import ec2_backends

from local.aws.corrections.roles import AccessDenied
from local.kubernetes.clusters import Clusters
from local.machines.booted import Machine
from local.machines.instances import TAG, Machines
from local.machines.metadata import InstanceData, Metadata
from local.machines.programs import cloud_init_files

DOCUMENT = "#cloud-config\nwrite_files:\n  - path: /etc/a\n    content: |\n      line\n"


def test_files_are_read_from_text_and_base_64() -> None:
    assert cloud_init_files(DOCUMENT) == {"/etc/a": "line\n"}
    assert cloud_init_files(base64.b64encode(DOCUMENT.encode())) == {"/etc/a": "line\n"}
    assert cloud_init_files("#cloud-config\nruncmd: []\n") == {}


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    served_metadata = Metadata()
    yield served_metadata
    served_metadata.close()


def get(url: str, method: str = "GET", token: str | None = None) -> tuple[int, str]:
    headers = {"X-aws-ec2-metadata-token": token} if token else {}
    try:
        request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 (loopback)
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def test_metadata_needs_a_token_and_gives_the_roles_keys(metadata: Metadata) -> None:
    metadata.add("i-1", InstanceData("us-east-1", lambda: ("node-role", {"AccessKeyId": "ASIA"})))
    root = f"{metadata.url}/i-1/latest"
    assert get(f"{root}/meta-data/placement/region")[0] == 401
    _, token = get(f"{root}/api/token", "PUT")
    assert get(f"{root}/meta-data/placement/region", token=token) == (200, "us-east-1")
    assert get(f"{root}/meta-data/iam/security-credentials/", token=token) == (200, "node-role")
    assert '"AccessKeyId": "ASIA"' in get(f"{root}/meta-data/iam/security-credentials/node-role", token=token)[1]
    assert get(f"{root}/meta-data/iam/security-credentials/other", token=token)[0] == 404
    assert get(f"{metadata.url}/i-2/latest/meta-data/placement/region", token=token)[0] == 404


def test_an_instance_has_a_root_of_its_own_where_sdks_of_aws_ask(metadata: Metadata) -> None:
    keys = lambda: ("role", {"AccessKeyId": "ASIA"})  # noqa: E731
    for name in ("i-1", "i-2"):
        metadata.add(name, InstanceData("us-east-1", keys, name, "us-east-1b", type="t3.large"))
    url = metadata.own_url("i-1")
    assert metadata.own_url("i-1") == url != metadata.own_url("i-2")
    _, token = get(f"{url}/latest/api/token", "PUT")
    document = json.loads(get(f"{url}/latest/dynamic/instance-identity/document", token=token)[1])
    assert (document["instanceId"], document["region"]) == ("i-1", "us-east-1")
    assert (document["availabilityZone"], document["instanceType"]) == ("us-east-1b", "t3.large")
    assert get(f"{url}/latest/meta-data/iam/security-credentials/", token=token) == (200, "role")
    request = urllib.request.Request(f"{url}/latest/api/token", method="PUT")  # noqa: S310
    request.add_header("X-aws-ec2-metadata-token-ttl-seconds", "300")
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        assert answer.headers["X-aws-ec2-metadata-token-ttl-seconds"] == "300", "an SDK keeps the token so long"
    metadata.remove("i-1")
    with pytest.raises(OSError, match="refused"):
        get(f"{url}/latest/meta-data/instance-id", token=token)


def test_tags_are_served_only_to_instances_with_tags_enabled(metadata: Metadata) -> None:
    metadata.add("i-1", InstanceData("us-east-1", dict, tags=lambda: {"stockyard:resource": "ncl_1"}))
    metadata.add("i-2", InstanceData("us-east-1", dict))
    _, token = get(f"{metadata.url}/i-1/latest/api/token", "PUT")
    path = "latest/meta-data/tags/instance"
    for name in ("stockyard:resource", "stockyard%3Aresource"):
        assert get(f"{metadata.url}/i-1/{path}/{name}", token=token) == (200, "ncl_1")
    assert get(f"{metadata.url}/i-1/{path}/other", token=token)[0] == 404
    assert get(f"{metadata.url}/i-2/{path}/stockyard:resource", token=token)[0] == 404
    metadata.remove("i-1")
    assert get(f"{metadata.url}/i-1/{path}/stockyard:resource", token=token)[0] == 404


def test_an_instance_without_a_role_has_no_keys(metadata: Metadata) -> None:
    def refuse() -> tuple[str, dict[str, str]]:
        raise AccessDenied("i-1", "none")

    metadata.add("i-1", InstanceData("us-east-1", refuse))
    _, token = get(f"{metadata.url}/i-1/latest/api/token", "PUT")
    assert get(f"{metadata.url}/i-1/latest/meta-data/iam/security-credentials/", token=token)[0] == 404


class Script:
    """A program that records its calls, and fails as often as planned."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.said: queue.Queue[str] = queue.Queue()

    def begin(self) -> bool:
        self.failures -= 1
        self.said.put("failed" if self.failures >= 0 else "begun")
        return self.failures < 0

    def switched(self, *, on: bool) -> None:
        self.said.put("on" if on else "off")

    def end(self) -> None:
        self.said.put("ended")

    def next(self, *expected: str) -> None:
        assert [self.said.get(timeout=30) for _ in expected] == list(expected)


def booted(script: Script, boot_seconds: tuple[float, float] = (0.0, 0.0)) -> Machine:
    machine = Machine("i-1", boot_seconds, lambda: script.said.put("gone"))
    machine.program = script
    machine.start()
    return machine


def test_a_machine_begins_its_program_once_and_follows_power() -> None:
    script = Script()
    machine = booted(script)
    script.next("on", "begun")
    for state in ("stopping", "stopped"):
        machine.tell(state)
    script.next("off")
    for state in ("pending", "running"):
        machine.tell(state)
    script.next("on")
    machine.tell("shutting-down")
    script.next("off", "ended", "gone")
    machine.join(30)
    assert script.said.empty()


def test_a_machine_repeats_its_program_until_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.machines.booted.RETRY_SECONDS", 0.0)
    script = Script(failures=2)
    machine = booted(script)
    script.next("on", "failed", "failed", "begun")
    machine.tell("terminated")
    script.next("off", "ended", "gone")
    machine.join(30)


def test_a_machine_that_is_terminated_while_booting_or_waiting_does_nothing_more() -> None:
    slow, failing = Script(), Script(failures=1)
    booting, pausing = booted(slow, (600.0, 600.0)), booted(failing)
    failing.next("on", "failed")
    for machine in (booting, pausing):
        machine.tell("terminated")
        machine.join(30)
    slow.next("off", "ended", "gone")
    failing.next("off", "ended", "gone")


def test_an_instance_boots_once_its_tags_are_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account, region = "999999999901", "us-east-1"
    backend = ec2_backends[account][region]
    placement = SimpleNamespace(zone=f"{region}a")
    instance = SimpleNamespace(
        id="i-early", state="running", user_data=DOCUMENT, ec2_backend=backend, placement=placement
    )
    monkeypatch.setitem(backend.reservations, "r-1", SimpleNamespace(instances=[instance]))
    booted = queue.Queue[str]()
    looks = queue.Queue[str]()
    machines = Machines((account,), tmp_path / "log", tmp_path / "machines", Clusters(tmp_path / "kubernetes"))
    monkeypatch.setattr(machines, "_boot", lambda _, instance: booted.put(instance.id))
    look = machines._look

    def noted(account: str, instance: SimpleNamespace) -> None:
        look(account, instance)
        looks.put(instance.id)

    monkeypatch.setattr(machines, "_look", noted)
    machines.start()
    try:
        assert looks.get(timeout=30) == looks.get(timeout=30) == "i-early"
        assert booted.empty()
        backend.create_tags(["i-early"], {TAG: "ncl_1"})
        assert booted.get(timeout=30) == "i-early"
        assert looks.get(timeout=30) == looks.get(timeout=30) == "i-early"
        assert booted.empty()
    finally:
        machines.close()
