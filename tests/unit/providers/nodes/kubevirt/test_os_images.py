"""Images that settings name by an OSImage: their URL is imported, and those that cannot be used are named."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.os_images import PROPERTY, OSImage, os_image_name
from stockyard.domain.records import Name
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports import Create, Finding, Put
from stockyard.providers.nodes.kubevirt.inspection import findings
from tests.harness.worlds.kubernetes_host import TENANT
from tests.unit.providers.nodes.kubevirt.yard import MOMENT, Yard

IMAGE_ID, URL = "osi_01KDVJXQ80000000000000000A", "https://images.example.test/noble.qcow2"
PLACE = "/spec/nodeTypes/0/properties/vcluster.com~1os-image"
NAMED = {PROPERTY: "noble", "kubevirt.vcluster.com/root-disk-size": "20Gi"}


def image(url: str = URL, **fields: Any) -> OSImage:
    checked = {"checksum": None, "checksum_type": None, "format": "qcow2", **fields}
    return OSImage(IMAGE_ID, name="noble", url=url, created_at=MOMENT, updated_at=MOMENT, **checked)


@pytest.fixture
def yard() -> Yard:
    yard = Yard({"name": "small", "properties": NAMED})
    yard.store.commit(Create(image()), Create(Name(os_image_name("noble"), IMAGE_ID)))
    return yard


def judged(yard: Yard) -> list[Finding]:
    return list(yard.source.judge(yard.provider, yard.host.account, None, TENANT))


def test_an_image_is_imported_by_the_url_of_its_record(yard: Yard) -> None:
    assert list(findings(yard.provider, yard.host.account)) == judged(yard) == []
    yard.launch()
    (machine,) = yard.host.objects("virtualmachines").values()
    (volume,) = machine["spec"]["dataVolumeTemplates"]
    assert volume["spec"]["source"] == {"http": {"url": URL}}
    assert yard.source.drift(yard.work()) is None
    yard.store.commit(Put(image("docker://quay.example/noble")))
    assert "spec.dataVolumeTemplates" in (yard.source.drift(yard.work()) or "")
    yard.store.commit(Put(image(format="live-iso")))
    assert yard.source.drift(yard.work()) is None, "no machine could be made from it: what stands stays"
    yard.terminate()
    assert yard.host.leftovers() == []


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (image("oci://images.example.test/noble"), "CDI reads docker://, http:// and https:// alone"),
        (image(format="live-iso"), "is a live ISO"),
    ],
)
def test_an_image_that_cannot_be_used_is_refused_at_its_setting_and_by_a_launch(
    yard: Yard, record: OSImage, words: str
) -> None:
    yard.store.commit(Put(record))
    (fault,) = judged(yard)
    assert (fault.pointer, fault.warning) == (PLACE, False)
    assert words in fault.detail
    with pytest.raises(NodeCouldNotBeProvisioned, match=f"{PROPERTY}: OSImage noble is"):
        yard.launch()
    yard.terminate()
    assert yard.host.leftovers() == []


def test_a_provider_may_be_registered_before_its_image(yard: Yard) -> None:
    yard.store.commit(Put(image(checksum="a" * 64)))
    assert judged(yard) == [], "a checksum is of other kinds of machines"
    bare = Yard({"name": "small", "properties": NAMED})
    assert judged(bare) == []
    with pytest.raises(NodeCouldNotBeProvisioned, match="there is no OSImage noble"):
        bare.launch()
