"""Handover from a control plane to the agent, and the cluster's first administrator."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from agent import manifest
from agent.roles import NAMESPACE
from stockyard.machines import control_plane
from tests.unit.machines.first_boot import KEYS


def test_the_agents_manifest_has_its_secret_right_after_the_namespace(
    machine: Any, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = json.loads(files[control_plane.CONFIG_PATH]["content"])
    client = {"client_id": "c", "client_secret": "s3cret", "token_url": "https://id.example.test/token"}
    (tmp_path / "state" / "client.json").write_text(json.dumps(client))
    url = "https://api.example.test/v1/clusters/clu_01KDVJXQ80000000000000000A/agent"
    objects = manifest.documents(manifest.Settings("https://api.example.test", "clu_1", client["token_url"]))
    requests: list[tuple[str, str, dict[str, str], bytes]] = []

    def fetch(method: str, address: str, headers: Any = None, body: bytes | None = None) -> str:
        requests.append((method, address, headers or {}, body or b""))
        answers = {
            client["token_url"]: {"access_token": f"jwt-{len(requests)}"},
            url: {"apiVersion": "v1", "kind": "List", "items": objects},
        }
        return json.dumps(answers[address])

    monkeypatch.setattr(machine, "fetch", fetch)
    machine.agent(config)
    assert requests[0][3] == b"grant_type=client_credentials&client_id=c&client_secret=s3cret"
    assert requests[1] == ("GET", url, {"Authorization": "Bearer jwt-1"}, b"")
    path = tmp_path / "state" / "agent.json"
    assert path.stat().st_mode & 0o777 == 0o600
    document = json.loads(path.read_text())
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    namespace, secret, *remaining_objects = document["items"]
    assert [namespace, *remaining_objects] == json.loads(json.dumps(objects))
    assert secret["metadata"] == {"name": manifest.SECRET, "namespace": NAMESPACE}
    assert {name: b64decode(text).decode() for name, text in secret["data"].items()} == {
        "client_id": "c",
        "client_secret": "s3cret",
    }
    first = path.read_text()
    machine.agent(config)
    assert path.read_text() == first, "a second start writes the same"


def test_the_agent_is_applied_before_the_report_and_its_file_goes(files: dict[str, Any]) -> None:
    lines = files[control_plane.START_PATH]["content"].splitlines()
    options = "--server-side --force-conflicts --field-manager=stockyard-agent"
    apply = f"again kubectl apply {options} -f /etc/stockyard/agent.json"
    expected_lines = [
        '    kubeadm init --config /etc/stockyard/kubeadm.yaml "${options[@]}"',
        'again kubectl apply -f "$manifests"/flannel-io/flannel/*/Documentation/kube-flannel.yml',
        'python3 "$program" agent',
        apply,
        "rm -f /etc/stockyard/agent.json",
        'python3 "$program" ready',
    ]
    indexes = [lines.index(line) for line in expected_lines]
    assert indexes == sorted(indexes)


def test_nobody_becomes_administrator_when_no_person_asked(
    machine: Any, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = {**json.loads(files[control_plane.CONFIG_PATH]["content"]), "creator": ""}
    monkeypatch.setattr(machine, "instance", lambda: ("us-east-1", KEYS))
    monkeypatch.setattr(machine, "provider_id", lambda: "aws:///us-east-1a/i-0123")
    monkeypatch.setattr(machine, "fetch", lambda *_: json.dumps({"endpoint": "https://nlb.example.test:6443"}))
    machine.bootstrap(config)
    assert (tmp_path / "state" / "kubeadm.yaml").exists()
    assert not (tmp_path / "state" / "administrator.json").exists()
    assert "kubectl apply -f /etc/stockyard/administrator.json" in files[control_plane.START_PATH]["content"]


@pytest.mark.parametrize(
    ("actor", "name"),
    [
        ("user:ann", "ann"),
        ("user:ann@example.com", "ann@example.com"),
        ("user:a?b", None),
        ("user:", None),
        ("user:" + "x" * 129, None),
        ("client:pipeline", None),
        ("account:222222222222", None),
        ("", None),
    ],
)
def test_only_a_persons_exact_name_is_handed_on(actor: str, name: str | None) -> None:
    assert control_plane.person(actor) == name
