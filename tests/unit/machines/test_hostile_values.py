"""Choices of people reach a machine as data: no value of theirs becomes a command, a file or another flag."""

from __future__ import annotations

import gzip
import json
import shlex
from typing import Any

import pytest
import yaml

from stockyard.domain.models.base import read
from stockyard.domain.models.nodes.node_claims import NodeClaimCreate
from stockyard.errors import InvalidInput
from stockyard.machines import control_plane, node
from stockyard.machines.cloud_config import FirstBoot
from stockyard.machines.data_disk import DiskKey
from stockyard.machines.manifests import Controllers, kustomization
from stockyard.machines.on_machine import stockyard_machine_member, stockyard_node

HOSTILE = (
    '"; touch /tmp/owned; "',
    "$(touch /tmp/owned)",
    "`touch /tmp/owned`",
    "a\nruncmd:\n  - touch /tmp/owned",
    "a\n---\nkind: Secret",
    "END_OF_FILES\ntouch /tmp/owned",
    "a' || true; '",
    "a\\\nb",
    "--config=/etc/passwd",
    "a,b=c --anonymous-auth=true",
    "%i${HOME}\x85\u2028\u202e\x1b[2J\x00",
)
"""Texts that would end a quote, a line, a document or a flag."""


def boots(value: str) -> list[FirstBoot]:
    """First boots of machines that have the value wherever a text comes from outside."""
    common = {"api_url": "https://api.example.test", "kubernetes_version": "1.34", "token": value}
    plane = {**common, "client_id": value, "issuer": value, "tenant": value}
    disk = DiskKey(f"https://{value}", value, value, value)
    return [
        node.first_boot(**common, cluster_id=value, claim_id=value),
        control_plane.ControlPlaneMachine(
            **plane, cluster_id=value, creator=value, gpu_label=value, disk_key=disk
        ).first_boot(),
        control_plane.ControlPlaneMachine(**plane, cluster_id=value, claim_id=value, joins=True).first_boot(),
    ]


def test_files_of_a_first_boot_are_written_as_they_are() -> None:
    for value in HOSTILE:
        for boot in boots(value):
            document = yaml.safe_load(gzip.decompress(boot.cloud_config()))
            assert set(document) == {"package_update", "write_files", "runcmd"}
            written = {entry["path"]: entry["content"] for entry in document["write_files"]}
            assert set(written) == set(boot._written())
            for path, file in boot._written().items():
                if path.endswith(".json"):
                    assert json.loads(written[path]) == json.loads(file.text), path
                else:
                    assert written[path].strip() == file.text.strip(), path
            assert document["runcmd"] == yaml.safe_load(gzip.decompress(boots("plain")[0].cloud_config()))["runcmd"]


def test_the_script_of_a_first_boot_holds_no_text_of_others() -> None:
    """The script unpacks an archive: what surrounds that is the same for all machines."""
    frame = {boots("plain")[0].script().partition("directory /\n")[0]}
    for value in HOSTILE:
        for boot in boots(value):
            before, _, body = boot.script().partition("directory /\n")
            packed, _, after = body.partition("END_OF_FILES\n")
            frame.add(before)
            assert set(packed) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n")
            assert after.split() == boots("plain")[0].script().rpartition("END_OF_FILES\n")[2].split()
    assert len(frame) == 1


def test_no_argument_of_a_start_script_is_a_persons() -> None:
    for value in HOSTILE:
        for boot, plain in zip(boots(value), boots("plain"), strict=True):
            assert boot.arguments == plain.arguments
            assert len(shlex.split(boot.arguments)) == len(boot.arguments.split())


def test_flags_labels_and_taints_of_a_claim_hold_nothing_that_ends_them() -> None:
    overlay_fields: list[tuple[dict[str, Any], str]] = [
        ({"kubelet_args": {"max-pods": "{}"}}, "50"),
        ({"kubelet_args": {"{}": "1"}}, "max-pods"),
        ({"labels": {"a": "{}"}}, "b"),
        ({"labels": {"{}": "a"}}, "b"),
        ({"taints": [{"key": "{}", "effect": "NoSchedule"}]}, "a"),
        ({"startup_taints": [{"key": "a", "value": "{}", "effect": "NoSchedule"}]}, "b"),
        ({"name": "{}"}, "a"),
        ({"provider": "{}"}, "a"),
    ]
    for overlay_field, good in overlay_fields:
        text = json.dumps({"cluster": "demo", **overlay_field})
        read(NodeClaimCreate, json.loads(text.replace("{}", good)))
        for value in HOSTILE:
            with pytest.raises(InvalidInput):
                read(NodeClaimCreate, json.loads(text.replace("{}", json.dumps(value)[1:-1])))


def test_what_a_machine_is_told_to_join_with_stays_a_value() -> None:
    for value in HOSTILE:
        answer = {
            "endpoint": "https://k.example.test:6443",
            "token": value,
            "ca_hash": value,
            "node_name": value,
            "labels": {"a": value},
            "taints": [{"key": value, "effect": value}],
            "kubelet_args": {"max-pods": value},
        }
        document = json.loads(json.dumps(stockyard_node.kubeadm(answer, "")))
        assert set(document["nodeRegistration"]) == {"name", "criSocket", "taints", "kubeletExtraArgs"}
        flags = {flag["name"]: flag["value"] for flag in document["nodeRegistration"]["kubeletExtraArgs"]}
        assert flags == {"max-pods": value, "node-labels": f"a={value}"}
        people = stockyard_machine_member.authentication({"tenant": value, "issuer": value, "client_id": value})
        (rule,) = people["jwt"][0]["claimValidationRules"]
        assert rule["expression"].count(json.dumps(value)) == 2, "the tenant is a text of the expression"
        patches = kustomization(Controllers("1.34", value, {"stockyard:tenant": value}))["patches"]
        assert all(isinstance(json.loads(patch["patch"]), list) for patch in patches)
