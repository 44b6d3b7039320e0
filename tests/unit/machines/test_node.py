"""The data for a node, and its program against Stockyard's own routes."""

from __future__ import annotations

import gzip
import json
import subprocess
import urllib.error
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from stockyard.domain.clusters.join_tokens import machine_token
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import JoinProof
from stockyard.machines import node as node_boot
from tests.unit.machines import first_boot
from tests.unit.machines.first_boot import CLAIM, KEYS, NODE_VALUES, refusal

ANSWER = {
    "endpoint": "https://nlb.example.test:6443",
    "token": "abcdef.0123456789abcdef",
    "ca_hash": "sha256:" + "0" * 64,
    "node_name": "workers-1",
    "labels": {"team": "blue", "kubernetes.io/arch": "amd64", "node-role.kubernetes.io/worker": "", "a/b": "c"},
    "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    "kubelet_args": {"max-pods": "50"},
}


def test_the_document_fits_and_is_the_same_for_every_claim(node_document: str) -> None:
    assert node_document.startswith("#cloud-config\n")
    assert node_boot.first_boot(**NODE_VALUES).cloud_config() == node_boot.first_boot(**NODE_VALUES).cloud_config()
    longest = {
        **NODE_VALUES,
        "api_url": f"https://{first_boot.noise(253)}",
        "cluster_id": f"clu_{first_boot.noise(26)}",
    }
    assert len(node_boot.first_boot(**longest).cloud_config()) <= node_boot.LIMIT == 14 * 1024
    secret = {"claim_id": f"ncl_{first_boot.noise(26)}", "token": first_boot.noise(64)}
    assert len(node_boot.first_boot(**longest, **secret).cloud_config()) <= node_boot.LIMIT
    with pytest.raises(ValueError, match="user data is"):
        node_boot.first_boot(**{**NODE_VALUES, "api_url": first_boot.noise(16_384)}).cloud_config()


def test_programs_and_values_arrive(node_files: dict[str, Any], node_document: str) -> None:
    for path in (node_boot.SCRIPT_PATH, node_boot.MACHINE_PATH, node_boot.START_PATH):
        assert node_files[path]["permissions"] == "0755"
    assert json.loads(node_files[node_boot.CONFIG_PATH]["content"]) == {
        "api_url": "https://api.example.test",
        "cluster_id": "clu_01KDVJXQ80000000000000000A",
    }
    assert "def bootstrap" not in node_document, "a control plane's part"
    unit = node_files["/etc/systemd/system/stockyard-start.service"]["content"]
    assert f"ExecStart={node_boot.START_PATH} 1.34 1.34.4 1.7 https://pkgs.k8s.io - -\n" in unit
    start = node_files[node_boot.START_PATH]["content"]
    assert f"program={node_boot.SCRIPT_PATH}\n" in start
    assert '    python3 "$program"\n' in start
    commands = yaml.safe_load(node_document)["runcmd"]
    assert ["systemctl", "start", "--no-block", "stockyard-start.service"] in commands


def test_shellcheck_accepts_the_script(node_files: dict[str, Any], tmp_path: Path) -> None:
    first_boot.check_script(node_files[node_boot.START_PATH]["content"], tmp_path)


def test_cloud_init_accepts_the_document(node_document: str, tmp_path: Path) -> None:
    first_boot.check_document(node_document, tmp_path)


