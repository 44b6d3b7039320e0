"""Settings of a node type that are no labels: image, root disk, network, user data of its owner."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface
from typing import Any

from stockyard.domain.nodes.os_images import PROPERTY, OSImage
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.yaml_documents import read_documents
from stockyard.providers.clouds.kubernetes.ranges import MOST_ADDRESSES, Address, addresses

DOMAIN = "kubevirt.vcluster.com/"
IMAGE_URL, IMAGE_CHECKSUM, DATA_SOURCE = (f"{DOMAIN}image-{name}" for name in ("url", "checksum", "datasource"))
DISK_SIZE, DISK_TEMPLATE = f"{DOMAIN}root-disk-size", f"{DOMAIN}root-disk-template"
CIDR, RANGE, SERVERS, NETWORK_DATA = (f"{DOMAIN}network-{name}" for name in ("cidr", "ip-range", "nameservers", "data"))
CARD, ATTACHMENT = f"{DOMAIN}network-interface", f"{DOMAIN}network-attachment-definition"
BINDING, INTERFACE_TEMPLATE, MULTUS_DEFAULT = (
    f"{DOMAIN}{name}" for name in ("interface-binding", "interface-template", "multus-default")
)
USER_DATA = "vcluster.com/user-data"
DEFAULT_CARD = "enp1s0"
"""Name of the first card in a guest whose firmware numbers its cards, as KubeVirt's does."""
BINDINGS = ("bridge", "masquerade", "sriov")
NOT_HONOURED: Mapping[str, str] = {
    IMAGE_CHECKSUM: "KubeVirt's documents of machines have no field for it: import the image into a DataSource, whose "
    f"DataVolume may have one, and name it by {DATA_SOURCE}",
    f"{DOMAIN}image-datavolume-template": f"no image is kept for several machines: write {DISK_TEMPLATE}",
    f"{DOMAIN}vm-template": "templates stand in the provider's document: write virtualMachineTemplate",
    "vcluster.com/ssh-keys": f"there are no records of SSH keys: write them in {USER_DATA}",
    "vcluster.com/user-data-template-config": f"templates of user data are not read: write {USER_DATA}",
    "vcluster.com/network-data-template-config": f"templates of network data are not read: write {NETWORK_DATA}",
    "vcluster.com/network-environment": "no networks are made for machines: their owner does it",
    "netris.vcluster.com/server-cluster": "Netris is not spoken to: its owner prepares the network, and it is named by "
    f"{ATTACHMENT}",
}
"""Published settings that cannot be done here, and what to do instead."""
_IMAGE = re.compile(r"(docker|https?)://[!-~]{1,2000}")
_OBJECT_NAME = re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
Interface = IPv4Interface | IPv6Interface


