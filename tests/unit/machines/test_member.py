"""The program of a further member of a control plane: what it asks, whom it takes out of etcd, what it reports."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
import urllib.error
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.clusters.join_tokens import certificate_key
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import JoinAnswer, MemberReport
from stockyard.machines import control_plane, on_machine
from stockyard.machines.cloud_config import MEMBER, machine_program
from stockyard.machines.node import CONFIG_PATH
from tests.harness.crash.machine_report import machine_report
from tests.unit.machines import first_boot

CLUSTER = "clu_01KDVJXQ80000000000000000A"
TOKEN = "e" * 64
VALUES = {
    "api_url": "https://api.example.test",
    "cluster_id": CLUSTER,
    "client_id": "x" * 33 + "-0123456789ab",
    "kubernetes_version": "1.35",
    "issuer": "https://id.example.test/realms/vantage",
    "tenant": "acme",
    "volume_tags": {},
}
KUBECONFIG = machine_report("https://nlb.example.test:6443")["kubeconfig"]
KEY = certificate_key(b"installation", CLUSTER)
ANSWER = {
    "endpoint": "https://nlb.example.test:6443",
    "internal_endpoint": False,
    "addresses": ["10.0.0.1", "10.0.1.1"],
    "token": "abcdef.0123456789abcdef",
    "ca_hash": "sha256:" + "0" * 64,
    "node_name": "member-2",
    "labels": {"stockyard.dev/claim": "ncl_1"},
    "taints": [],
    "kubelet_args": {},
    "control_plane": {
        "certificate_key": KEY,
        "kubernetes_version": "1.35.4",
        "remove_before": ["member-1"],
        "workloads": False,
    },
}


class Etcd:
    """The members of an etcd, by the addresses where one answers."""

    def __init__(self, *members: dict[str, Any]) -> None:
        self.members = list(members)
        self.silent: set[str] = set()
        self.refuses = False
        self.asked: list[str] = []

    def __call__(self, address: str, action: str, body: dict[str, Any]) -> dict[str, Any]:
        if address in self.silent:
            raise ConnectionRefusedError(address)
        self.asked.append(address)
        if action == "list":
            return {"members": list(self.members)}
        assert action == "remove"
        if self.refuses:
            raise urllib.error.HTTPError("u", 503, "unhealthy cluster", Message(), io.BytesIO(b"{}"))
        self.members = [member for member in self.members if member["ID"] != body["ID"]]
        return {}

    def names(self) -> list[str]:
        return [member.get("name", "") for member in self.members]


def etcd_member(number: int, name: str = "", *, learner: bool = False) -> dict[str, Any]:
    """A member as etcd's JSON interface writes it: what is false or empty is left out."""
    member: dict[str, Any] = {"ID": str(2**63 + number), "peerURLs": [f"https://10.0.0.{number}:2380"]}
    return member | ({"name": name} if name else {}) | ({"isLearner": True} if learner else {})


