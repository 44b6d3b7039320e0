"""A real API server that Stockyard's client reaches through a real connector process alone."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from local.children import start
from local.cloud import ROOT
from local.loopback import LoopbackServer
from stockyard.adapters.clock import SystemClock
from stockyard.adapters.site_requests import StoredSiteRequests
from stockyard.errors import VendorError
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.sites import SiteTransport
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.site_world import SiteWorld

SPACE = "machines-of-a-site"
LIST = f"""\
GET /api
GET /api/v1
GET /apis
GET /api/v1/namespaces/{SPACE}/configmaps?labelSelector,limit,continue
GET,PATCH,DELETE /api/v1/namespaces/{SPACE}/configmaps/*?fieldManager,force,dryRun
"""


class Handler(BaseHTTPRequestHandler):
    """The realm's tokens, and the exchange of one site."""

    world: SiteWorld

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers["Content-Type"] == "application/gzip":
            body = gzip.decompress(body)
        if self.path == "/token":
            answer: dict[str, Any] = {"access_token": "x", "expires_in": 300}
        else:
            assert self.path == f"/v1/sites/{self.world.site.id}/exchange"
            answer = {**self.world.exchange(json.loads(body)), "interval_seconds": 0.1}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture(scope="module")
def world() -> SiteWorld:
    return SiteWorld.make(cast(FixedClock, SystemClock()))


@pytest.fixture(scope="module")
def log(cluster: Any, world: SiteWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The connector runs as its unit would run it, with a token of an account of the host."""
    folder = tmp_path_factory.mktemp("site")
    plane = cluster.plane
    plane.kubectl("create", "namespace", SPACE)
    plane.kubectl("-n", SPACE, "create", "serviceaccount", "stockyard-site")
    rights = ("--verb=get,list,create,patch,delete", "--resource=configmaps")
    plane.kubectl("-n", SPACE, "create", "role", "stockyard-site", *rights)
    account = f"--serviceaccount={SPACE}:stockyard-site"
    plane.kubectl("-n", SPACE, "create", "rolebinding", "stockyard-site", "--role=stockyard-site", account)
    files = {
        "token": plane.kubectl("-n", SPACE, "create", "token", "stockyard-site").stdout,
        "allowed": LIST,
        "client_id": "site",
        "client_secret": "secret",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    server = LoopbackServer(("127.0.0.1", 0), type("Own", (Handler,), {"world": world}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "STOCKYARD_API_URL": url,
        "STOCKYARD_TOKEN_URL": f"{url}/token",
        "STOCKYARD_SITE_ID": world.site.id,
        "STOCKYARD_CLIENT_DIR": str(folder),
        "SITE_ALLOWED_DIR": str(folder),
        "SITE_SERVER": plane.url,
        "SITE_AUTHORITY": str(plane.folder / "pki" / "ca.crt"),
        "SITE_TOKEN": str(folder / "token"),
    }
    path = folder / "log"
    with path.open("wb") as file:
        command = [sys.executable, "-m", "agent.stockyard_site"]
        process = start(command, env=environment, cwd=str(folder), stdout=file, stderr=file)
    yield path
    process.terminate()
    assert process.wait(10) == 0
    server.shutdown()
    server.server_close()
    assert files["token"] not in path.read_text()


@pytest.fixture(scope="module")
def api(world: SiteWorld, log: Path) -> KubernetesApi:
    requests = StoredSiteRequests(world.services.store, world.secrets, world.clock, time.sleep)
    return KubernetesApi("https://anywhere", None, lambda: "", SiteTransport(requests, "room"))


def test_an_object_lives_on_a_real_api_server_behind_a_site(api: KubernetesApi, log: Path):
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "node-1", "namespace": SPACE, "labels": {"stockyard.dev/claim": "ncl_1"}},
        "data": {"state": "on"},
    }
    assert api.apply(document)["data"] == {"state": "on"}
    there = api.get("v1", "ConfigMap", "node-1", SPACE)
    assert there is not None
    assert there["metadata"]["managedFields"][0]["manager"] == "stockyard"
    api.delete("v1", "ConfigMap", "node-1", SPACE)
    assert api.get("v1", "ConfigMap", "node-1", SPACE) is None
    assert f"PATCH /api/v1/namespaces/{SPACE}/configmaps/node-1: 201" in log.read_text()


def test_what_the_list_has_not_never_reaches_it(api: KubernetesApi, log: Path):
    with pytest.raises(VendorError, match="the site's connector refused: the allow-list has no GET"):
        api.get("v1", "Secret", "any", SPACE)
    with pytest.raises(VendorError, match="the site's connector refused"):
        api.get("v1", "ConfigMap", "kubeadm-config", "kube-system")
    assert "Secret" not in log.read_text()
