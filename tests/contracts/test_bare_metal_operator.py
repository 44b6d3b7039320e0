"""Rows of what the real operator of Metal3 was seen to do, for the one that plays it.

The rows were recorded with baremetal-operator 02aa505, its fixture provisioner and a real API server, driven by the
product's own client. ``tests/kubernetes/test_bare_metal.py`` runs them on a real API server again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.kubernetes import bare_metal
from stockyard.providers.clouds.kubernetes.marks import marks
from stockyard.providers.kubernetes.errors import ObjectChanged
from tests.harness.bare_metal.yard import BareMetalYard
from tests.harness.worlds.kubernetes_host import NAMESPACE, TENANT

CLAIM, OTHER = "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAW"
IMAGE = {"url": "https://images.example.test/a.qcow2", "checksum": "a" * 64, "checksumType": "sha256"}
MARKS = marks("inst", TENANT, CLAIM, 1)
Host = Mapping[str, Any]


@pytest.fixture
def yard() -> Any:
    return BareMetalYard({name: {"kind": "metal"} for name in ("m1", "m2", "m3")})


def host(yard: Any, name: str = "m1") -> Host:
    there: Host | None = yard.api_client.get("metal3.io/v1alpha1", "BareMetalHost", name, NAMESPACE)
    assert there is not None
    return there


def state_after(yard: Any, seconds: float, name: str = "m1") -> str:
    """State of a host after so many seconds."""
    yard.settle(seconds)
    return bare_metal.state(host(yard, name))


def take_host(yard: Any, name: str = "m1", claim: str = CLAIM) -> Host:
    there = host(yard, name)
    return bare_metal.apply(yard.api_client, there, bare_metal.take_document(there, claim, MARKS))


def provisioned(yard: Any, name: str = "m1") -> Host:
    there = take_host(yard, name)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "stockyard-u", "namespace": NAMESPACE}}
    yard.api_client.apply({**secret, "data": {"userData": "YQ=="}})
    wish = bare_metal.change_document(
        there, image=IMAGE, userData={"name": "stockyard-u", "namespace": NAMESPACE}, online=True
    )
    return bare_metal.apply(yard.api_client, there, wish)


def test_a_host_that_is_registered_becomes_available(yard: Any) -> None:
    yard.register("m9", {})
    states = [state_after(yard, 0, "m9"), state_after(yard, 0.25, "m9"), state_after(yard, 0.5, "m9")]
    assert states[0] in ("", "registering")
    assert states[-1] == "available"
    hardware = host(yard, "m9")["status"]["hardware"]
    assert hardware["ramMebibytes"] > 0
    assert hardware["cpu"]["count"] > 0


def test_a_host_gets_its_image_when_it_is_taken_and_switched_on(yard: Any) -> None:
    provisioned(yard)
    assert state_after(yard, 0) == "provisioning"
    assert state_after(yard, 9) == "provisioning"
    assert state_after(yard, 2) == "provisioned"
    assert bare_metal.is_on(host(yard))


def test_a_host_is_wiped_when_its_image_is_left_out(yard: Any) -> None:
    provisioned(yard)
    yard.settle(11)
    there = host(yard)
    bare_metal.apply(yard.api_client, there, bare_metal.change_document(there, image=None, userData=None, online=False))
    assert state_after(yard, 0) == "deprovisioning"
    assert state_after(yard, 11) == "available"
    assert not bare_metal.is_on(host(yard))


def test_a_host_is_free_when_its_consumer_is_left_out_and_has_these_managers(yard: Any) -> None:
    there = take_host(yard)
    bare_metal.given_back(yard.api_client, there)
    there = host(yard)
    assert "consumerRef" not in there["spec"]
    managers = {each["manager"] for each in there["metadata"]["managedFields"]}
    assert {"stockyard"} <= managers
    assert len(managers) > 1, "the owner's fields are the owner's still"


def test_a_host_cannot_be_without_a_wish_for_its_power(yard: Any) -> None:
    there = take_host(yard)
    there = bare_metal.apply(yard.api_client, there, bare_metal.change_document(there, online=False))
    with pytest.raises(VendorRefused, match=r"422 Invalid: spec\.online"):
        bare_metal.apply(yard.api_client, there, bare_metal.document(there, {}, {}, {}))


def test_provisioning_is_cancelled_in_its_middle(yard: Any) -> None:
    provisioned(yard)
    assert state_after(yard, 5) == "provisioning"
    there = host(yard)
    bare_metal.apply(yard.api_client, there, bare_metal.change_document(there, image=None, userData=None, online=False))
    assert state_after(yard, 0.25) == "deprovisioning"
    assert state_after(yard, 11) == "available"


def test_power_follows_the_wish_and_the_state_stays(yard: Any) -> None:
    provisioned(yard)
    yard.settle(11)
    for online in (False, True):
        there = host(yard)
        bare_metal.apply(yard.api_client, there, bare_metal.change_document(there, online=online))
        assert state_after(yard, 0.5) == "provisioned"
        assert bare_metal.is_on(host(yard)) is online


def test_another_image_wipes_a_host_in_use_without_a_question(yard: Any) -> None:
    provisioned(yard)
    yard.settle(11)
    yard.change("m1", image={**IMAGE, "url": "https://mirror.example.test/a.qcow2"})
    states = [state_after(yard, 0.25) for _ in range(100)]
    assert list(dict.fromkeys(states)) == ["deprovisioning", "provisioning", "provisioned"]


def test_a_host_without_its_credentials_says_so_at_once(yard: Any) -> None:
    yard.register("m9", {}, bmc={"address": "redfish://192.0.2.1/9", "credentialsName": "nobody"})
    yard.settle(0)
    assert "does not exist" in str(bare_metal.fault(host(yard, "m9")))
    assert bare_metal.blocker(host(yard, "m9")) == "in error"


def test_of_two_with_one_version_one_has_the_host(yard: Any) -> None:
    there = host(yard)
    bare_metal.apply(yard.api_client, there, bare_metal.take_document(there, CLAIM, MARKS))
    with pytest.raises(ObjectChanged):
        bare_metal.apply(yard.api_client, there, bare_metal.take_document(there, OTHER, MARKS))
    assert bare_metal.holder(host(yard)) == CLAIM


def test_of_six_at_once_one_has_the_host(yard: Any) -> None:
    yard.settle(1)
    for name in ("m1", "m2", "m3"):
        there = host(yard, name)

        def take(claim: str, there: Host = there) -> bool:
            try:
                bare_metal.apply(yard.api_client, there, bare_metal.take_document(there, claim, MARKS))
            except ObjectChanged:
                return False
            return True

        claims = [f"ncl_{number:026d}" for number in range(6)]
        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(take, claims)) == 1


def test_without_a_version_force_takes_a_host_from_its_consumer(yard: Any) -> None:
    take_host(yard)
    there = host(yard)
    yard.api_client.apply(bare_metal.take_document(there, OTHER, MARKS))
    assert bare_metal.holder(host(yard)) == OTHER


REFUSED: Mapping[str, Callable[[dict[str, Any]], None]] = {
    r"500: \.spec\.imaeg \(field not declared in schema\)": lambda d: d["spec"].update(imaeg={}),
    r"500: \.spec\.online \(expected boolean": lambda d: d["spec"].update(online="yes"),
    r"422 Invalid: spec\.image\.url": lambda d: d["spec"].update(image={"checksum": "a"}),
    r"422 Invalid: spec\.image\.format": lambda d: d["spec"].update(image={**IMAGE, "format": "iso"}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_the_definition_of_hosts_is_enforced(yard: Any, words: str) -> None:
    there = host(yard)
    wish = bare_metal.take_document(there, CLAIM, MARKS)
    REFUSED[words](wish)
    with pytest.raises(VendorRefused, match=words):
        bare_metal.apply(yard.api_client, there, wish)
    assert bare_metal.holder(host(yard)) is None
