"""Settings of a node type that are no labels: image, network, and the one host that is meant."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface
from typing import Any

from stockyard.domain.nodes.os_images import PROPERTY, OSImage, has_credentials
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.providers.clouds.kubernetes.bare_metal import ADDRESS
from stockyard.providers.clouds.kubernetes.ranges import addresses

DOMAIN = "metal3.vcluster.com/"
IMAGE_URL, IMAGE_CHECKSUM = f"{DOMAIN}image-url", f"{DOMAIN}image-checksum"
IMAGE_CHECKSUM_TYPE, IMAGE_FORMAT = f"{DOMAIN}image-checksum-type", f"{DOMAIN}image-format"
SERVER_NAME = f"{DOMAIN}server-name"
CIDR, RANGE, GATEWAY = f"{DOMAIN}network-cidr", f"{DOMAIN}network-ip-range", f"{DOMAIN}gateway"
DNS, NTP, NETWORK_DATA = f"{DOMAIN}dns-servers", f"{DOMAIN}ntp-servers", f"{DOMAIN}network-data"
USER_DATA = "vcluster.com/user-data"
OF_A_HOST = frozenset({ADDRESS, CIDR, GATEWAY, DNS, NTP, NETWORK_DATA})
"""Settings that a host's own annotations may say; they win over a type's."""
NOT_HONOURED: Mapping[str, str] = {
    "vcluster.com/ssh-keys": f"there are no records of SSH keys: write them in {USER_DATA}",
    "vcluster.com/user-data-template-config": f"templates of user data are not read: write {USER_DATA}",
    "vcluster.com/network-data-template-config": f"templates of network data are not read: write {NETWORK_DATA}, or an "
    "annotation of the host",
    "vcluster.com/network-environment": "no networks are made for hosts: their owner does it",
    "netris.vcluster.com/server-cluster": "Netris is not spoken to: its owner prepares the network",
}
"""Published settings that cannot be done here, and what to do instead."""
CHECKSUM_TYPES, FORMATS = ("md5", "sha256", "sha512", "auto"), ("raw", "qcow2", "vdi", "vmdk", "live-iso")
_HEX = {32: "md5", 64: "sha256", 128: "sha512"}
_DIGEST = re.compile(r"[0-9a-fA-F]{32,128}")
_URL = re.compile(r"(https?|oci)://[!-~]{1,2000}")
Interface = IPv4Interface | IPv6Interface


@dataclass(frozen=True, slots=True)
class Image:
    """Image of a host as its operator wants it."""

    url: str
    checksum: str | None = None
    checksum_type: str | None = None
    format: str | None = None

    def document(self) -> dict[str, str]:
        """The image as a host's ``spec.image``."""
        fields = {
            "url": self.url,
            "checksum": self.checksum,
            "checksumType": self.checksum_type,
            "format": self.format,
        }
        return {name: value for name, value in fields.items() if value is not None}


def image_name(properties: Mapping[str, str]) -> str | None:
    """The name of the OSImage that is meant; None where the image is written itself, or none is."""
    return None if properties.get(IMAGE_URL) else properties.get(PROPERTY) or None


def image_of(properties: Mapping[str, str], os_image: OSImage | None) -> Image:
    """The image that a host is written from. Raises ``NodeCouldNotBeProvisioned`` where nobody says it."""
    if url := properties.get(IMAGE_URL):
        checksum, checksum_type = _checksum(properties.get(IMAGE_CHECKSUM), properties.get(IMAGE_CHECKSUM_TYPE))
        image = Image(url, checksum, checksum_type, properties.get(IMAGE_FORMAT) or None)
    elif os_image is not None:
        checksum, checksum_type = _checksum(os_image.checksum, os_image.checksum_type)
        image = Image(os_image.url, checksum, checksum_type, os_image.format)
    elif name := image_name(properties):
        raise NodeCouldNotBeProvisioned(f"{PROPERTY}: there is no OSImage {name}.")
    else:
        raise NodeCouldNotBeProvisioned(f"No image is named: {IMAGE_URL} and {IMAGE_CHECKSUM}, or {PROPERTY}.")
    fault = next(_image_faults(image), None)
    if fault is not None:
        raise NodeCouldNotBeProvisioned(f"{fault[0]}: {fault[1]}.")
    return image