def faults(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Faults of settings, each with its key, as the end of a sentence that begins with the key."""
    yield from ((key, text) for key, text in NOT_HONOURED.items() if settings.get(key))
    readers: Mapping[str, Callable[[str], object]] = {
        IMAGE_URL: _image,
        DATA_SOURCE: _object_name,
        DISK_SIZE: _size,
        DISK_TEMPLATE: mapping,
        CIDR: interface,
        RANGE: addresses,
        SERVERS: servers,
        NETWORK_DATA: network_data,
        CARD: _card,
        ATTACHMENT: _object_name,
        BINDING: _binding,
        INTERFACE_TEMPLATE: mapping,
        MULTUS_DEFAULT: is_true,
    }
    bad: set[str] = set()
    for key, reader in readers.items():
        try:
            if text := settings.get(key):
                reader(text)
        except ValueError as error:
            bad.add(key)
            yield key, str(error)
    if has_image(settings) and not settings.get(DISK_SIZE):
        yield DISK_SIZE, "this setting is required with an image"
    yield from _of_disk(settings)
    if not bad & {CIDR, RANGE}:
        yield from _of_network(settings)


def _of_disk(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not has_image(settings):
        text = f"needs {IMAGE_URL}, {DATA_SOURCE} or {PROPERTY}"
        yield from ((key, text) for key in (DISK_SIZE, DISK_TEMPLATE) if settings.get(key))


def _of_network(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not settings.get(ATTACHMENT):
        keys = (BINDING, INTERFACE_TEMPLATE, MULTUS_DEFAULT)
        yield from ((key, f"needs {ATTACHMENT}") for key in keys if settings.get(key))
    if not settings.get(CIDR):
        yield from ((key, f"needs {CIDR}") for key in (RANGE, SERVERS) if settings.get(key))
        return
    if not settings.get(SERVERS):
        yield SERVERS, f"this setting is required with {CIDR}"
    network = interface(settings[CIDR]).network
    outside = [each for each in _ends(settings) if each not in network]
    if outside:
        yield RANGE, f"{outside[0]} is not in {network}"
    elif next(candidates(settings), None) is None:
        yield RANGE, "has no address for a machine"


def _ends(settings: Mapping[str, str]) -> list[Address]:
    text = settings.get(RANGE)
    listed = addresses(text) if text else []
    return [listed[0], listed[-1]] if listed else []


def has_image(settings: Mapping[str, str]) -> bool:
    """Whether a disk is made from an image."""
    return any(settings.get(key) for key in (IMAGE_URL, DATA_SOURCE, PROPERTY))


def image_name(settings: Mapping[str, str]) -> str | None:
    """The name of the OSImage that is meant; None where the image is written itself, or there is none."""
    if settings.get(IMAGE_URL) or settings.get(DATA_SOURCE):
        return None
    return settings.get(PROPERTY) or None


def with_image(settings: Mapping[str, str], os_image: Callable[[str], OSImage | None]) -> dict[str, str]:
    """Settings with the URL of the OSImage that they name. Raises ``ValueError`` for an image that is not there, or
    that no root disk is made from."""
    name = image_name(settings)
    if name is None:
        return dict(settings)
    image = os_image(name)
    if image is None:
        raise ValueError(f"there is no OSImage {name}")
    if not _IMAGE.fullmatch(image.url):
        raise ValueError(f"OSImage {name} is at {image.url}; CDI reads docker://, http:// and https:// alone")
    if image.format == "live-iso":
        raise ValueError(f"OSImage {name} is a live ISO, and no root disk is made from one")
    return {**settings, IMAGE_URL: image.url}


def _image(text: str) -> None:
    if not _IMAGE.fullmatch(text):
        raise ValueError("must begin with docker://, http:// or https://")


def _object_name(text: str) -> None:
    if not _OBJECT_NAME.fullmatch(text):
        raise ValueError("must be the name of an object, or namespace/name")


def _size(text: str) -> None:
    try:
        thousandths = milli(text)
    except ValueError:
        thousandths = 0
    if thousandths <= 0:
        raise ValueError("must be a quantity above 0, such as 20Gi")


def _card(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,14}", text):
        raise ValueError("must be the name of a network card in the guest, such as enp1s0")


def _binding(text: str) -> None:
    if text not in BINDINGS:
        raise ValueError(f"must be {', '.join(BINDINGS[:-1])} or {BINDINGS[-1]}")


def is_true(text: str | None) -> bool:
    """The setting as a boolean. Raises ``ValueError`` for another text."""
    if text not in (None, "true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def mapping(text: str) -> dict[str, Any]:
    """An object that was written as JSON or YAML. Raises ``ValueError``."""
    documents = read_documents(text)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ValueError("must be one object, as JSON or YAML")
    return documents[0]


def interface(text: str) -> Interface:
    """A network whose host part is the gateway; without a host part, the gateway is its first address. Raises
    ``ValueError``."""
    try:
        own = ip_interface(text)
    except ValueError:
        own = None
    if own is None or "/" not in text:
        raise ValueError("must be an address and a prefix length, such as 192.168.100.1/24")
    if own.network.num_addresses > 2 and own.ip == own.network.network_address:
        return ip_interface(f"{own.ip + 1}/{own.network.prefixlen}")
    return own


def candidates(settings: Mapping[str, str]) -> Iterator[str]:
    """Addresses that a machine may have, in order: of the range, or all of the network; never the gateway's, nor the
    first and the last of the network."""
    own = interface(settings[CIDR])
    network = own.network
    excluded = {own.ip, network.network_address, network.broadcast_address} if network.num_addresses > 2 else {own.ip}
    text = settings.get(RANGE)
    numbers = (
        (int(each) for each in addresses(text))
        if text
        else range(
            int(network.network_address), int(network.network_address) + min(network.num_addresses, MOST_ADDRESSES)
        )
    )
    for number in numbers:
        address = type(own.ip)(number)
        if address not in excluded:
            yield str(address)


def servers(text: str) -> list[str]:
    """Name servers, with commas between them. Raises ``ValueError``."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        try:
            ip_address(part)
        except ValueError:
            raise ValueError(f"{part} is no address") from None
    if not parts:
        raise ValueError("must be addresses, with commas between them")
    return parts


def network_data(text: str) -> str:
    """Network configuration of cloud-init, which is written in base64. Raises ``ValueError``."""
    try:
        plain = base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("must be a network configuration of cloud-init in base64") from None
    if not isinstance(mapping(plain), dict):
        raise ValueError("must be a network configuration of cloud-init in base64")
    return plain
