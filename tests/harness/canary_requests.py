"""The requests of the canary test: what it sends with a canary in each secret input, and what is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from local.aws.accounts import REGION
from local.machines.programs import MACHINE_CONFIG, VAULT_CONFIG, script_files
from local.machines.virtual_machines import START_SCRIPT
from stockyard.domain.clusters.join_tokens import certificate_key, renewal_token
from stockyard.machines.on_machine.stockyard_machine_member import encryption
from tests.harness import outputs
from tests.harness.canaries import MARKS, Output, canary, hits

if TYPE_CHECKING:
    from local.testing.serving import Answer, Served

SECRET_INPUTS = {
    "ClusterCreate.secret": "given client secret",
    "ReadyReport.kubeconfig": "kubeconfig",
    "BootstrapProof.token": "refused token of a control plane",
    "ControlPlaneBootReport.token": "refused token of a control plane's boot",
    "BootstrapRequest.token": "refused token of a control plane",
    "JoinRequest.token": "refused token of a machine",
    "NodeBootReport.token": "refused token of a boot",
    "MemberReport.token": "refused token of a member",
    "MemberReport.kubeconfig": "refused kubeconfig of a member",
    "SnapshotReport.token": "refused token of a member that asks for a snapshot",
    "AwsAttributes.secret_access_key": "refused access key of an account",
    "AttributesPatch.secret_access_key": "refused other access key of an account",
    "CudoAttributes.api_key": "API key of an account",
    "CudoAttributes.vault_secret_id": "Vault's secret id of an account",
    "CudoAttributesPatch.api_key": "exchanged API key of an account",
    "CudoAttributesPatch.vault_secret_id": "refused secret id of an account",
    "BcmAttributes.client_key": "refused key of a head node's client",
    "BcmAttributesPatch.client_key": "refused other key of a head node's client",
    "KubernetesAttributes.token": "token of a Kubernetes host",
    "KubernetesAttributes.client_key": "refused key of a host, in base64",
    "KubernetesAttributesPatch.token": "exchanged token of a Kubernetes host",
    "KubernetesAttributesPatch.client_key": "refused other key of a host, in base64",
}
"""Field that the API's document marks as secret -> name of the canary that is sent in it."""


@dataclass
class CanaryRun:
    """The canaries, and all outputs of the product that must not contain one of them."""

    canaries: dict[str, str] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    disk_key_digest: str = ""
    """SHA-256 of the key of the encrypted disk."""

    def new_canary(self, name: str) -> str:
        """A new canary."""
        self.canaries[name] = canary()
        return self.canaries[name]


def refusals(
    call: Callable[..., Answer], canary_run: CanaryRun, body: Callable[..., dict[str, Any]], cluster_id: str
) -> None:
    refused, cluster_path = canary_run.new_canary("refused secret"), f"/v1/clusters/{cluster_id}"
    assert call("POST", "/v1/clusters", body(name="canary-long", secret=refused * 2)).status == 422
    assert call("POST", "/v1/clusters", body(name="canary-list", secret=[refused])).status == 422
    assert call("POST", "/v1/clusters", body(name="canary-extra", secrets=refused)).status == 422
    assert call("POST", "/v1/clusters", body(name="canary", secret=refused)).status == 409
    conflict = call("POST", "/v1/clusters", body(name="canary", secret=refused), headers={"Idempotency-Key": "canary"})
    assert conflict.status == 422
    patch = call("PATCH", cluster_path, {"secret": refused}, headers={"If-Match": '"1"'})
    assert patch.status == 422
    report = {"kubeconfig": [refused], "certificate_authority": refused}
    assert call("POST", f"{cluster_path}/ready", report).status in (403, 404, 422)
    assert call("GET", cluster_path, token=canary_run.new_canary("refused token")).status == 401
    signature = canary_run.new_canary("refused proof")
    url = f"https://sts.{REGION}.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Signature={signature[: -len(MARKS)]}"
    proof = {"method": "GET", "url": url, "headers": {"X-Amz-Security-Token": signature}}
    assert call("POST", f"{cluster_path}/bootstrap", proof).status in (401, 403, 404, 422)
    token = 2 * canary_run.new_canary("refused token of a control plane")
    assert call("POST", f"{cluster_path}/bootstrap", {"token": token}).status == 401
    step = {"token": 2 * canary_run.new_canary("refused token of a control plane's boot"), "step": "init"}
    assert call("POST", f"{cluster_path}/boot-reports", step).status == 401
    asks = {"token": 2 * canary_run.new_canary("refused token of a member that asks for a snapshot")}
    assert call("POST", f"{cluster_path}/snapshot-reports", asks).status == 401
    join = {"cluster_id": cluster_id, "token": 2 * canary_run.new_canary("refused token of a machine")}
    assert call("POST", "/v1/node-claims/ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV/join", join).status == 401
    member = {
        "cluster_id": cluster_id,
        "token": 2 * canary_run.new_canary("refused token of a member"),
        "state": "joined",
    }
    assert call("POST", "/v1/node-claims/ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV/member-reports", member).status == 401
    member |= {"kubeconfig": canary_run.new_canary("refused kubeconfig of a member"), "certificate_authority": "Q0E="}
    assert call("POST", "/v1/node-claims/ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV/member-reports", member).status == 422
    step = {"cluster_id": cluster_id, "token": 2 * canary_run.new_canary("refused token of a boot"), "step": "join"}
    assert call("POST", "/v1/node-claims/ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV/boot-reports", step).status == 401


