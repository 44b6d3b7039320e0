"""The published example of a head node in the local cloud: a claim becomes a node, direct and through a site whose
connector is a real process; given back, each device is as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.bcm.served import WORD
from local.cloud import ROOT, LocalCloud
from stockyard.providers.clouds.bcm.calls import allow_list

EXAMPLE = ROOT.parent / "shared" / "examples" / "vcluster" / "nodeprovider-001.yaml"
MOST_SECONDS = 240

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="the published examples are not beside this repository")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with LocalCloud(home=tmp_path_factory.mktemp("cloud"), schedules=True, limits=False) as cloud:
        body = json.loads((ROOT / "examples" / "aws-cluster.json").read_text(encoding="utf-8"))
        body.pop("autoscaler_node_groups", None)
        cluster = cloud.call("POST", "/v1/clusters", body)
        until(lambda: cloud.call("GET", f"/v1/clusters/{cluster['id']}")["status"] == "ready")
        yield cloud


def until(is_so: Any) -> None:
    """Wait until it is so."""
    end = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.5)


def devices(cloud: LocalCloud) -> dict[str, str]:
    """Devices by host name, without what changes with each change."""
    inventory = cloud.head_node.head_node
    inventory.work()
    return {
        entity["hostname"]: json.dumps({key: value for key, value in entity.items() if key != "revision"})
        for entity in inventory.devices.values()
    }


def live(cloud: LocalCloud, number: int, *, direct: bool) -> None:
    """The example, a claim that becomes a node, and its host given back."""
    before, names = devices(cloud), ("cpu-node-1", "cpu-node-2", "gpu-node-1", "gpu-node-2", "gpu-node-3")
    until(lambda: verified(cloud, number))
    document = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    if direct:
        document["spec"]["bcm"]["endpoint"] = cloud.head_node.url
    plan = cloud.call("POST", "/v1/apply?dry_run=true", document)
    remarks = " ".join(warning["detail"] for warning in plan["plan"]["warnings"])
    assert all(name in remarks for name in (*names, "login")), remarks
    cloud.call("POST", "/v1/apply", document)
    claim = cloud.call("POST", "/v1/node-claims", {"name": "metal", "cluster": "demo", "provider": "bcm-provider"})
    path = f"/v1/node-claims/{claim['id']}"
    until(lambda: cloud.call("GET", path)["phase"] in ("Available", "Failed"))
    node = cloud.call("GET", path)
    assert node["phase"] == "Available", node
    assert node["type"] == "bcm-provider.cpu-nodes"
    head = cloud.head_node.head_node
    (used,) = [uuid for uuid, entity in head.devices.items() if node["id"] in entity["notes"]]
    assert head.devices[used]["hostname"] in names[:2]
    cloud.call("DELETE", path)
    until(lambda: not any(each["id"] == node["id"] for each in cloud.call("GET", "/v1/node-claims")["items"]))
    until(lambda: devices(cloud) == before)
    assert head.hardware[used].wipes >= 2
    switched = {call.device["hostname"] for call in head.power_calls}
    assert (head.outside, switched <= set(names)) == ([], True)
    assert all(WORD in call.device["notes"] for call in head.power_calls)


def verified(cloud: LocalCloud, number: int) -> bool:
    """Whether the account works by now: a site's connector may come late."""
    try:
        account = cloud.call("POST", f"/v1/cloud-accounts/{number}/verify")
    except Exception:
        return False
    assert account["verification"] == "verified", account["verification_message"]
    assert "Stockyard may install cpu-node-1" in account["verification_message"]
    return True


@pytest.fixture(scope="module")
def account(cloud: LocalCloud) -> int:
    """Number of the account of the head node, direct at first."""
    body = {"provider": "bcm", "name": "bcm-credentials", "attributes": cloud.head_node.attributes()}
    return int(cloud.call("POST", "/v1/cloud-accounts", body)["id"])


@pytest.mark.timeout(900)
def test_the_published_example_gives_a_node(cloud: LocalCloud, account: int) -> None:
    live(cloud, account, direct=True)


@pytest.mark.timeout(900)
def test_the_published_example_gives_a_node_through_a_site(
    cloud: LocalCloud, account: int, tmp_path: Path, soaking: bool
) -> None:
    if not soaking:
        pytest.skip("make soak does it: the suite of node sources has this way too")
    site = cloud.call("POST", "/v1/sites", {"name": "basement", "description": "Beside the head node"})
    registered = cloud.call("GET", f"/v1/cloud-accounts/{account}")
    through = {**dict.fromkeys(cloud.head_node.attributes()), "via": "basement"}
    headers = {"If-Match": f'"{registered["version"]}"'}
    cloud.call("PATCH", f"/v1/cloud-accounts/{account}", {"attributes": through}, headers=headers)
    connector = subprocess.Popen(
        [sys.executable, "-m", "agent.stockyard_site"], env=settings_of_connector(cloud, site["id"], tmp_path)
    )
    try:
        live(cloud, account, direct=False)
    finally:
        connector.terminate()
        connector.wait(20)


def settings_of_connector(cloud: LocalCloud, site: str, folder: Path) -> dict[str, str]:
    """Settings and files of the connector beside the head node."""
    credentials = cloud.call("POST", f"/v1/sites/{site}/credentials")
    for name in ("client_id", "client_secret"):
        (folder / name).write_text(credentials[name], encoding="utf-8")
    (folder / "allowed").write_text("\n".join(allow_list()) + "\n", encoding="utf-8")
    certificate, key = cloud.head_node.client_files
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "PYTHONPATH": str(ROOT),
        "STOCKYARD_API_URL": cloud.url,
        "STOCKYARD_SITE_ID": site,
        "STOCKYARD_TOKEN_URL": credentials["token_url"],
        "STOCKYARD_CLIENT_DIR": str(folder),
        "SITE_ALLOWED_DIR": str(folder),
        "SITE_SERVER": cloud.head_node.url,
        "SITE_FINGERPRINT": cloud.head_node.fingerprint,
        "SITE_CERTIFICATE": str(certificate),
        "SITE_KEY": str(key),
    }
