"""Settings of node types of bare metal: images, networks, user data, selectors."""

from __future__ import annotations

import base64
import json
from ipaddress import ip_address
from typing import Any

import pytest

from stockyard.domain.nodes.os_images import OSImage
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.providers.nodes.metal3 import properties, selectors
from stockyard.providers.nodes.metal3.launch import user_data

D = properties.DOMAIN
URL, SHA = "https://images.example.test/a.qcow2", "a" * 64
IMAGE = {f"{D}image-url": URL, f"{D}image-checksum": SHA}
NET = {f"{D}network-cidr": "192.0.2.1/24", f"{D}network-ip-range": "192.0.2.10-192.0.2.12"}
NOBLE = OSImage("osi_1", "noble", URL, SHA, None, "qcow2", "t", "t")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (IMAGE, {"url": URL, "checksum": SHA, "checksumType": "sha256"}),
        ({**IMAGE, f"{D}image-checksum": f"md5:{'b' * 32}"}, {"url": URL, "checksum": "b" * 32, "checksumType": "md5"}),
        (
            {**IMAGE, f"{D}image-checksum": f"{URL}.sum"},
            {"url": URL, "checksum": f"{URL}.sum", "checksumType": "auto"},
        ),
        (
            {f"{D}image-url": URL, f"{D}image-format": "live-iso"},
            {"url": URL, "format": "live-iso"},
        ),
        ({f"{D}image-url": "oci://registry.example.test/a:1"}, {"url": "oci://registry.example.test/a:1"}),
    ],
)
def test_an_image_is_read(settings: dict[str, str], expected: dict[str, str]) -> None:
    assert properties.image_of(settings, None).document() == expected


def test_an_image_by_name_is_that_of_its_record_and_one_that_is_written_wins() -> None:
    named = {"vcluster.com/os-image": "noble"}
    assert properties.image_of(named, NOBLE).document()["format"] == "qcow2"
    assert properties.image_name({**named, **IMAGE}) is None
    for settings, words in ((named, "there is no OSImage noble"), ({}, "No image is named")):
        with pytest.raises(NodeCouldNotBeProvisioned, match=words):
            properties.image_of(settings, None)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({f"{D}image-url": "ftp://a/b"}, "image-url"),
        ({f"{D}image-url": "https://ann:secret@a/b"}, "image-url"),
        ({f"{D}image-checksum": ""}, "image-checksum"),
        ({f"{D}image-checksum": "xyz"}, "image-checksum"),
        ({f"{D}image-checksum-type": "crc"}, "image-checksum-type"),
        ({f"{D}image-format": "iso"}, "image-format"),
        ({f"{D}network-cidr": "192.0.2.1"}, "network-cidr"),
        ({f"{D}network-cidr": ""}, "network-ip-range"),
        ({f"{D}network-ip-range": "192.0.2.9-192.0.2.1"}, "network-ip-range"),
        ({f"{D}network-ip-range": "10.0.0.0-11.0.0.0"}, "network-ip-range"),
        ({f"{D}network-ip-range": "192.0.3.1"}, "network-ip-range"),
        ({f"{D}gateway": "198.51.100.1"}, "gateway"),
        ({f"{D}dns-servers": "ns.example.test"}, "dns-servers"),
        ({f"{D}ntp-servers": "a b"}, "ntp-servers"),
        ({f"{D}network-data": "nothing"}, "network-data"),
        ({f"{D}ip-address": "not-one"}, "ip-address"),
    ],
)
def test_a_fault_names_its_setting(change: dict[str, str], key: str) -> None:
    faults = list(properties.faults({**IMAGE, **NET, **change}))
    assert faults
    assert faults[0][0] == f"{D}{key}", faults


def test_published_settings_that_cannot_be_done_are_refused_by_name() -> None:
    for key in properties.NOT_HONOURED:
        assert [name for name, _ in properties.faults({**IMAGE, key: "a"})] == [key]


def test_user_data_of_the_owner_must_be_of_a_known_kind() -> None:
    (fault,) = properties.faults({**IMAGE, "vcluster.com/user-data": "hello"})
    assert fault[0] == "vcluster.com/user-data"


def test_a_network_is_written_as_openstack_has_it() -> None:
    settings = {**NET, f"{D}dns-servers": "192.0.2.2, 2001:db8::53"}
    document = properties.network_document(settings, "192.0.2.10", "52:54:00:00:00:01")
    (network,) = document["networks"]
    assert (network["ip_address"], network["netmask"], network["type"]) == ("192.0.2.10", "255.255.255.0", "ipv4")
    everywhere = str(ip_address(0))
    assert network["routes"] == [{"network": everywhere, "netmask": everywhere, "gateway": "192.0.2.1"}]
    assert [each["address"] for each in document["services"]] == ["192.0.2.2", "2001:db8::53"]
    six = properties.network_document({f"{D}network-cidr": "2001:db8::1/64"}, "2001:db8::10", "52:54:00:00:00:01")
    assert six["networks"][0]["routes"][0] == {"network": "::", "netmask": "::", "gateway": "2001:db8::1"}


def test_network_data_come_as_they_are_or_in_base64() -> None:
    text = json.dumps({"links": []})
    assert properties.network_data(text) == properties.network_data(base64.b64encode(text.encode()).decode())


def test_user_data_are_the_script_alone_or_behind_what_the_owner_says() -> None:
    script = "#!/bin/bash\necho ours\n"
    assert user_data(script, {}) == script
    own = "#cloud-config\nusers: []\n"
    whole = user_data(script, {"vcluster.com/user-data": own, f"{D}ntp-servers": "ntp.example.test"})
    assert whole.index("users: []") < whole.index("ntp.example.test") < whole.index("echo ours")
    assert whole.count("text/cloud-config") == 2


@pytest.mark.parametrize(
    ("selector", "text", "labels", "matches"),
    [
        ({}, "", {}, True),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, "a=1", {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}, "a in (x,y)", {"a": "y"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)", {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a", {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a", {}, True),
    ],
)
def test_a_selector_is_a_text_and_a_rule(
    selector: dict[str, Any], text: str, labels: dict[str, str], matches: bool
) -> None:
    assert selectors.text_of(selector) == text
    assert selectors.matches(selector, labels) is matches