@pytest.fixture
def member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program, whose files are below a folder of its own."""
    monkeypatch.syspath_prepend(str(Path(on_machine.__file__).parent))
    (tmp_path / "stockyard_machine.py").write_text(machine_program(MEMBER).text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("stockyard_member", "stockyard_machine", "stockyard_near", "stockyard_node"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.import_module("stockyard_machine")  # the file of a machine, before the first of its parts is looked for
    module: Any = importlib.import_module("stockyard_member")
    module.machine.STATE = str(tmp_path)
    module.near.HOSTS = str(tmp_path / "hosts")
    module.machine.KUBERNETES = str(tmp_path / "kubernetes")
    (tmp_path / "kubernetes" / "pki").mkdir(parents=True)
    (tmp_path / "kubernetes" / "admin.conf").write_text(KUBECONFIG)
    (tmp_path / "kubernetes" / "pki" / "ca.crt").write_text("PEM")
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
    (tmp_path / "member.json").write_text(json.dumps({"node_name": "member-2", "remove_before": ["member-1"]}))
    endpoint = {"host": "nlb.example.test", "port": 6443, "addresses": ["10.0.0.1", "10.0.0.3"]}
    (tmp_path / "endpoint.json").write_text(json.dumps(endpoint))
    monkeypatch.setattr(module, "own_address", lambda: "10.0.0.2")
    return module


def test_the_longest_document_of_a_member_fits_and_holds_no_key() -> None:
    values = {
        **VALUES,
        "api_url": f"https://{first_boot.noise(253)}",
        "client_id": first_boot.noise(46),
        "issuer": f"https://{first_boot.noise(253)}/realms/{first_boot.noise(255)}",
        "tenant": first_boot.noise(63),
    }
    boot = control_plane.ControlPlaneMachine(**values, joins=True, creator="ann", takes_pods=True).first_boot()
    assert len(boot.cloud_config()) <= control_plane.LIMIT
    assert boot == control_plane.ControlPlaneMachine(**values, joins=True).first_boot(), (
        "what is for the whole cluster it is not told"
    )
    config = json.loads(boot.files[CONFIG_PATH].text)
    assert set(config) == {
        "api_url", "client_id", "cloud_provider", "cluster_id", "issuer", "kubernetes_version", "tenant",
    }  # fmt: skip


def test_a_member_without_keys_of_a_cloud_is_told_its_claim_and_its_token() -> None:
    values = {**VALUES, "volume_tags": None}
    boot = control_plane.ControlPlaneMachine(**values, joins=True, claim_id="ncl_1", token=TOKEN).first_boot()
    config = json.loads(boot.files[CONFIG_PATH].text)
    assert (config["claim_id"], config["token"], "cloud_provider" in config) == ("ncl_1", TOKEN, False)
    assert boot.files[CONFIG_PATH].mode == "0600"


def test_shellcheck_accepts_a_members_script(tmp_path: Path) -> None:
    boot = control_plane.ControlPlaneMachine(**VALUES, joins=True).first_boot()
    first_boot.check_script(boot.files[control_plane.START_PATH].text, tmp_path)


TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


@pytest.mark.parametrize(("taints", "workloads"), [([], False), ([TAINT], False), ([], True)])
def test_it_asks_and_writes_what_kubeadm_and_the_api_server_read(
    member: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taints: list[dict[str, str]], workloads: bool
) -> None:
    answer = {**ANSWER, "taints": taints, "control_plane": {**ANSWER["control_plane"], "workloads": workloads}}
    JoinAnswer(**answer)
    monkeypatch.setattr(member.node, "post", lambda *_, **__: json.loads(json.dumps(answer)))
    monkeypatch.setattr(member, "listens", lambda address, _: address == "10.0.1.1")
    values = {**VALUES, "token": TOKEN}
    member.ask(values)
    document = json.loads((tmp_path / "join.yaml").read_text())
    assert document["controlPlane"] == {"certificateKey": KEY}
    assert document["nodeRegistration"]["taints"] == ([] if workloads else [TAINT]), "never one twice"
    assert (tmp_path / "join.yaml").stat().st_mode & 0o777 == 0o600
    assert "10.0.1.1 nlb.example.test" in (tmp_path / "hosts").read_text()
    assert "10.0.0.1 nlb" not in (tmp_path / "hosts").read_text(), "who is dead there is not asked"
    written = {path.name for path in (tmp_path / "api").iterdir()}
    assert written == {"authentication.yaml", "audit.yaml", "encryption.yaml"}
    first = member.machine.encryption(KEY, [])
    assert json.loads((tmp_path / "api/encryption.yaml").read_text()) == first, "all members derive it alike"
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "join.yaml" and path.suffix != ".pyc":
            assert KEY not in path.read_text(), path


def test_dead_members_and_those_that_never_became_voters_make_room(member: Any) -> None:
    member.etcd = etcd = Etcd(etcd_member(1, "member-1"), etcd_member(3, "member-3"), etcd_member(9, learner=True))
    etcd.silent = {"10.0.0.1"}
    member.make_room({})
    assert etcd.names() == ["member-3"]
    member.make_room({})
    assert etcd.names() == ["member-3"], "a second time changes nothing"


def test_what_an_earlier_try_has_left_is_known_by_name_or_address(member: Any) -> None:
    member.etcd = etcd = Etcd(etcd_member(1, "member-1"), etcd_member(2, learner=True), etcd_member(7, "member-2"))
    member.leave({})
    assert etcd.names() == ["member-1"]


def test_without_any_member_that_answers_nothing_is_taken_for_done(member: Any) -> None:
    member.etcd = etcd = Etcd(etcd_member(1, "member-1"))
    etcd.silent = {"10.0.0.1", "10.0.0.3"}
    with pytest.raises(OSError, match=r"10\.0\.0\.3"):
        member.make_room({})


def test_a_voter_is_who_has_a_vote(member: Any) -> None:
    pauses: list[float] = []
    member.etcd = etcd = Etcd(etcd_member(1, "member-1"), etcd_member(2, "member-2"))
    member.voter({}, pauses.append)
    assert etcd.asked == ["127.0.0.1"], "its own etcd has to answer"
    member.etcd = Etcd(etcd_member(1, "member-1"), etcd_member(2, "member-2", learner=True))
    with pytest.raises(OSError, match="no voting member"):
        member.voter({}, pauses.append)
    assert pauses == []
    etcd.silent = {"127.0.0.1"}
    member.etcd = etcd
    with pytest.raises(OSError, match="does not answer"):
        member.voter({}, pauses.append)
    assert pauses == list(member.STARTS)


def test_a_learner_is_known_at_once(member: Any) -> None:
    def refuse(*_: Any) -> Any:
        text = b'{"message": "etcdserver: rpc not supported for learner"}'
        raise urllib.error.HTTPError("u", 503, "unavailable", Message(), io.BytesIO(text))

    member.etcd = refuse
    with pytest.raises(urllib.error.HTTPError):
        member.voter({}, pytest.fail)


def test_it_reports_until_nothing_is_left_to_remove(member: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    member.etcd = etcd = Etcd(*(etcd_member(number, f"member-{number}") for number in (1, 2, 3)))
    etcd.refuses = True
    answers = [
        {"remove": [], "done": False, "retry_after": 7},
        {"remove": ["member-1"], "done": False, "retry_after": 8},
        {"remove": ["member-1", "member-2"], "done": False, "retry_after": 9},
        {"remove": [], "done": True, "retry_after": 10},
    ]
    posts: list[MemberReport] = []
    pauses: list[float] = []

    def post(_: Any, action: str, **more: Any) -> dict[str, Any]:
        assert action == "member-reports"
        posts.append(read(MemberReport, {"cluster_id": CLUSTER, "token": TOKEN, **more}))
        return answers.pop(0)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        etcd.refuses = seconds != 8

    monkeypatch.setattr(member.node, "post", post)
    member.report({}, pause)
    assert [post.removed for post in posts] == [[], [], [], ["member-1"]]
    kubeconfigs = [post.kubeconfig.get_secret_value() if post.kubeconfig else None for post in posts]
    assert kubeconfigs == [KUBECONFIG, None, None, None], "once is enough"
    assert posts[0].certificate_authority == "UEVN"
    assert pauses == [7, 8], "etcd had refused once; whom it has removed is reported without a pause"
    assert etcd.names() == ["member-2", "member-3"], "never itself"
    answers[:] = [{"remove": [], "done": False, "retry_after": 10}]
    member.renewal({})
    assert (posts[-1].removed, posts[-1].kubeconfig) == (["member-1"], posts[0].kubeconfig)


def test_the_addons_wait_for_the_last_member_of_the_old_release(member: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    member.etcd = Etcd(etcd_member(1, "member-1"), etcd_member(2, "member-2"))
    versions = {"member-1": "v1.34.4", "member-2": "v1.35.4", "worker": "v1.34.4"}

    def run(*_: Any, **__: Any) -> Any:
        items = [
            {"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": version}}}
            for name, version in versions.items()
        ]
        return type("Done", (), {"stdout": json.dumps({"items": items})})

    monkeypatch.setattr(member.subprocess, "run", run)
    with pytest.raises(OSError, match="not all members"):
        member.current({"kubernetes_version": "1.35.4"})
    versions["member-1"] = "v1.35.4"
    member.current({"kubernetes_version": "1.35.4"})


def test_in_the_end_the_endpoint_means_the_machine_itself(
    member: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[Any] = []
    monkeypatch.setattr(member.subprocess, "run", lambda command, **_: commands.append(command))
    member.settle({})
    member.settle({})
    assert "127.0.0.1 nlb.example.test" in (tmp_path / "hosts").read_text()
    assert len(commands) == 1, "the proxy has a copy of the hosts file, and is restarted once"