def cloud_account(call: Callable[..., Answer], canary_run: CanaryRun) -> None:
    """An account with secrets is registered, fails its verification, gets another key and goes."""
    attributes = {
        "project_id": "acme-project",
        "data_center_id": "us-dallas-1",
        "api_key": canary_run.new_canary("API key of an account"),
        "vault_address": "https://vault.example.test",
        "vault_role_id": "role",
        "vault_secret_id": canary_run.new_canary("Vault's secret id of an account"),
    }
    document = {"provider": "cudo", "name": "gpus", "attributes": attributes}
    key = {"Idempotency-Key": "canary-account"}
    assert call("POST", "/v1/cloud-accounts?dry_run=true", document).status == 200
    account = call("POST", "/v1/cloud-accounts", document, headers=key)
    assert (account.status, account.body["secrets"]) == (201, ["api_key", "vault_secret_id"])
    assert call("POST", "/v1/cloud-accounts", document, headers=key).body == account.body
    path = f"/v1/cloud-accounts/{account.body['id']}"
    verified = call("POST", f"{path}/verify")
    assert (verified.status, verified.body["verification"]) == (200, "failed")
    exchanged = {"attributes": {"api_key": canary_run.new_canary("exchanged API key of an account")}}
    etag = {"If-Match": verified.headers["etag"]}
    plan = call("PATCH", f"{path}?dry_run=true", exchanged, headers=etag)
    change = {"pointer": "/attributes/api_key", "before": "(sealed)", "after": "(sealed anew)"}
    assert plan.status == 200, plan.text
    assert [{name: entry[name] for name in change} for entry in plan.body["plan"]["changes"]] == [change]
    assert call("PATCH", path, exchanged, headers=etag).status == 200
    refused = {"attributes": {"vault_secret_id": 40 * canary_run.new_canary("refused secret id of an account")}}
    assert call("PATCH", path, refused, headers=etag).status == 422
    assert call("POST", "/v1/cloud-accounts", {**document, "provider": "aws"}).status == 422
    assert call("DELETE", path).status == 202
    _access_key(call, canary_run)
    _kubernetes_host(call, canary_run)
    _head_node(call, canary_run)


def _access_key(call: Callable[..., Answer], canary_run: CanaryRun) -> None:
    """Send an access key, which this stage does not take: one is refused when an account is registered, and when one is
    changed."""
    secret = canary_run.new_canary("refused access key of an account")
    keys = {"user_arn": "arn:aws:iam::222222222222:user/ops", "access_key_id": "AKIAIOSFODNN7EXAMPLE"}
    document = {"provider": "aws", "name": "keys", "attributes": {**keys, "secret_access_key": secret}}
    assert call("POST", "/v1/cloud-accounts", document).status == 422
    changed = {"attributes": {"secret_access_key": canary_run.new_canary("refused other access key of an account")}}
    etag = {"If-Match": call("GET", "/v1/cloud-accounts/1").headers["etag"]}
    assert call("PATCH", "/v1/cloud-accounts/1", changed, headers=etag).status == 422


def _head_node(call: Callable[..., Answer], canary_run: CanaryRun) -> None:
    """Send keys of a head node's client that are none: beside a site, to which they belong, and in a change."""
    assert call("POST", "/v1/sites", {"name": "canary-room"}).status == 201
    document = {"provider": "bcm", "name": "head", "attributes": {"via": "canary-room"}}
    key = canary_run.new_canary("refused key of a head node's client")
    refused = {**document, "attributes": {"via": "canary-room", "client_key": key}}
    assert call("POST", "/v1/cloud-accounts", refused).status == 422
    account = call("POST", "/v1/cloud-accounts", document)
    assert account.status == 201, account.text
    path = f"/v1/cloud-accounts/{account.body['id']}"
    changed = {"attributes": {"client_key": canary_run.new_canary("refused other key of a head node's client")}}
    assert call("PATCH", path, changed, headers={"If-Match": account.headers["etag"]}).status == 422
    assert call("DELETE", path).status == 202


