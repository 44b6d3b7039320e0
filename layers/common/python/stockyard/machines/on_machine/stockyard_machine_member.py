"""The part of a control plane's machine: it stands below ``stockyard_machine`` in one file.

What it imports of this package stands above it there.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sys
import urllib.parse
from datetime import datetime, timezone
from typing import Any

from stockyard.machines.on_machine.stockyard_machine import (
    API_FOLDER,
    STATE,
    USER_PREFIX,
    fetch,
    instance,
    presign,
    save,
)

# What probes ask, and by what a machine that joins knows the cluster. Nothing else answers who shows no credentials.
ANONYMOUS = ["/livez", "/readyz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"]


def authentication(machine: dict[str, str]) -> dict[str, Any]:
    """Rules of authentication: people of the realm whose token is for the cluster's own login and names the cluster's
    tenant.

    Keycloak writes ``organization`` as a list of names or as a map by name; one name alone may be a text.
    """
    claim, tenant = "claims.organization", json.dumps(machine["tenant"])
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": [{"path": path} for path in ANONYMOUS]},
        "jwt": [
            {
                "issuer": {"url": machine["issuer"], "audiences": [machine["client_id"] + "-login"]},
                "claimValidationRules": [
                    {
                        "expression": f"has({claim}) && (type({claim}) == string ? "
                        f"{claim} == {tenant} : {tenant} in {claim})"
                    }
                ],
                "claimMappings": {
                    "username": {"claim": "preferred_username", "prefix": USER_PREFIX},
                    "groups": {"claim": "groups", "prefix": USER_PREFIX},
                },
            }
        ],
    }


def encryption(certificate_key: str, old: list[dict[str, str]]) -> dict[str, Any]:
    """Encryption of Secrets in etcd: with a key that all members of a control plane derive alike.

    ``old`` keys still open what they have sealed. A cluster without a certificate key has one of its own.
    """
    keys = []
    if certificate_key:
        derived = hmac.new(bytes.fromhex(certificate_key), b"secrets", hashlib.sha256).digest()
        keys.append({"name": "shared", "secret": base64.b64encode(derived).decode()})
    keys += [key for key in old if key not in keys]
    if not keys:
        keys.append({"name": "first", "secret": base64.b64encode(os.urandom(32)).decode()})
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"secretbox": {"keys": keys}}, {"identity": {}}]}],
    }


AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    # Never bodies: they would bring Secrets and tokens into the log.
    "rules": [
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version"]},
        {"level": "None", "userGroups": ["system:nodes"], "verbs": ["get", "list", "watch"]},
        {"level": "None", "verbs": ["watch"]},
        {"level": "Metadata"},
    ],
}


def api_server(machine: dict[str, str], certificate_key: str = "") -> None:
    """Write the files that the API server reads. The keys of Secrets stay: what they have sealed needs them."""
    os.makedirs(os.path.join(STATE, API_FOLDER), mode=0o700, exist_ok=True)
    old = []
    if os.path.exists(os.path.join(STATE, API_FOLDER, "encryption.yaml")):
        with open(os.path.join(STATE, API_FOLDER, "encryption.yaml")) as file:
            old = json.load(file)["resources"][0]["providers"][0]["secretbox"]["keys"]
    sealing = encryption(certificate_key, old)
    for name, document in (("authentication", authentication(machine)), ("audit", AUDIT), ("encryption", sealing)):
        save(f"{API_FOLDER}/{name}.yaml", json.dumps(document, indent=1) + "\n")


def url(machine: dict[str, str], action: str) -> str:
    """One of the cluster's routes at Stockyard."""
    return f"{machine['api_url']}/v1/clusters/{machine['cluster_id']}/{action}"


def prove(machine: dict[str, str]) -> dict[str, Any]:
    """Proof of this machine's identity: its token, or the request that it signs, to Stockyard alone."""
    if "token" in machine:
        return {"token": machine["token"]}
    region, keys = instance()
    host = urllib.parse.urlsplit(machine["api_url"]).netloc
    return presign(keys, region, host, datetime.now(timezone.utc))  # noqa: UP017


def post(machine: dict[str, str], action: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> str:
    """Send JSON to one of the cluster's routes."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    return fetch("POST", url(machine, action), sent, json.dumps(body).encode())


def install(programs: dict[str, str]) -> None:
    """Write programs that user data had no room for."""
    for name, text in programs.items():
        save(name, text)


def backup(machine: dict[str, str]) -> None:
    """Ask whether a snapshot of etcd is due, and become the program that takes it."""
    due = json.loads(post(machine, "snapshot-reports", prove(machine)))["due"]
    if due is not None:
        install(due.pop("programs"))
        save("snapshot.json", json.dumps({**due, "machine": machine}))
        os.execv(sys.executable, [sys.executable, os.path.join(STATE, "stockyard_snapshot.py")])  # noqa: S606
