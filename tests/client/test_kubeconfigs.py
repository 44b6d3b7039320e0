"""Kubeconfigs: every form of the answer, merging, and a file that must not be hurt."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from stockyard_client import kubeconfigs
from stockyard_client.errors import StockyardClientError, UnexpectedAnswer

EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "stockyard", "args": ["token"]}


def config(name: str = "demo", server: str = "https://demo:6443", user: Any = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user or {"exec": EXEC}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


@pytest.mark.parametrize(
    "body", [config(), yaml.safe_dump(config()), {"kubeconfig": config()}, {"kubeconfig": yaml.safe_dump(config())}]
)
def test_kubeconfig_document_accepts_every_answer_form(body):
    assert kubeconfigs.document(body) == config()


@pytest.mark.parametrize(
    "body",
    [
        None,
        "a: [",
        "[" * 10_000,
        "a: 2026-99-99",
        {},
        {"kubeconfig": None},
        {**config(), "users": []},
        {**config(), "users": 1},
    ],
)
def test_kubeconfig_document_refuses_other_answers(body):
    with pytest.raises(UnexpectedAnswer):
        kubeconfigs.document(body)


@pytest.mark.parametrize("user", [{}, {"token": "t"}, {"client-certificate-data": "Yw==", "client-key-data": "aw=="}])
def test_check_static_accepts_credentials_as_data(user):
    static = config()
    static["users"][0]["user"] = user
    static["clusters"][0]["cluster"] |= {"certificate-authority-data": "Y2E=", "tls-server-name": "demo"}
    kubeconfigs.check_static(static)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("users", {"user": {"exec": {"command": "sh"}}}),
        ("users", {"user": {"auth-provider": {"name": "gcp", "config": {"cmd-path": "sh"}}}}),
        ("users", {"user": {"token": "t", "tokenFile": "/etc/passwd"}}),
        ("users", {"user": {"client-certificate": "/c", "client-key": "/k"}}),
        ("users", {"user": {"token": {"exec": "sh"}}}),
        ("users", {"user": {}, "exec": {"command": "sh"}}),
        ("users", {"user": None}),
        ("clusters", {"cluster": {"server": "https://x", "certificate-authority": "/ca"}}),
        ("clusters", {"cluster": {"server": "https://x", "proxy-url": "http://me"}}),
        ("clusters", {"cluster": {"server": "https://x", "insecure-skip-tls-verify": True}}),
    ],
)
def test_static_kubeconfig_with_more_than_data_is_refused(name, fields):
    static = config(user={"token": "t"})
    static[name] = [{"name": "demo", **fields}]
    with pytest.raises(UnexpectedAnswer, match="the cluster's kubeconfig is refused"):
        kubeconfigs.check_static(static)


@pytest.mark.parametrize("entry", ["exec", None, ["exec"]])
def test_static_entry_that_is_no_object_is_refused(entry):
    with pytest.raises(UnexpectedAnswer):
        kubeconfigs.check_static({**config(user={"token": "t"}), "users": [entry]})


def test_merge_replaces_by_name_and_keeps_the_rest():
    old = {**config("other"), "preferences": {"colors": True}}
    once = kubeconfigs.merge(old, config())
    assert once["current-context"] == "other"
    twice = kubeconfigs.merge(once, config(server="https://new:6443"), use=True)
    assert [entry["name"] for entry in twice["clusters"]] == ["other", "demo"]
    assert twice["clusters"][1]["cluster"]["server"] == "https://new:6443"
    assert twice["current-context"] == "demo"
    assert twice["preferences"] == {"colors": True}


def test_for_person_replaces_names_in_static_kubeconfig():
    adapted = kubeconfigs.for_person(config("kubernetes", user={"client-key-data": "k"}), "demo", "https://api.test")
    assert adapted == {**config("demo", user={"client-key-data": "k"}), "clusters": adapted["clusters"]}
    assert adapted["clusters"][0]["name"] == "demo"


def test_for_person_gives_exec_user_the_api_url():
    adapted = kubeconfigs.for_person(config(), "demo", "https://api.test")
    assert adapted["users"][0]["user"]["exec"]["env"] == [{"name": "STOCKYARD_URL", "value": "https://api.test"}]


def test_written_kubeconfig_is_private(tmp_path):
    path = tmp_path / ".kube" / "config"
    kubeconfigs.write(path, config())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert yaml.safe_load(path.read_text()) == config()


@pytest.mark.parametrize("content", ["just a note", "a: [", "- 1\n"])
def test_write_keeps_file_that_is_no_kubeconfig(tmp_path, content):
    path = tmp_path / "notes"
    path.write_text(content)
    with pytest.raises(StockyardClientError, match="left as it is"):
        kubeconfigs.write(path, config())
    assert path.read_text() == content


def test_kubeconfig_default_path():
    assert kubeconfigs.default_path({"KUBECONFIG": "/a:/b", "HOME": "/h"}) == Path("/a")
    assert kubeconfigs.default_path({"HOME": "/h"}) == Path("/h/.kube/config")