def _kubernetes_host(call: Callable[..., Answer], canary_run: CanaryRun) -> None:
    """A host's token and the key of a certificate: registered, verified at a host that is not there, exchanged."""
    pem = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n").decode()
    attributes = {"server": "https://host.example.test:6443", "certificate_authority": pem, "namespaces": ["machines"]}
    token = canary_run.new_canary("token of a Kubernetes host")
    document = {"provider": "kubernetes", "name": "host", "attributes": {**attributes, "token": token}}
    assert call("POST", "/v1/cloud-accounts?dry_run=true", document).status == 200
    account = call("POST", "/v1/cloud-accounts", document)
    assert (account.status, account.body["secrets"]) == (201, ["token"]), account.text
    path = f"/v1/cloud-accounts/{account.body['id']}"
    assert call("POST", f"{path}/verify").status in (200, 502)
    assert call("GET", f"{path}/template").body["kind"] == "List"
    etag = {"If-Match": call("GET", path).headers["etag"]}
    moved = {"server": "https://other.example.test", "token": None}
    assert call("PATCH", path, {"attributes": moved}, headers=etag).status == 422
    attributes["client_certificate"] = pem
    key, other_key = (_half_key(canary_run, name) for name in ("refused key of a host", "refused other key of a host"))
    wrong = {**document, "attributes": {**attributes, "client_key": key}}
    assert call("POST", "/v1/cloud-accounts", wrong).status == 422, "a key has an end"
    wrong = {"attributes": {"token": None, "client_certificate": pem, "client_key": other_key}}
    assert call("PATCH", path, wrong, headers=etag).status == 422
    exchanged = {"attributes": {"token": canary_run.new_canary("exchanged token of a Kubernetes host")}}
    assert call("PATCH", path, exchanged, headers=etag).status == 200
    assert call("DELETE", path).status == 202


def _half_key(canary_run: CanaryRun, name: str) -> str:
    """A private key without an end, in base64: two canaries."""
    text = f"-----BEGIN EC PRIVATE KEY-----\n{canary_run.new_canary(name)}"
    canary_run.canaries[f"{name}, in base64"] = encoded = base64.b64encode(text.encode()).decode()
    return encoded


def cluster_on_cudo(served: Served, call: Callable[..., Answer], canary_run: CanaryRun) -> dict[str, Any]:
    """Creates a cluster with an encrypted disk on Cudo, through an account with a key that works."""
    environment = served.environment
    canary_run.canaries["working API key of an account"] = environment["CUDO_API_KEY"]
    canary_run.canaries["Vault's working secret id"] = environment["VAULT_SECRET_ID"]
    attributes = {
        "project_id": environment["CUDO_PROJECT_ID"],
        "data_center_id": "us-dallas-1",
        "api_key": environment["CUDO_API_KEY"],
        **{f"vault_{name}": environment[f"VAULT_{name.upper()}"] for name in ("address", "role_id", "secret_id")},
    }
    account = call("POST", "/v1/cloud-accounts", {"provider": "cudo", "name": "working", "attributes": attributes})
    assert account.status == 201, account.text
    assert call("POST", f"/v1/cloud-accounts/{account.body['id']}/verify").body["verification"] == "verified"
    document = {
        "name": "canary-cudo",
        "description": "a cluster whose machine proves itself by a token",
        "cloud_account_id": int(account.body["id"]),
        "cluster_type": "k8s",
        "settings": {"control_plane_size": "sm"},
    }
    cluster = call("POST", "/v1/clusters", document)
    assert cluster.status == 202, cluster.text
    return dict(cluster.body)


def sealing_keys(canary_run: CanaryRun, clusters: dict[str, str]) -> None:
    """The keys of the clusters' authorities, and the keys of their Secrets, derived from the first."""
    for cloud, cluster_id in clusters.items():
        key = certificate_key(canary_run.canaries["key of machines' tokens"].encode(), cluster_id)
        canary_run.canaries[f"key of the authorities on {cloud}"] = key
        document = encryption(key, [])
        (provider, _) = document["resources"][0]["providers"]
        canary_run.canaries[f"key of Secrets on {cloud}"] = provider["secretbox"]["keys"][0]["secret"]


def searched_start_script(served: Served, canary_run: CanaryRun, cluster_id: str) -> None:
    """The machine's token and its token for one request to the Vault stand in its start script alone."""
    (script,) = [output for output in outputs.start_scripts(served) if cluster_id in output.text]
    assert hits(canary_run.canaries, [script]) == []
    files = script_files(served.home.joinpath("machines", script.name, START_SCRIPT).read_text(encoding="utf-8"))
    tokens, vault = (json.loads(files[path]) for path in (MACHINE_CONFIG, VAULT_CONFIG))
    own = {"token of a machine on Cudo": tokens["token"], "machine's token for the Vault": vault["wrapped_secret_id"]}
    canary_run.disk_key_digest = served.home.joinpath("machines", script.name, "disk").read_text(encoding="utf-8")
    elsewhere = [output for output in outputs.everywhere(served) if output.kind != "start script"]
    assert hits(own, [*elsewhere, *canary_run.outputs]) == []
    assert len(hits(own, [script])) == len(own), "the search looks into the script"
    canary_run.canaries |= own
    canary_run.canaries["later token of that machine"] = renewal_token(
        canary_run.canaries["key of machines' tokens"].encode(), cluster_id
    )
    for secret in own.values():
        script = Output(script.kind, script.name, script.text.replace(secret, ""))
    canary_run.outputs.append(script)
