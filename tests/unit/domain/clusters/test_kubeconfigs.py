"""Kubeconfigs that a machine may send as its cluster's."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stockyard.domain.clusters.kubeconfigs import check
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.machines import ReadyReport
from stockyard.errors import InvalidInput

AUTHORITY = {"certificate-authority-data": "Y2E=", "server": "https://demo:6443"}
ADMIN = {"client-certificate-data": "Yw==", "client-key-data": "aw=="}


def kubeadm(user: Any = ADMIN, cluster: Any = AUTHORITY, **more: Any) -> str:
    """The text that ``kubeadm init`` leaves in ``admin.conf``, with changes."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "clusters": [{"cluster": cluster, "name": "kubernetes"}],
            "contexts": [{"context": {"cluster": "kubernetes", "user": "admin"}, "name": "admin@kubernetes"}],
            "current-context": "admin@kubernetes",
            "kind": "Config",
            "preferences": {},
            "users": [{"name": "admin", "user": user}],
            **more,
        }
    )


@pytest.mark.parametrize("user", [ADMIN, {"token": "t"}, {}])
def test_kubeconfig_with_credentials_as_data_is_accepted(user: Any) -> None:
    text = kubeadm(user, {**AUTHORITY, "tls-server-name": "demo"})
    check(text)
    report = read(ReadyReport, {"kubeconfig": text, "certificate_authority": "Q0E="})
    assert report.kubeconfig.get_secret_value() == text


@pytest.mark.parametrize(
    "text",
    [
        kubeadm({"exec": {"command": "sh", "args": ["-c", "canary"]}}),
        kubeadm({**ADMIN, "Exec": {"command": "canary"}}),
        kubeadm({"auth-provider": {"name": "gcp", "config": {"cmd-path": "canary"}}}),
        kubeadm({"token": "t", "tokenFile": "/canary"}),
        kubeadm({"client-certificate": "/canary", "client-key": "/canary"}),
        kubeadm({"username": "canary", "password": "canary"}),
        kubeadm({"token": ["canary"]}),
        kubeadm("canary"),
        kubeadm(cluster={**AUTHORITY, "proxy-url": "http://canary"}),
        kubeadm(cluster={"server": "https://x", "certificate-authority": "/canary"}),
        kubeadm(cluster={"server": "https://x", "insecure-skip-tls-verify": True}),
        kubeadm(users=[{"name": "admin", "user": ADMIN, "exec": "canary"}]),
        kubeadm(users=[{"name": "one", "user": ADMIN}, {"name": "two", "user": {"exec": "canary"}}]),
        kubeadm(users={"name": "canary"}),
        kubeadm(users=[]),
        kubeadm(Users=[{"name": "canary", "user": {"exec": {"command": "sh"}}}]),
        kubeadm(canary=1),
        # names that a parser joins or overwrites, so that another one may see another user
        kubeadm() + "users: [{name: admin, user: {exec: {command: canary}}}]\n",
        kubeadm().replace("client-key-data", "token: a\n    token"),
        kubeadm().replace("client-key-data: aw==", "<<: {exec: {command: canary}}"),
        kubeadm().replace("client-key-data", "!!binary ZXhlYw=="),
        kubeadm().replace("client-key-data", "? [exec]\n    "),
        "a: &a [canary]\nb: *a\n",
        kubeadm() + "---\n" + kubeadm({"exec": {"command": "canary"}}),
        "apiVersion: v1",
        "canary",
        "- canary",
        "canary: [",
        "# canary",
        "\x00canary",
        "[" * 60_000,
        "a: [" + "a," * 30_000 + "]",
    ],
)
def test_kubeconfig_with_anything_else_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(ReadyReport, {"kubeconfig": text, "certificate_authority": "Q0E="})
    (problem,) = refused.value.errors
    assert problem.pointer == "/kubeconfig"
    assert problem.detail.startswith("must ")
    assert "canary" not in refused.value.detail
