"""Images of operating systems: entered within a quota, changed, removed when no provider names them, and applied."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.nodes.os_images import OSImageCreate, OSImagePatch
from stockyard.domain.nodes.os_images import OSImage, OSImageContent
from stockyard.domain.records import Quota
from stockyard.errors import (
    Forbidden,
    IllegalTransition,
    InUse,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
)
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_providers.os_images import (
    change_os_image,
    create_os_image,
    delete_os_image,
    find_os_image,
)
from stockyard.operations.quotas.limits import view
from stockyard.ports import Put
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

URL, DIGEST = "https://images.example.test/noble.qcow2", "a" * 64
CONTENT = OSImageContent(url=URL, checksum=DIGEST)


def create(world: World, name: str = "noble") -> OSImage:
    return create_os_image(world.services, name, CONTENT, "user:ann", world.services.new_id("osi"))


def manifest(name: str = "noble", **spec: Any) -> dict[str, Any]:
    document = {"url": URL, "checksum": DIGEST, **spec}
    return {"apiVersion": "stockyard/v1", "kind": "OSImage", "metadata": {"name": name}, "spec": document}


def apply(world: World, *documents: dict[str, Any], admin: bool = True) -> list[dict[str, Any]]:
    desired = read_desired(world.services, documents, "user:ann", admin=admin)
    return apply_manifests(world.services, desired, "user:ann", "req-1")


def test_images_count_for_a_quota_and_names_are_unique(world: World) -> None:
    world.services.store.commit(Put(Quota("os_images", 2, "")))
    image = create(world)
    assert create_os_image(world.services, "noble", CONTENT, "user:ann", image.id) == image
    assert find_os_image(world.services, "noble") == find_os_image(world.services, image.id) == image
    with pytest.raises(IllegalTransition, match="an OS image called noble"):
        create(world)
    create(world, "other")
    with pytest.raises(QuotaExceeded):
        create(world, "third")
    operation = delete_os_image(world.services, image, "user:ann")
    assert (operation.status, operation.subject_name) == ("succeeded", "noble")
    assert view(world.services, "os_images")["used"] == 1
    with pytest.raises(NotFound):
        find_os_image(world.services, "noble")


def test_an_image_that_a_provider_names_stays(world: World) -> None:
    image = create(world)
    nodes = Nodes.of(world.registry, world.services, world.clock)
    entry = {"name": "box", "resources": {"cpu": 1, "memory": "1Gi"}, "properties": {"vcluster.com/os-image": "noble"}}
    nodes.provider("iron", entry, kind="metal3", block={"clusterRef": {"cluster": "3", "namespace": "m"}})
    with pytest.raises(InUse, match="used by node provider iron"):
        delete_os_image(world.services, image, "user:ann")


def test_a_change_is_guarded_by_the_version_and_told(world: World) -> None:
    image = create(world)
    patched = read(OSImagePatch, {"checksum": None, "format": "live-iso"}).content(image)
    changed = change_os_image(world.services, image, 1, patched, "user:ann", "req-1")
    assert (changed.version, changed.checksum, changed.format, changed.url) == (2, None, "live-iso", URL)
    with pytest.raises(PreconditionFailed):
        change_os_image(world.services, image, 2, CONTENT, "user:ann", "req-2")
    with pytest.raises(PreconditionFailed):
        change_os_image(world.services, changed, 1, CONTENT, "user:ann", "req-2")
    with pytest.raises(InvalidInput, match="checksum_type"):
        read(OSImagePatch, {"checksum_type": "md5"}).content(changed)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"url": "ftp://a/b"}, "/url"),
        ({"url": "https://a/b c"}, "/url"),
        ({"url": "https://ann:secret@a/b"}, "/url"),
        ({"checksum": "abc"}, "/checksum"),
        ({"checksum": "a" * 32, "checksum_type": "sha256"}, "/checksum"),
        ({"checksum": None, "checksum_type": "sha256"}, "/checksum_type"),
        ({"format": "iso"}, "/format"),
        ({"name": "Noble"}, "/name"),
        ({"size": 1}, "/size"),
    ],
)
def test_a_fault_names_its_field(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(OSImageCreate, {"name": "noble", "url": URL, "checksum": DIGEST, **fields})
    assert [fault.pointer for fault in refused.value.errors] == [pointer]


def test_a_manifest_enters_changes_and_leaves_alone(world: World) -> None:
    desired = read_desired(world.services, [manifest()], "user:ann", admin=True)
    assert plan_manifests(world.services, desired)["creates"] == [{"kind": "os-image", "name": "noble"}]
    assert [result["action"] for result in apply(world, manifest())] == ["created"]
    assert [result["action"] for result in apply(world, manifest())] == ["unchanged"]
    sha = manifest(checksumType="sha256")
    desired = read_desired(world.services, [sha], "user:ann", admin=True)
    (change,) = plan_manifests(world.services, desired)["changes"]
    assert (change["pointer"], change["before"], change["after"]) == ("/0/spec/checksumType", None, "sha256")
    assert [result["action"] for result in apply(world, sha)] == ["changed"]
    assert find_os_image(world.services, "noble").checksum_type == "sha256"


def test_a_manifest_with_a_fault_names_it_and_needs_an_administrator(world: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        apply(world, manifest(url="noble.qcow2"), manifest("other", checksumType="md5"))
    assert [fault.pointer for fault in refused.value.errors] == ["/0/spec/url", "/1/spec/checksum"]
    with pytest.raises(InvalidInput, match="another OSImage of this name"):
        apply(world, manifest(), manifest())
    with pytest.raises(Forbidden, match="OSImages need the role"):
        apply(world, manifest(), admin=False)
