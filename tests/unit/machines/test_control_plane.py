"""The data for a machine, and its programs against Stockyard's own routes."""

from __future__ import annotations

import ast
import gzip
import json
from datetime import UTC, datetime
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.machines import ControlPlaneBootReport
from stockyard.domain.values.ids import login_client
from stockyard.kubernetes_versions import TESTED
from stockyard.machines import control_plane, manifests, on_machine
from tests.unit.machines import first_boot
from tests.unit.machines.first_boot import KEYS, VALUES

IMPORTS = ast.Import | ast.ImportFrom

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_the_document_is_the_same_each_time(rendered: str) -> None:
    assert rendered.startswith("#cloud-config\n")
    assert (
        control_plane.ControlPlaneMachine(**VALUES).first_boot().cloud_config()
        == control_plane.ControlPlaneMachine(**VALUES).first_boot().cloud_config()
    )


def test_the_document_with_the_longest_values_fits() -> None:
    """Names of hosts have 253 characters, names of clients 46, of people 128; random ones compress worst."""
    values = {
        "api_url": f"https://{first_boot.noise(253)}",
        "cluster_id": f"clu_{first_boot.noise(26)}",
        "client_id": first_boot.noise(46),
        "kubernetes_version": "1.34",
        "issuer": f"https://{first_boot.noise(253)}/realms/{first_boot.noise(255)}",
        "tenant": first_boot.noise(63),
        "creator": first_boot.noise(128),
        "volume_tags": {"stockyard:installation": first_boot.noise(26), "stockyard:tenant": first_boot.noise(63)},
    }
    assert (
        len(control_plane.ControlPlaneMachine(**values).first_boot().cloud_config())
        <= control_plane.LIMIT
        == 14 * 1024
        < 16 * 1024
    )


def test_a_document_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="user data is"):
        control_plane.ControlPlaneMachine(**{**VALUES, "api_url": first_boot.noise(16_384)}).first_boot().cloud_config()


def test_programs_arrive_and_values_travel_as_data(files: dict[str, Any]) -> None:
    """Only what is for readers is taken out of the programs."""
    programs = Path(on_machine.__file__).parent
    names = [f"stockyard_machine{part}.py" for part in ("", "_member", "_first")]
    parts = [ast.parse((programs / name).read_text()) for name in names]
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
        for name in ("returns", "annotation") if isinstance(node, ast.FunctionDef | ast.arg) else ():
            setattr(node, name, None)
    source = [ast.dump(node) for part in parts for node in part.body if not isinstance(node, IMPORTS)]
    joined = ast.parse(files[control_plane.SCRIPT_PATH]["content"]).body
    assert [ast.dump(node) for node in joined if not isinstance(node, IMPORTS)] == source
    assert not [node for node in joined if isinstance(node, ast.ImportFrom) and "stockyard" in str(node.module)]
    script = "\n".join((programs / name).read_text() for name in ("begin.sh", "control_plane.sh")).splitlines()
    commands = [line for line in script if line.startswith("#!") or not line.strip().startswith("#")]
    assert files[control_plane.START_PATH]["content"].splitlines() == commands
    for path in (control_plane.SCRIPT_PATH, control_plane.START_PATH):
        assert files[path]["permissions"] == "0755"
    config = json.loads(files[control_plane.CONFIG_PATH]["content"])
    assert config["cluster_id"] == "clu_01KDVJXQ80000000000000000A"
    assert config["api_url"] == "https://api.example.test"
    assert set(config) == {
        "api_url", "client_id", "cloud_provider", "cluster_id", "creator", "issuer",
        "kubernetes_version", "pod_cidr", "tenant",
    }  # fmt: skip


def test_every_file_that_a_command_names_is_written(rendered: str, files: dict[str, Any]) -> None:
    unit = files["/etc/systemd/system/stockyard-start.service"]["content"]
    assert f"ExecStart={control_plane.START_PATH} 1.34 1.34.4 1.7 https://pkgs.k8s.io - - {manifests.BASE}\n" in unit
    start = files[control_plane.START_PATH]["content"]
    assert f"program={control_plane.SCRIPT_PATH}\n" in start
    assert control_plane.RENEW_PATH in files
    commands = yaml.safe_load(rendered)["runcmd"]
    assert ["systemctl", "start", "--no-block", "stockyard-start.service"] in commands


@pytest.mark.parametrize("path", [control_plane.START_PATH, control_plane.RENEW_PATH, control_plane.SNAPSHOT_PATH])
def test_shellcheck_accepts_the_scripts(files: dict[str, Any], tmp_path: Path, path: str) -> None:
    first_boot.check_script(files[path]["content"], tmp_path)


