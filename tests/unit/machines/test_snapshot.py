"""The programs by which members send snapshots of etcd to S3, and begin a control plane anew from one."""

from __future__ import annotations

import importlib
import io
import json
import shutil
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from local.aws import signatures
from stockyard.domain.clusters.join_tokens import certificate_key
from stockyard.machines import control_plane, on_machine
from stockyard.machines.cloud_config import FIRST, machine_program

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")

CLUSTER = "clu_01KDVJXQ80000000000000000A"
KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "s3cret", "Token": "t0ken"}
DUE = {"id": "20260101T060000Z", "bucket": "acme", "region": "eu-west-1", "key": "stockyard-etcd/c/1.tar.gz"}
MACHINE = {"api_url": "https://api.example.test", "cluster_id": CLUSTER, "kubernetes_version": "1.35.4"}
AUTHORITY = "-----BEGIN PRIVATE KEY-----\nof the authority\n"
REVISION = 42


class Machine:
    """A member: its files, its etcd, and what it has sent."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(Path(on_machine.__file__).parent))
        (folder / "stockyard_machine.py").write_text(machine_program(FIRST).text)
        monkeypatch.syspath_prepend(str(folder))
        for name in ("snapshot", "restore", "machine", "member", "near", "node"):
            monkeypatch.delitem(sys.modules, f"stockyard_{name}", raising=False)
        importlib.import_module(
            "stockyard_machine"
        )  # the file of a machine, before the first of its parts is looked for
        self.snapshot: Any = importlib.import_module("stockyard_snapshot")
        self.restore: Any = importlib.import_module("stockyard_restore")
        self.machine: Any = self.snapshot.machine
        self.folder, self.sent = folder, list[dict[str, Any]]()
        self.objects: dict[str, bytes] = {}
        self.commands: list[tuple[str, ...]] = []
        self.machine.STATE, self.machine.KUBERNETES = str(folder), str(folder / "kubernetes")
        monkeypatch.setattr(self.snapshot, "DATA", str(folder / "etcd"))
        (folder / "etcd").mkdir()
        for name in self.snapshot.PKI:
            path = folder / "kubernetes" / "pki" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(AUTHORITY if name == "ca.key" else name)
        self.machine.api_server({"tenant": "acme", "issuer": "i", "client_id": "c"}, certificate_key(b"k", CLUSTER))
        monkeypatch.setattr(self.machine, "prove", lambda _: {"token": "t"})
        monkeypatch.setattr(self.machine, "post", self._post)
        monkeypatch.setattr(self.snapshot, "crictl", self._crictl)
        monkeypatch.setattr(self.snapshot, "kubeadm", lambda name, _: f"kind: {name}\nkubernetesVersion: v1.34.1\n")
        monkeypatch.setattr(self.snapshot, "request", self._request)

    def _post(self, _: dict[str, str], action: str, body: dict[str, Any]) -> str:
        assert action == "snapshot-reports"
        self.sent.append(body)
        return json.dumps({"due": None})

    def _crictl(self, *words: str) -> str:
        if "save" in words:
            Path(words[-1]).write_bytes(b"etcd" * 1000)
        return json.dumps({"revision": REVISION}) if "status" in words else "the-etcd\n"

    def _request(self, location: dict[str, str], method: str, headers: dict[str, str], body: Any = None) -> Any:
        if method == "PUT":
            assert headers["if-none-match"] == "*"
            self.objects[location["key"]] = body.read()
        return io.BytesIO(self.objects[location["key"]])

    def take(self) -> int:
        """Take the snapshot that is due; the exit code."""
        (self.folder / "snapshot.json").write_text(json.dumps({**DUE, "machine": MACHINE}))
        with pytest.raises(SystemExit) as end:
            self.snapshot.main()
        return int(end.value.code or 0)

    def opened(self) -> Any:
        (self.folder / "fetched").write_bytes(self.objects[DUE["key"]])
        return self.restore.unpack(str(self.folder / "fetched"), str(self.folder / "restored.db"))


@pytest.fixture
def member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_snapshot_is_sent_and_told(member: Machine) -> None:
    assert member.take() == 0
    (body,) = member.sent
    assert body["report"]["id"] == DUE["id"]
    assert body["report"]["revision"] == REVISION
    assert body["report"]["size"] == len(member.objects[DUE["key"]])
    assert not list(member.folder.glob("etcd/*")), "etcd's disk is as it was"
    assert not list(member.folder.glob("*.tar.gz"))


def test_no_key_of_an_authority_is_in_clear_in_the_store(member: Machine) -> None:
    member.take()
    with tarfile.open(fileobj=io.BytesIO(member.objects[DUE["key"]]), mode="r:gz") as archive:
        names = archive.getnames()
        texts = b"".join(archive.extractfile(name).read() for name in names)
    assert names == ["sealed", "snapshot.db"]
    assert AUTHORITY.encode() not in texts
    assert b"PRIVATE KEY" not in texts


def test_another_member_opens_it_by_the_key_that_they_share(member: Machine) -> None:
    member.take()
    content = member.opened()
    assert content["pki"]["ca.key"] == AUTHORITY
    assert (member.folder / "restored.db").read_bytes() == b"etcd" * 1000


def test_what_another_cluster_has_sealed_is_refused(member: Machine) -> None:
    member.take()
    (member.folder / "api" / "encryption.yaml").unlink()
    other = certificate_key(b"k", "clu_01KDVJXQ80000000000000000B")
    member.machine.api_server({"tenant": "acme", "issuer": "i", "client_id": "c"}, other)
    with pytest.raises(ValueError, match="not sealed by this cluster"):
        member.opened()


def test_a_snapshot_that_somebody_has_changed_is_refused(member: Machine) -> None:
    member.take()
    with tarfile.open(fileobj=io.BytesIO(member.objects[DUE["key"]]), mode="r:gz") as archive:
        sealed = archive.extractfile("sealed").read()
    forged = io.BytesIO()
    with tarfile.open(fileobj=forged, mode="w:gz") as archive:
        for name, content in (("sealed", sealed), ("snapshot.db", b"theirs")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    member.objects[DUE["key"]] = forged.getvalue()
    with pytest.raises(ValueError, match="not the one that was sealed"):
        member.opened()


def test_what_fails_is_told(member: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise OSError("S3 answers 403")

    monkeypatch.setattr(member.snapshot, "request", refused)
    assert member.take() == 1
    assert member.sent[0]["report"]["failure"] == "OSError: S3 answers 403"


def test_a_control_plane_without_a_shared_key_sends_nothing(member: Machine) -> None:
    (member.folder / "api" / "encryption.yaml").unlink()
    member.machine.api_server({"tenant": "acme", "issuer": "i", "client_id": "c"})
    assert member.take() == 1
    assert "no key that its members share" in member.sent[0]["report"]["failure"]
    assert member.objects == {}


def test_the_machine_becomes_the_program_that_it_is_given(member: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = control_plane.given_programs(control_plane.BACKUP_PROGRAMS)
    answer = json.dumps({"due": {**DUE, "programs": programs}})
    monkeypatch.setattr(member.machine, "post", lambda *_: answer)
    began: list[str] = []
    monkeypatch.setattr(member.machine.os, "execv", lambda _, words: began.extend(words))
    member.machine.backup(dict(MACHINE))
    assert began[1] == str(member.folder / "stockyard_snapshot.py")
    compile(Path(began[1]).read_text(), began[1], "exec")
    config = json.loads((member.folder / "snapshot.json").read_text())
    assert config == {**DUE, "machine": MACHINE}


def test_nothing_happens_when_nothing_is_due(member: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member.machine.os, "execv", lambda *_: pytest.fail("nothing is due"))
    member.machine.backup(dict(MACHINE))
    assert not (member.folder / "snapshot.json").exists()


def test_a_request_to_the_store_is_signed_with_its_headers(member: Machine) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    headers = {"if-none-match": "*", "x-amz-meta-release": "1.35.4"}
    request = ("PUT", "s3.eu-west-1.amazonaws.com", "/acme/stockyard-etcd/c/1.tar.gz", "UNSIGNED-PAYLOAD")
    url = urlsplit(member.machine.signed_url(KEYS, "eu-west-1", "s3", request, {}, headers, now))
    presigned = (url.netloc, url.path, url.query, headers, KEYS["SecretAccessKey"], "PUT", signatures.UNSIGNED)
    assert signatures.holds(*presigned)
    assert not signatures.holds(*presigned[:3], {**headers, "if-none-match": "x"}, *presigned[4:])


def test_kubeadm_begins_with_this_machine_and_the_clusters_own_settings(member: Machine) -> None:
    registration = {"name": "member-4", "criSocket": "s"}
    join = {"apiVersion": "kubeadm.k8s.io/v1beta4", "nodeRegistration": registration}
    (member.folder / "join.yaml").write_text(json.dumps({**join, "controlPlane": {"certificateKey": "k" * 64}}))
    text = member.restore.configuration(
        ["kind: ClusterConfiguration\nkubernetesVersion: v1.34.1\n", "kind: K"], "1.35.4"
    )
    init, cluster, kubelet = yaml.safe_load_all(text)
    assert init["nodeRegistration"] == registration
    assert init["certificateKey"] == "k" * 64
    assert cluster == {"kind": "ClusterConfiguration", "kubernetesVersion": "v1.35.4"}
    assert kubelet == {"kind": "K"}
