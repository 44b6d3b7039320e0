"""Contents of a certificate signing request (PKCS#10). Strict: what this does not know, it does not take."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from ipaddress import ip_address

from .der import INTEGER, OBJECT, OCTET_STRING, PRINTABLE, SEQUENCE, SET, UTF8, Element, whole

# A reader that skips what it does not expect could read another request than the one that is signed in the end.
_PEM = re.compile(
    r"-----BEGIN CERTIFICATE REQUEST-----\n((?:[A-Za-z0-9+/]{1,76}={0,2}\n)+)-----END CERTIFICATE REQUEST-----\n?"
)
_LARGEST = 16 * 1024
_ATTRIBUTES, _DNS_NAME, _ADDRESS = 0xA0, 0x82, 0x87
_COMMON_NAME, _ORGANIZATION = bytes.fromhex("550403"), bytes.fromhex("55040a")
_EXTENSION_REQUEST = bytes.fromhex("2a864886f70d01090e")
_ALTERNATIVE_NAMES = bytes.fromhex("551d11")


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """Subject and alternative names. ``addresses`` are in the shortest form of their text."""

    organization: str
    common_name: str
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def parse(request: object) -> SigningRequest:
    """The request of a CertificateSigningRequest: PEM in base64. Raises ``ValueError`` that says what is unknown."""
    try:
        pem = base64.b64decode(str(request), validate=True).decode("ascii")
    except ValueError:
        raise ValueError("the request is no PEM in base64") from None
    match = _PEM.fullmatch(pem) if len(pem) <= _LARGEST else None
    if match is None:
        raise ValueError("the request is not one block of PEM")
    try:
        encoded = base64.b64decode(match[1].replace("\n", ""), validate=True)
        return _request(whole(encoded))
    except ValueError as error:
        raise ValueError(f"the request is malformed: {error}") from None


def _request(element: Element) -> SigningRequest:
    signed, _, _ = _exactly(3, element.expected(SEQUENCE).parts(), "request, algorithm and signature")
    fields = signed.expected(SEQUENCE).parts()
    version, subject, _, *more = _exactly(4, fields, "version, subject, key and attributes")
    if version.expected(INTEGER).content != b"\x00":
        raise ValueError("its version is unknown")
    organization, common_name = _subject(subject)
    dns_names, addresses = _attributes(more[0])
    return SigningRequest(organization, common_name, dns_names, addresses)


def _exactly(count: int, elements: list[Element], meaning: str) -> list[Element]:
    if len(elements) != count:
        raise ValueError(f"{meaning} are needed, these are {len(elements)} elements")
    return elements


def _subject(name: Element) -> tuple[str, str]:
    """The one organization and the one common name of the subject, which has nothing else."""
    texts: dict[bytes, str] = {}
    for relative in name.expected(SEQUENCE).parts():
        (pair,) = _exactly(1, relative.expected(SET).parts(), "one name in each part of the subject")
        kind, value = _exactly(2, pair.expected(SEQUENCE).parts(), "type and value of a name")
        if value.tag not in (UTF8, PRINTABLE) or kind.expected(OBJECT).content in texts:
            raise ValueError("the subject has a name twice, or one that is no text")
        texts[kind.content] = value.content.decode()
    if set(texts) != {_ORGANIZATION, _COMMON_NAME}:
        raise ValueError("the subject is not one organization and one common name")
    return texts[_ORGANIZATION], texts[_COMMON_NAME]


def _attributes(attributes: Element) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """DNS names and addresses. The one attribute asks for extensions, the one extension is alternative names."""
    listed = attributes.expected(_ATTRIBUTES).parts()
    if not listed:
        return (), ()
    (attribute,) = _exactly(1, listed, "one attribute at most")
    kind, values = _exactly(2, attribute.expected(SEQUENCE).parts(), "type and values of an attribute")
    (extensions,) = _exactly(1, values.expected(SET).parts(), "one value of an attribute")
    (extension,) = _exactly(1, extensions.expected(SEQUENCE).parts(), "one extension")
    parts = extension.expected(SEQUENCE).parts()
    name, value = _exactly(2, [parts[0], *parts[-1:]] if 2 <= len(parts) <= 3 else parts, "name and value")
    if (kind.expected(OBJECT).content, name.expected(OBJECT).content) != (_EXTENSION_REQUEST, _ALTERNATIVE_NAMES):
        raise ValueError("it has an attribute or an extension that a kubelet does not ask for")
    return _names(whole(value.expected(OCTET_STRING).content))


def _names(names: Element) -> tuple[tuple[str, ...], tuple[str, ...]]:
    dns_names: list[str] = []
    addresses: list[str] = []
    for name in names.expected(SEQUENCE).parts():
        if name.tag == _DNS_NAME:
            dns_names.append(name.content.decode("ascii"))
        elif name.tag == _ADDRESS:
            addresses.append(str(ip_address(name.content)))
        else:
            raise ValueError("it has an alternative name that is neither DNS name nor address")
    return tuple(dns_names), tuple(addresses)