def test_the_node_proves_itself_and_writes_how_it_joins(
    node: Any, node_files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests: list[tuple[str, str, dict[str, str], bytes]] = []
    answers = {
        "/latest/api/token": "imds-token",
        "/latest/meta-data/tags/instance/stockyard:resource": CLAIM,
        "/latest/meta-data/placement/region": "us-east-1",
        "/latest/meta-data/placement/availability-zone": "us-east-1a",
        "/latest/meta-data/instance-id": "i-0123",
        "/latest/meta-data/iam/security-credentials/": "node-role",
        "/latest/meta-data/iam/security-credentials/node-role": json.dumps(KEYS),
        f"/v1/node-claims/{CLAIM}/join": json.dumps(ANSWER),
    }

    def fetch(method: str, url: str, headers: Any = None, body: bytes | None = None) -> str:
        requests.append((method, url, headers or {}, body or b""))
        return answers[urlsplit(url).path]

    monkeypatch.setattr(node.machine, "fetch", fetch)
    config = tmp_path / "node.json"
    config.write_text(node_files[node_boot.CONFIG_PATH]["content"])
    node.CONFIG = str(config)
    node.main([])
    method, url, _, body = requests[-1]
    assert (method, url) == ("POST", f"https://api.example.test/v1/node-claims/{CLAIM}/join")
    proof = json.loads(body)
    assert set(proof) == {"method", "url", "headers", "cluster_id"}
    assert proof["url"].startswith("https://sts.us-east-1.amazonaws.com/?")
    assert proof["headers"] == {"x-stockyard-host": "api.example.test"}
    tag = next(headers for _, address, headers, _ in requests if "/tags/instance/" in address)
    assert tag == {"X-aws-ec2-metadata-token": "imds-token"}
    path = tmp_path / "join.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    document = yaml.safe_load(path.read_text())
    assert document["apiVersion"] == "kubeadm.k8s.io/v1beta4"
    assert document["discovery"]["bootstrapToken"] == {
        "token": ANSWER["token"],
        "apiServerEndpoint": "nlb.example.test:6443",
        "caCertHashes": [ANSWER["ca_hash"]],
    }
    registration = document["nodeRegistration"]
    assert registration["name"] == "workers-1"
    assert registration["taints"] == ANSWER["taints"]
    flags = {flag["name"]: flag["value"] for flag in registration["kubeletExtraArgs"]}
    assert flags == {
        "max-pods": "50",
        "node-labels": "a/b=c,kubernetes.io/arch=amd64,team=blue",
        "provider-id": "aws:///us-east-1a/i-0123",
    }


def test_a_machine_without_keys_of_a_cloud_proves_itself_by_its_token(
    node: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = machine_token(b"key", CLAIM, 1)
    document = yaml.safe_load(
        gzip.decompress(node_boot.first_boot(**NODE_VALUES, claim_id=CLAIM, token=token).cloud_config())
    )
    written = next(file for file in document["write_files"] if file["path"] == node_boot.CONFIG_PATH)
    assert written["permissions"] == "0600"
    requests: list[tuple[str, str, bytes]] = []

    def fetch(method: str, url: str, headers: Any = None, body: bytes | None = None) -> str:
        requests.append((method, url, body or b""))
        return json.dumps(ANSWER)

    monkeypatch.setattr(node.machine, "fetch", fetch)
    config = tmp_path / "node.json"
    config.write_text(written["content"])
    node.CONFIG = str(config)
    node.main([])
    ((method, url, body),) = requests
    assert (method, url) == ("POST", f"https://api.example.test/v1/node-claims/{CLAIM}/join")
    proof = read(JoinProof, json.loads(body))
    assert (proof.cluster_id, proof.proof()) == (NODE_VALUES["cluster_id"], {"token": token})
    assert token not in (tmp_path / "join.yaml").read_text()


def test_a_private_name_of_the_endpoint_leads_to_its_addresses_before_the_node_joins(
    node: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody else knows the name, so the hosts file has it when kubeadm asks for it."""
    name, hosts = "demo-0123456789ab.stockyard.internal", tmp_path / "hosts"
    answer = {**ANSWER, "endpoint": f"https://{name}:6443", "addresses": ["10.160.0.5"]}
    config = tmp_path / "node.json"
    config.write_text(
        json.dumps({"api_url": "https://api.example.test", "cluster_id": "c", "claim_id": CLAIM, "token": "t"})
    )
    node.CONFIG = str(config)
    looked: list[str] = []
    monkeypatch.setattr(node.stockyard_near, "answers", lambda *_: looked.append("asked") or False)
    for is_internal in (False, True):
        monkeypatch.setattr(
            node.machine,
            "fetch",
            lambda *_, internal_endpoint=is_internal: json.dumps({**answer, "internal_endpoint": internal_endpoint}),
        )
        node.main([])
        assert (f"10.160.0.5 {name} " in hosts.read_text()) is is_internal
        assert json.loads((tmp_path / "endpoint.json").read_text()) == {
            "host": name, "port": 6443, "addresses": ["10.160.0.5"], "node_name": "workers-1",
        }  # fmt: skip
    assert hosts.read_text().startswith("127.0.0.1 localhost\n")
    assert looked == [], "the authority is not there yet"
    joined = json.loads((tmp_path / "join.yaml").read_text())
    assert joined["discovery"]["bootstrapToken"]["apiServerEndpoint"] == f"{name}:6443"
    assert joined["discovery"]["bootstrapToken"]["caCertHashes"] == [ANSWER["ca_hash"]]
    once = hosts.read_text()
    node.main([])
    assert hosts.read_text() == once


def test_a_second_start_asks_again_since_the_token_is_young(
    node: Any, node_files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tokens = iter(["abcdef.0000000000000001", "abcdef.0000000000000002"])
    monkeypatch.setattr(node, "post", lambda *_: {**ANSWER, "token": next(tokens)})
    monkeypatch.setattr(node.machine, "provider_id", lambda: "aws:///us-east-1a/i-0123")
    config = tmp_path / "node.json"
    config.write_text(node_files[node_boot.CONFIG_PATH]["content"])
    node.CONFIG = str(config)
    node.main([])
    node.main([])
    assert "0000000000000002" in (tmp_path / "join.yaml").read_text()


def test_the_node_waits_as_long_as_it_is_told(node: Any) -> None:
    waits: list[float] = []
    answers: list[Any] = [refusal(409, {"Retry-After": "7"}), refusal(503, {}), OSError("no"), ANSWER]

    def step() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert node.accepted(step, pause=waits.append) == ANSWER
    assert waits == [7, 3, 4]
    answers[:] = [refusal(409, {"Retry-After": "100000"}), refusal(409, {"Retry-After": "soon"})]
    with pytest.raises(urllib.error.HTTPError):
        node.accepted(step, attempts=2, pause=waits.append)
    assert waits[3:] == [60]


@pytest.mark.parametrize(
    ("key", "may"),
    [
        ("team", True),
        ("karpenter.sh/capacity-type", True),
        ("karpenter.k8s.aws/instance-family", True),
        ("kubernetes.io/arch", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/instance-type", True),
        ("own.node.kubernetes.io/x", True),
        ("node-role.kubernetes.io/worker", False),
        ("kubernetes.io/role", False),
        ("app.k8s.io/x", False),
    ],
)
def test_labels_that_a_kubelet_would_refuse_are_left_out(node: Any, key: str, may: bool) -> None:
    assert node.may_label(key) is may


def test_a_kubelet_waits_for_the_controller_of_its_own_cloud_alone(node: Any) -> None:
    def flags(provider: str, external: bool) -> dict[str, str]:
        registration = node.kubeadm(ANSWER, provider, external)["nodeRegistration"]
        return {flag["name"]: flag["value"] for flag in registration["kubeletExtraArgs"]}

    assert flags("aws:///us-east-1a/i-0123", True)["cloud-provider"] == "external"
    assert "cloud-provider" not in flags("aws:///us-east-1a/i-0123", False)
    assert "cloud-provider" not in flags("", True), "no controller would ever see it"
    document = yaml.safe_load(
        gzip.decompress(node_boot.first_boot(**NODE_VALUES, cloud_provider="external").cloud_config())
    )
    written = next(file for file in document["write_files"] if file["path"] == node_boot.CONFIG_PATH)
    assert json.loads(written["content"])["cloud_provider"] == "external"


def test_an_answer_may_leave_out_what_is_empty(node: Any) -> None:
    least = {name: ANSWER[name] for name in ("endpoint", "token", "ca_hash", "node_name")}
    registration = node.kubeadm(least, "")["nodeRegistration"]
    assert (registration["taints"], registration["kubeletExtraArgs"]) == ([], [])
    more = {**least, "labels": {"a": "b"}, "kubelet_args": {"node-labels": "c=d"}}
    flags = node.kubeadm(more, "")["nodeRegistration"]["kubeletExtraArgs"]
    assert flags == [{"name": "node-labels", "value": "a=b,c=d"}]


def test_script_unpacks_what_the_document_writes(tmp_path: Path) -> None:
    boot = node_boot.first_boot(**NODE_VALUES, claim_id=CLAIM, token="7" * 64)
    document = yaml.safe_load(gzip.decompress(boot.cloud_config()))
    script = boot.script().replace("--directory /", f"--directory {tmp_path}")
    unpacking, commands = script.split("\nEND_OF_FILES\n")
    subprocess.run(["bash", "-c", f"{unpacking}\nEND_OF_FILES\n"], check=True)
    for file in document["write_files"]:
        written = tmp_path / file["path"].lstrip("/")
        assert written.read_text() == file["content"]
        assert f"{written.stat().st_mode & 0o777:04o}" == file["permissions"]
    assert commands.split("\n")[:-1] == [" ".join(command) for command in document["runcmd"]]


def test_script_is_the_same_for_the_same_values_and_small() -> None:
    boot = node_boot.first_boot(**NODE_VALUES)
    assert boot.script() == node_boot.first_boot(**NODE_VALUES).script()
    assert len(boot.script()) < 16 * 1024
    with pytest.raises(ValueError, match="more than"):
        node_boot.first_boot(**{**NODE_VALUES, "api_url": first_boot.noise(16_384)}).script()