def test_without_controllers_only_the_network_is_fetched_and_no_kubelet_waits(machine: Any) -> None:
    text = gzip.decompress(
        control_plane.ControlPlaneMachine(**{**VALUES, "volume_tags": None}).first_boot().cloud_config()
    ).decode()
    files = {file["path"]: file["content"] for file in yaml.safe_load(text)["write_files"]}
    assert [line.split("/")[0].split()[1] for line in files[f"{manifests.FOLDER}/sums"].splitlines()] == ["flannel-io"]
    assert f"{manifests.FOLDER}/kustomization.yaml" not in files
    config = json.loads(files[control_plane.CONFIG_PATH])
    (first, *_) = machine.kubeadm(config, {"endpoint": "https://nlb.example.test:6443"}, "aws:///us-east-1a/i-0123")
    assert [flag["name"] for flag in first["nodeRegistration"]["kubeletExtraArgs"]] == ["provider-id"]


def test_nodes_with_gpus_get_the_device_plugin_and_no_others() -> None:
    values = {**VALUES, "volume_tags": None, "gpu_label": "example.com/gpu-model"}
    text = gzip.decompress(control_plane.ControlPlaneMachine(**values).first_boot().cloud_config()).decode()
    files = {file["path"]: file["content"] for file in yaml.safe_load(text)["write_files"]}
    document = json.loads(files[f"{manifests.FOLDER}/kustomization.yaml"])
    (resource,) = document["resources"]
    sums = files[f"{manifests.FOLDER}/sums"].splitlines()
    assert [line for line in sums if line.endswith(f"  {resource}")] == sums[1:]
    (patch,) = document["patches"]
    (operation,) = json.loads(patch["patch"])
    terms = operation["value"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": "example.com/gpu-model", "operator": "Exists"}]}]


def test_controllers_are_told_their_cluster_and_the_tags_of_volumes(files: dict[str, Any]) -> None:
    document = json.loads(files[f"{manifests.FOLDER}/kustomization.yaml"]["content"])
    patches = json.dumps(document["patches"])
    for argument in (
        f"--cluster-name={VALUES['client_id']}",
        f"--k8s-tag-cluster-id={VALUES['client_id']}",
        "--extra-tags=stockyard:installation=inst-1,stockyard:tenant=acme",
    ):
        assert argument in patches
    assert document["images"] == [{"name": manifests.CLOUD_IMAGE, "newTag": "v1.34.3"}]
    assert set(manifests.CLOUD_IMAGE_TAGS) == set(TESTED)
    sums = files[f"{manifests.FOLDER}/sums"]["content"].splitlines()
    assert len(sums) == len(set(sums)) >= 25
    for folder in document["resources"][:2]:
        assert any(line.endswith(f"  {folder}/kustomization.yaml") for line in sums)


def test_a_timer_renews_certificates_once_the_machine_has_reported(files: dict[str, Any]) -> None:
    service = files["/etc/systemd/system/stockyard-renew.service"]["content"]
    timer = files["/etc/systemd/system/stockyard-renew.timer"]["content"]
    assert f"ExecStart={control_plane.RENEW_PATH}" in service
    assert "ConditionPathExists=/var/lib/stockyard/reported" in service
    assert "OnCalendar=weekly" in timer
    assert "Persistent=true" in timer
    last_line = files[control_plane.START_PATH]["content"].splitlines()[-1]
    assert last_line == "(cd /etc/systemd/system && systemctl enable --now stockyard-*.timer)"


def test_a_timer_asks_whether_a_snapshot_is_due_where_there_may_be_any(files: dict[str, Any]) -> None:
    unit = "/etc/systemd/system/stockyard-backup"
    assert f"ExecStart=/usr/bin/python3 {control_plane.SCRIPT_PATH} backup\n" in files[f"{unit}.service"]["content"]
    assert "ConditionPathExists=/var/lib/stockyard/reported" in files[f"{unit}.service"]["content"]
    assert "OnCalendar=*:0/15" in files[f"{unit}.timer"]["content"]
    without = control_plane.ControlPlaneMachine(**{**VALUES, "volume_tags": None}).first_boot()
    assert f"{unit}.timer" not in without.files
    member = control_plane.ControlPlaneMachine(**VALUES, joins=True).first_boot()
    assert f"ExecStart=/usr/bin/python3 {control_plane.MEMBER_PATH} backup" in member.files[f"{unit}.service"].text


def test_nothing_begins_an_empty_etcd_beside_the_volume(machine: Any, files: dict[str, Any]) -> None:
    """The kubelet and the snapshots need the mount; etcd's data are below it."""
    for unit in ("kubelet.service.d/20-volume.conf", "stockyard-snapshot.service"):
        assert "RequiresMountsFor=/var/lib/control-plane\n" in files[f"/etc/systemd/system/{unit}"]["content"]
    assert machine.DATA.startswith("/var/lib/control-plane/")


def test_a_machine_with_the_keys_of_another_asks_for_none(
    machine: Any, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The volume brings the client's credentials and the key of Secrets, which stays what it is."""
    config = json.loads(files[control_plane.CONFIG_PATH]["content"])
    state = tmp_path / "state"
    (state / "api").mkdir()
    machine.api_server(config)
    old = json.loads((state / "api" / "encryption.yaml").read_text())
    monkeypatch.setattr(machine, "post", lambda *_: json.dumps({"certificate_key": "ab" * 32}))
    monkeypatch.setattr(machine, "prove", lambda _: {})
    (state / "client.json").write_text(json.dumps({"endpoint": "https://nlb.example.test:6443"}))
    monkeypatch.setattr(machine, "provider_id", lambda: "aws:///us-east-1a/i-0456")
    machine.bootstrap(config)
    keys = json.loads((state / "api" / "encryption.yaml").read_text())["resources"][0]["providers"][0]["secretbox"][
        "keys"
    ]
    assert [key["name"] for key in keys] == ["shared", "first"], "what the old one has sealed can still be read"
    assert keys[1:] == old["resources"][0]["providers"][0]["secretbox"]["keys"]
    documents = [json.loads(text) for text in (state / "kubeadm.yaml").read_text().split("\n---\n")]
    registration = documents[0]["nodeRegistration"]
    assert {"name": "provider-id", "value": "aws:///us-east-1a/i-0456"} in registration["kubeletExtraArgs"]
    assert documents[1]["etcd"] == {"local": {"dataDir": "/var/lib/control-plane/etcd"}}


def test_a_step_is_told_and_a_failed_one_with_its_last_lines(
    machine: Any, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    posts: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(machine, "prove", lambda _: {"method": "GET", "url": "https://sts", "headers": {}})
    monkeypatch.setattr(machine, "post", lambda _, action, body: posts.append((action, body)))
    machine.CONFIG = str(tmp_path / "machine.json")
    (tmp_path / "machine.json").write_text(files[control_plane.CONFIG_PATH]["content"])
    (tmp_path / "log").write_text("x" * 5000 + "\nthe end\n")
    machine.main(["say", "packages"])
    machine.main(["say", "init", "1", str(tmp_path / "log")])
    assert [action for action, _ in posts] == ["boot-reports"] * 2
    beginning, failure = (read(ControlPlaneBootReport, body) for _, body in posts)
    assert (beginning.step, beginning.exit, beginning.lines) == ("packages", None, "")
    assert (failure.step, failure.exit, len(failure.lines)) == ("init", 1, 4000)
    assert failure.lines.endswith("the end\n")


def test_cloud_init_accepts_the_document(rendered: str, tmp_path: Path) -> None:
    first_boot.check_document(rendered, tmp_path)


def test_the_signature_is_botocores(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = machine.presign(KEYS, "eu-west-1", "api.example.test", MOMENT)
    url = "https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest("GET", url, headers={"x-stockyard-host": "api.example.test"})
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: MOMENT.replace(tzinfo=None))
    credentials = Credentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"])
    SigV4QueryAuth(credentials, "sts", "eu-west-1", expires=300).add_auth(request)
    machine_query, botocore_query = (parse_qs(urlsplit(address).query) for address in (proof["url"], request.url))
    assert machine_query == botocore_query
    assert len(machine_query["X-Amz-Signature"][0]) == 64
    assert machine_query["X-Amz-SignedHeaders"] == ["host;x-stockyard-host"]
    assert proof["headers"] == {"x-stockyard-host": "api.example.test"}


def test_the_machine_proves_itself_then_reports(
    machine: Any, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = json.loads(files[control_plane.CONFIG_PATH]["content"])
    requests: list[tuple[str, str, dict[str, str], bytes]] = []
    client = {
        "client_id": "c",
        "client_secret": "s3cret",
        "token_url": "https://id.example.test/token",
        "endpoint": "https://nlb.example.test:6443",
    }
    answers = {
        "/latest/api/token": "imds-token",
        "/latest/meta-data/placement/region": "us-east-1",
        "/latest/meta-data/placement/availability-zone": "us-east-1a",
        "/latest/meta-data/instance-id": "i-0123",
        "/latest/meta-data/iam/security-credentials/": "node-role",
        "/latest/meta-data/iam/security-credentials/node-role": json.dumps(KEYS),
        "/v1/clusters/clu_01KDVJXQ80000000000000000A/bootstrap": json.dumps(client),
        "/token": json.dumps({"access_token": "jwt"}),
        "/v1/clusters/clu_01KDVJXQ80000000000000000A/ready": "{}",
    }

    def fetch(method: str, url: str, headers: Any = None, body: bytes | None = None) -> str:
        requests.append((method, url, headers or {}, body or b""))
        return answers[urlsplit(url).path]

    monkeypatch.setattr(machine, "fetch", fetch)
    machine.bootstrap(config)
    kubeadm = (tmp_path / "state" / "kubeadm.yaml").read_text()
    documents = {d["kind"]: d for d in yaml.safe_load_all(kubeadm)}
    settings = documents["ClusterConfiguration"]
    flags = {flag["name"]: flag["value"] for flag in settings["apiServer"]["extraArgs"]}
    assert settings["controlPlaneEndpoint"] == "nlb.example.test:6443"
    assert settings["kubernetesVersion"] == "v1.34.4"
    api = tmp_path / "state" / "api"
    assert {flags[name] for name in ("authentication-config", "encryption-provider-config", "audit-policy-file")} == {
        f"/etc/stockyard/api/{path.name}" for path in api.iterdir()
    }
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in api.iterdir())
    mounted = {volume["mountPath"] for volume in settings["apiServer"]["extraVolumes"]}
    assert mounted == {"/etc/stockyard/api", "/var/log/kubernetes/audit"}
    (door,) = json.loads((api / "authentication.yaml").read_text())["jwt"]
    assert door["issuer"] == {
        "url": "https://id.example.test/realms/vantage",
        "audiences": [login_client(VALUES["client_id"])],
    }
    assert '"acme" in claims.organization' in door["claimValidationRules"][0]["expression"]
    registration = documents["InitConfiguration"]["nodeRegistration"]
    assert registration["kubeletExtraArgs"] == [
        {"name": "provider-id", "value": "aws:///us-east-1a/i-0123"},
        {"name": "cloud-provider", "value": "external"},
    ]
    key = (api / "encryption.yaml").read_text()
    machine.api_server(config)
    assert (api / "encryption.yaml").read_text() == key, "what was written with the key needs it"
    pods = IPv4Network(settings["networking"]["podSubnet"])
    mask = next(
        argument["value"]
        for argument in settings["controllerManager"]["extraArgs"]
        if argument["name"] == "node-cidr-mask-size"
    )
    nodes = list(pods.subnets(new_prefix=int(mask)))
    assert (len(nodes), nodes[0].num_addresses > 110) == (512, True), "each node has room for a kubelet's pods"
    assert "s3cret" not in kubeadm
    assert (tmp_path / "state" / "client.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state" / "endpoint").read_text() == "nlb.example.test\n"
    binding = json.loads((tmp_path / "state" / "administrator.json").read_text())
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert [subject["name"] for subject in binding["subjects"]] == [
        door["claimMappings"]["username"]["prefix"] + "ann@example.com"
    ]
    calls = len(requests)
    machine.bootstrap(config)
    assert len(requests) == calls, "a second start must not ask again"
    (tmp_path / "kubernetes" / "admin.conf").write_text("kind: Config")
    (tmp_path / "kubernetes" / "pki" / "ca.crt").write_text("PEM")
    machine.ready(config)
    assert requests[-2][3] == b"grant_type=client_credentials&client_id=c&client_secret=s3cret"
    assert requests[-1][2]["Authorization"] == "Bearer jwt"
    report = json.loads(requests[-1][3])
    proof = report.pop("proof")
    assert report == {"kubeconfig": "kind: Config", "certificate_authority": "UEVN"}
    assert (proof["method"], proof["headers"]) == ("GET", {"x-stockyard-host": "api.example.test"})


def test_the_machine_is_patient_and_then_tells(machine: Any) -> None:
    waits: list[float] = []
    answers: list[Any] = [OSError("no"), ValueError("no"), "yes"]

    def step() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert machine.patiently(step, pause=waits.append) == "yes"
    assert waits == [2, 3]
    answers[:] = [OSError("no"), OSError("for ever")]
    with pytest.raises(OSError, match="for ever"):
        machine.patiently(step, attempts=2, pause=waits.append)
