"""A control plane without keys of its cloud proves its identity by the token in its data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from local.machines.programs import script_files
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.machines import BootstrapProof, ControlPlaneBootReport
from stockyard.machines import control_plane
from tests.unit.machines.first_boot import VALUES

TOKEN, RENEWAL = "e" * 64, "f" * 64
PUBLIC, PRIVATE, INTERNAL = "198.51.100.7", "10.160.0.5", "demo-0123456789ab.stockyard.internal"


@pytest.fixture
def token_config(tmp_path: Path) -> dict[str, Any]:
    """Configuration of a machine with a token, as its start script unpacks it."""
    text = control_plane.ControlPlaneMachine(**{**VALUES, "volume_tags": None, "token": TOKEN}).first_boot().script()
    assert TOKEN not in text, "it is packed with everything else"
    files = script_files(text)
    return dict(json.loads(files[control_plane.CONFIG_PATH]))


def answering(machine: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, str], Any]]:
    """The requests of the machine to Stockyard and to the realm. There is no service of metadata."""
    requests: list[tuple[str, str, dict[str, str], Any]] = []
    client = {
        "client_id": "c",
        "client_secret": "s3cret",
        "token_url": "https://id.example.test/token",
        "endpoint": f"https://{PUBLIC}:6443",
        "machine_endpoint": f"https://{INTERNAL}:6443",
        "certificate_names": [PRIVATE],
        "renewal_token": RENEWAL,
    }
    cluster = "/v1/clusters/clu_01KDVJXQ80000000000000000A"
    answers = {
        f"{cluster}/bootstrap": json.dumps(client),
        f"{cluster}/ready": "{}",
        f"{cluster}/boot-reports": "{}",
        "/token": json.dumps({"access_token": "jwt"}),
    }

    def fetch(method: str, url: str, headers: Any = None, body: bytes | None = None) -> str:
        requests.append((method, url, headers or {}, body or b""))
        return answers[urlsplit(url).path]

    monkeypatch.setattr(machine, "fetch", fetch)
    return requests


def test_a_machine_with_a_token_proves_itself_by_it_and_asks_no_metadata(
    machine: Any, token_config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests = answering(machine, monkeypatch)
    machine.bootstrap(token_config)
    ((method, url, _, body),) = requests
    assert (method, url) == ("POST", "https://api.example.test/v1/clusters/clu_01KDVJXQ80000000000000000A/bootstrap")
    assert read(BootstrapProof, json.loads(body)).proof() == {"token": TOKEN}
    assert (tmp_path / "state" / "endpoint").read_text() == f"{INTERNAL}\n"
    assert (tmp_path / "state" / "client.json").stat().st_mode & 0o777 == 0o600
    machine.bootstrap(token_config)
    assert len(requests) == 1, "a second start must not ask again"


def test_its_certificate_names_the_private_name_and_both_addresses(
    machine: Any, token_config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answering(machine, monkeypatch)
    machine.bootstrap(token_config)
    text = (tmp_path / "state" / "kubeadm.yaml").read_text()
    documents = {document["kind"]: document for document in yaml.safe_load_all(text)}
    assert documents["ClusterConfiguration"]["controlPlaneEndpoint"] == f"{INTERNAL}:6443"
    assert documents["ClusterConfiguration"]["apiServer"]["certSANs"] == [INTERNAL, PUBLIC, PRIVATE]
    assert documents["InitConfiguration"]["nodeRegistration"]["kubeletExtraArgs"] == [], "no cloud knows it by an id"
    for secret in (TOKEN, RENEWAL, "s3cret"):
        assert secret not in text


def test_it_reports_the_public_endpoint_with_the_token_for_later(
    machine: Any, token_config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests = answering(machine, monkeypatch)
    machine.bootstrap(token_config)
    (tmp_path / "kubernetes" / "admin.conf").write_text(f"server: https://{INTERNAL}:6443\nkind: Config\n")
    (tmp_path / "kubernetes" / "pki" / "ca.crt").write_text("PEM")
    machine.ready(token_config)
    _, url, headers, body = requests[-1]
    assert url.endswith("/ready")
    assert headers["Authorization"] == "Bearer jwt"
    assert json.loads(body) == {
        "kubeconfig": f"server: https://{PUBLIC}:6443\nkind: Config\n",
        "certificate_authority": "UEVN",
        "proof": {"token": RENEWAL},
    }
    assert TOKEN not in body.decode(), "that one has done its work"


def test_its_steps_are_told_with_its_token(
    machine: Any, token_config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = answering(machine, monkeypatch)
    machine.say(token_config, machine.boot_step(["packages"]))
    ((_, url, _, body),) = requests
    assert url.endswith("/boot-reports")
    report = read(ControlPlaneBootReport, json.loads(body))
    assert (report.proof(), report.step) == ({"token": TOKEN}, "packages")


def test_what_such_a_machine_is_told_is_for_root_alone() -> None:
    first_boot_of_both = [
        control_plane.ControlPlaneMachine(**{**VALUES, "token": token}).first_boot().files[control_plane.CONFIG_PATH]
        for token in (None, TOKEN)
    ]
    assert [file.mode for file in first_boot_of_both] == ["0644", "0600"]
    assert TOKEN not in repr(control_plane.ControlPlaneMachine(**{**VALUES, "token": TOKEN}).first_boot())
