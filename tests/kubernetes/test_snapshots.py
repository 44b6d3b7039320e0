"""A snapshot of a real etcd goes to S3 by the program that machines are given, and a real control plane begins anew
from it: with the authorities, Secrets and nodes of before, and it grows again."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from threading import Thread

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

from local.kubernetes.real import build
from stockyard.machines.cloud_config import MACHINE_PATH
from tests.kubernetes.members import town as towns
from tests.kubernetes.members.stockyard import PLACE, PORT, SNAPSHOT, URL, Stockyard
from tests.kubernetes.members.town import GATEWAY, Town
from tests.kubernetes.test_members import NEW, SECRET, Plane

pytestmark = pytest.mark.timeout(900)

S3_PORT = 8081


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, soaking: bool) -> Iterator[Plane]:
    if not soaking:
        pytest.skip("takes a minute: the soak runs it")
    for reason in (build.missing(), towns.missing()):
        if reason:
            pytest.skip(reason)
    with Town(tmp_path_factory.mktemp("town") / "snapshots") as town:
        listener = town.listener(S3_PORT)
        application = DomainDispatcherApplication(create_backend_app)
        server = make_server(GATEWAY, S3_PORT, application, threaded=True, fd=listener.fileno())
        listener.close()
        Thread(target=server.serve_forever, daemon=True).start()
        s3_backends["123456789012"]["aws"].create_bucket(PLACE["bucket"], "us-east-1")
        town.environment |= {"STOCKYARD_S3": f"http://{GATEWAY}:{S3_PORT}", "STOCKYARD_METADATA": URL}
        plane = Plane(town, Stockyard(town.listener(PORT)))
        yield plane
        plane.end()
        server.shutdown()
        server.server_close()
        s3_backends["123456789012"]["aws"].reset()


@pytest.fixture(scope="module")
def stored(plane: Plane) -> bytes:
    """The snapshot as it is in the store. What is written later is not in it."""
    plane.begin(NEW)
    plane.write("before")
    authority = plane.on("first", "cat", "/etc/kubernetes/pki/ca.key")
    environment = [f"{name}={value}" for name, value in plane.town.environment.items()]
    plane.on("first", "env", *environment, "python3", MACHINE_PATH, "backup")
    plane.write("later")
    content: bytes = s3_backends["123456789012"]["aws"].get_object(PLACE["bucket"], PLACE["key"]).value
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        texts = [archive.extractfile(name).read() for name in archive.getnames()]
    for text in texts:
        assert authority.encode() not in text
        assert SECRET.encode() not in text
    return content


def test_a_snapshot_is_stored_and_told(plane: Plane, stored: bytes) -> None:
    (report,) = plane.stockyard.snapshots
    assert (report["id"], report["size"], report["failure"]) == (SNAPSHOT, len(stored), "")
    assert report["revision"] > 0
    assert plane.on("first", "ls", "/var/lib/control-plane/etcd").split() == ["member"]


@pytest.fixture(scope="module")
def restored(plane: Plane, stored: bytes) -> Plane:
    """The only member is lost with its disk, and another machine begins from the snapshot."""
    assert stored
    plane.lose("first")
    plane.begin_from_snapshot("second", NEW)
    return plane


def test_the_control_plane_begins_from_the_snapshot(restored: Plane) -> None:
    restored.check("before")
    assert restored.on("second", "kubectl", "get", "configmap", "later", "--ignore-not-found") == ""
    assert "restored.yaml" not in restored.on("second", "ls", "/etc/stockyard")


def test_it_grows_again(restored: Plane) -> None:
    restored.on("second", "kubectl", "delete", "node", "first", "--ignore-not-found")
    restored.add("third", NEW)
    restored.write("grown")
    restored.check("before", "grown")