def faults(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Faults of settings, each with its key; whether the image that is named is there, only a launch tells."""
    yield from ((key, text) for key, text in NOT_HONOURED.items() if properties.get(key))
    if url := properties.get(IMAGE_URL):
        yield from _image_faults(
            Image(url, *_checksum(properties.get(IMAGE_CHECKSUM), properties.get(IMAGE_CHECKSUM_TYPE)))
        )
    elif not image_name(properties):
        yield IMAGE_URL, f"this setting is required, with {IMAGE_CHECKSUM}; or {PROPERTY}"
    if (form := properties.get(IMAGE_FORMAT)) and form not in FORMATS:
        yield IMAGE_FORMAT, f"must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    if (own := properties.get(USER_DATA)) and not own.startswith(("#!", "#cloud-config")):
        yield USER_DATA, "must begin with #cloud-config, or as a script with #!"
    yield from network_faults(properties)


def network_faults(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Faults of the settings of a network, each with its key."""
    readers: dict[str, Callable[[str], object]] = {
        CIDR: interface,
        RANGE: addresses,
        GATEWAY: ip_address,
        ADDRESS: ip_address,
        DNS: servers,
    }
    readers |= {NTP: partial(servers, names=True), NETWORK_DATA: network_data}
    for key, reader in readers.items():
        try:
            if text := settings.get(key):
                reader(text)
        except ValueError as error:
            yield key, str(error)
            return
    if not settings.get(CIDR):
        yield from ((key, f"needs {CIDR}") for key in (RANGE, ADDRESS) if settings.get(key))
        return
    own = interface(settings[CIDR])
    inside = [(RANGE, addresses(settings[RANGE])[each]) for each in (0, -1) if settings.get(RANGE)]
    inside += [(key, ip_address(settings[key])) for key in (ADDRESS, GATEWAY) if settings.get(key)]
    for key, address in inside:
        if address not in own.network:
            yield key, f"{address} is not in {own.network}"
            return


def interface(text: str) -> Interface:
    """A network whose host part is the gateway. Raises ``ValueError``."""
    try:
        own = ip_interface(text)
    except ValueError:
        raise ValueError("must be an address and a prefix length, such as 192.168.100.1/24") from None
    if "/" not in text:
        raise ValueError("must have a prefix length, such as 192.168.100.1/24")
    return own


def servers(text: str, *, names: bool = False) -> list[str]:
    """Servers, with commas between them: addresses, or ``names`` too. Raises ``ValueError``."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        try:
            ip_address(part)
        except ValueError:
            if not (names and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?", part)):
                raise ValueError(f"{part} is no address{' or name' if names else ''}") from None
    return parts


def network_data(text: str) -> bytes:
    """Network data as they are handed to a host: text, or the same in base64. Raises ``ValueError``."""
    plain = text.strip()
    if not plain.startswith("{") and ":" not in plain:
        try:
            plain = base64.b64decode(plain, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            plain = ""
    if ":" not in plain:
        raise ValueError("must be network data of OpenStack, as JSON or YAML, or the same in base64")
    return plain.encode()


def network_document(settings: Mapping[str, str], address: str, mac: str) -> dict[str, Any]:
    """Network data, as OpenStack has them, of one address at the port with that MAC."""
    own = interface(settings[CIDR])
    gateway = str(settings.get(GATEWAY) or own.ip)
    everywhere = str(ip_address(0)) if own.version == 4 else "::"
    network = {
        "id": "stockyard",
        "type": f"ipv{own.version}",
        "link": "boot",
        "ip_address": address,
        "netmask": str(own.network.netmask),
        "routes": [{"network": everywhere, "netmask": everywhere, "gateway": gateway}],
    }
    return {
        "links": [{"id": "boot", "type": "phy", "ethernet_mac_address": mac}],
        "networks": [network],
        "services": [{"type": "dns", "address": server} for server in servers(settings.get(DNS) or "")],
    }


def _checksum(text: str | None, kind: str | None) -> tuple[str | None, str | None]:
    """Digest and its kind: as it is written, by a prefix as in ``sha256:``, or by its length."""
    if not text:
        return None, kind or None
    prefix, colon, digest = text.partition(":")
    if colon and prefix in CHECKSUM_TYPES and not digest.startswith("//"):
        return digest, kind or prefix
    return text, kind or _HEX.get(len(text), "auto" if text.startswith("http") else None)


def _image_faults(image: Image) -> Iterator[tuple[str, str]]:
    if not _URL.fullmatch(image.url):
        yield IMAGE_URL, "must be http://, https:// or oci://, a host and a path"
    elif has_credentials(image.url):
        yield IMAGE_URL, "must hold no user name or password: it is shown to whoever reads"
    needs_none = image.format == "live-iso" or image.url.startswith("oci://")
    if image.checksum is None and not needs_none:
        yield IMAGE_CHECKSUM, "this setting is required beside the image's URL"
    elif image.checksum is not None and not (_URL.fullmatch(image.checksum) or _DIGEST.fullmatch(image.checksum)):
        yield IMAGE_CHECKSUM, "must be a digest in hexadecimal digits, or the URL of a file with one"
    if image.checksum_type is not None and image.checksum_type not in CHECKSUM_TYPES:
        yield IMAGE_CHECKSUM_TYPE, f"must be {', '.join(CHECKSUM_TYPES[:-1])} or {CHECKSUM_TYPES[-1]}"
