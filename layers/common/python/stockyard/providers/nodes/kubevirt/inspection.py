"""Faults of a provider's document: those that can be read in it, and those that its host finds by a dry run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.nodes.os_images import PROPERTY, OSImage
from stockyard.domain.records import CloudAccount, NodeProvider
from stockyard.domain.values.pointers import pointer
from stockyard.errors import VendorNotFound, VendorQuotaExceeded, VendorRefused
from stockyard.ports import Finding
from stockyard.providers.clouds.kubernetes import reach
from stockyard.providers.clouds.kubernetes.features import KUBEVIRT
from stockyard.providers.clouds.kubernetes.node_room import Rooms
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.nodes.kubevirt import properties
from stockyard.providers.nodes.kubevirt.templates import (
    BASE,
    BY_NAME,
    CHANGE,
    MACHINE,
    REPLACEMENT,
    mapping_at,
    template_of,
)
from stockyard.providers.nodes.kubevirt.virtual_machines import API_VERSION, KIND, NO_FIELDS, Names, document

VERSIONS = {"kubevirt": "v1.8.2", "cdi": "v1.65.0"}
"""Releases that the published documents install where they name none."""
_RELEASES = "https://github.com/kubevirt"
_KUBEVIRT = f"{_RELEASES}/kubevirt/releases/download/{VERSIONS['kubevirt']}/kubevirt-{{part}}.yaml"
_CDI = f"{_RELEASES}/containerized-data-importer/releases/download/{VERSIONS['cdi']}/cdi-{{part}}.yaml"
COMMANDS = {
    "kubevirt": " && ".join(
        f"kubectl apply -f {url.format(part=operator)} -f {url.format(part=instance)}"
        for url, operator, instance in ((_KUBEVIRT, "operator", "cr"), (_CDI, "operator", "cr"))
    ),
    "vClusterDeviceOperator": "helm install its chart, as its own page says",
}
"""What a host's owner runs in place of what a document asks us to deploy."""
_WITHOUT_IMAGE = f"needs {properties.IMAGE_URL} with {properties.DISK_SIZE}, or a volume in the template"
_OBJECTS = (
    *(("metadata",), ("metadata", "labels"), ("metadata", "annotations")),
    *(MACHINE[:length] for length in range(1, len(MACHINE) + 1)),
    *((*MACHINE[:2], "metadata"), (*MACHINE[:2], "metadata", "labels")),
    *((*MACHINE, "domain"), (*MACHINE, "domain", "devices"), (*MACHINE, "domain", "resources")),
)
_LISTS = (*sorted(BY_NAME), ("spec", "dataVolumeTemplates"))
MOST_TRIALS = 10
"""Templates of a provider that are tried at once, each but once; the others with their first machines."""
_ABSENT_IMAGE = "https://images.invalid/absent"
"""Stands in a trial for an image that is not entered yet."""
_TRIAL = f"kubernetes apply {KIND}"
_FAULT = re.compile(r"(?P<path>[A-Za-z0-9_$/.\[\]-]{1,400}) \((?P<reason>[^()]{1,60})\)")
_TOKEN = re.compile(r"([^.\[\]]+)|\[(\d*)\]")


def namespace(provider: NodeProvider) -> str:
    """Namespace of the provider's machines."""
    return str(block_of(provider)["clusterRef"]["namespace"])


def findings(provider: NodeProvider, account: CloudAccount | None) -> Iterator[Finding]:
    """Faults that can be read in the document, each at its field."""
    block = block_of(provider)
    for name, part in (block.get("deploy") or {}).items():
        if (part or {}).get("enabled"):
            text = f"Nothing is installed into a host. Its owner does it: {COMMANDS[name]}"
            yield Finding(pointer("spec", "deploy", name, "enabled"), text)
    if block.get("namespaceStrategy") not in (None, "Provider"):
        text = "Machines stand in the namespace of the provider; an account names the namespaces that it may work in."
        yield Finding("/spec/namespaceStrategy", text)
    if fault := reach.network_fault(provider):
        yield Finding(pointer("properties", reach.NETWORK), fault)
    yield from _of_account(provider, account)
    for index, entry in enumerate(block.get("nodeTypes") or ()):
        here = ("spec", "nodeTypes", index)
        settings = {**provider.properties, **(entry.get("properties") or {})}
        yield from (
            Finding(pointer(*here, "properties", key), f"{key}: {text}.") for key, text in properties.faults(settings)
        )
        yield from _of_template(block, entry, here, settings)


def remarks(rooms: Rooms, totals: Mapping[str, int] | None) -> Iterator[Finding]:
    """Warnings about room: a host whose nodes could not be counted, types for which none has room."""
    if totals is None:
        text = f"The room of the host's nodes is not counted, so maxCapacity alone bounds machines: {rooms.blocker}"
        yield Finding("/spec/clusterRef/cluster", text, warning=True)
        return
    for index, (name, total) in enumerate(totals.items()):
        if total == 0:
            text = f"No node of the host has room for a machine of node type {name} now."
            yield Finding(pointer("spec", "nodeTypes", index), text, warning=True)


def _of_account(provider: NodeProvider, account: CloudAccount | None) -> Iterator[Finding]:
    if account is None:
        return
    namespaces = account.attributes.get("namespaces") or ()
    if namespace(provider) not in namespaces:
        text = f"The account may work in {', '.join(namespaces)} alone."
        yield Finding("/spec/clusterRef/namespace", text)
    if KUBEVIRT not in (account.attributes.get("features") or ()):
        text = f"Cloud account {account.id} is not for virtual machines: add {KUBEVIRT} to its features."
        yield Finding("/spec/clusterRef/cluster", text)


def _of_template(
    block: Mapping[str, Any], entry: Mapping[str, Any], here: tuple[str | int, ...], settings: Mapping[str, str]
) -> Iterator[Finding]:
    template = template_of(block, entry)
    field_path = _path(entry, here)
    expected = {"apiVersion": API_VERSION, "kind": KIND}
    for name, value in expected.items():
        if template.get(name) not in (None, value):
            yield Finding(pointer(*field_path, name), f"must be {value}, or absent")
    for path, text in NO_FIELDS.items():
        if path[-1] in mapping_at(template, path[:-1]):
            yield Finding(pointer(*field_path, *path), text, warning=True)
    misshapen = [Finding(pointer(*field_path, *path), f"must be {word}") for path, word in _misshapen(template)]
    if misshapen:
        yield from misshapen
        return
    volumes = mapping_at(template, MACHINE).get("volumes")
    if not properties.has_image(settings) and not volumes:
        yield Finding(pointer(*field_path), f"Node type {entry['name']} {_WITHOUT_IMAGE}.")


def _misshapen(template: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Parts of a template that we add to and that are neither absent nor of their kind: path, and what it must be."""
    for path in _OBJECTS:
        part = mapping_at(template, path[:-1]).get(path[-1])
        if part is not None and not isinstance(part, Mapping):
            yield path, "an object"
    for path in _LISTS:
        entries = mapping_at(template, path[:-1]).get(path[-1])
        if entries is not None and not (isinstance(entries, list) and all(isinstance(e, Mapping) for e in entries)):
            yield path, "a list of objects"


def _path(entry: Mapping[str, Any], here: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Place of a node type's template in the document: its own, or the provider's where it has none."""
    member = next((name for name in (REPLACEMENT, CHANGE) if entry.get(name) is not None), None)
    return ("spec", BASE) if member is None else (*here, member)


def judged(api: KubernetesApi, provider: NodeProvider, os_images: Callable[[str], OSImage | None]) -> Iterator[Finding]:
    """Faults that the host finds when a machine of each type is made by way of trial. Changes nothing. Images that are
    named by ``os_images`` are looked at first.

    Raises ``VendorError`` where the host cannot tell.
    """
    block, space = block_of(provider), namespace(provider)
    trials: list[Mapping[str, Any]] = []
    for index, entry in enumerate(block.get("nodeTypes") or ()):
        here = ("spec", "nodeTypes", index)
        settings = {**provider.properties, **(entry.get("properties") or {})}
        try:
            resolved = _with_image(settings, os_images)
        except ValueError as error:
            yield Finding(pointer(*here, "properties", PROPERTY), f"{PROPERTY}: {error}.")
            continue
        trial = document(template_of(block, entry), Names("stockyard-trial", space, {}), entry, resolved)
        if trial["spec"] in trials or len(trials) >= MOST_TRIALS:
            continue
        trials.append(trial["spec"])
        try:
            api.apply(trial, dry_run=True)
        except VendorQuotaExceeded:
            continue  # the template fits; there may be room when a claim comes
        except VendorNotFound as error:
            yield from _absence(error, space)
            return
        except VendorRefused as error:
            if not error.detail.startswith(_TRIAL):
                raise  # not of the template: the host has another certificate, or none is to be asked at its address
            yield from _refusals(error.detail, block, entry, here)


def _with_image(settings: Mapping[str, str], os_images: Callable[[str], OSImage | None]) -> dict[str, str]:
    """Settings with the URL of the OSImage that they name; one that is not entered yet may be before the first machine.
    Raises ``ValueError`` for an image that cannot be used."""
    name = properties.image_name(settings)
    if name is not None and os_images(name) is None:
        return {**settings, properties.IMAGE_URL: _ABSENT_IMAGE}
    return properties.with_image(settings, os_images)


def _absence(error: VendorNotFound, space: str) -> Iterator[Finding]:
    if error.code == "NotServed":
        text = f"The host has no KubeVirt. Its owner installs it: {COMMANDS['kubevirt']}"
        yield Finding("/spec/clusterRef/cluster", text)
    else:
        yield Finding("/spec/clusterRef/namespace", f"The host has no namespace {space}.")


def _refusals(
    text: str, block: Mapping[str, Any], entry: Mapping[str, Any], here: tuple[str | int, ...]
) -> Iterator[Finding]:
    """A finding for each field that the host has refused, at the place where it was written."""
    matches = [match for match in _FAULT.finditer(text) if match["path"].lstrip(".").startswith(("spec", "metadata"))]
    name = entry["name"]
    if not matches:
        yield Finding(pointer(*_path(entry, here)), f"The host refuses the template of node type {name}: {text}.")
    for match in matches:
        path, reason = match["path"].lstrip("."), match["reason"]
        words = f"The host refuses {path} of node type {name}: {reason}."
        yield Finding(pointer(*_written_at(path, block, entry, here)), words)


def _written_at(
    path: str, block: Mapping[str, Any], entry: Mapping[str, Any], here: tuple[str | int, ...]
) -> tuple[str | int, ...]:
    """The place in the document where a field of the merged template was written, as near as it can be told."""
    tokens = [name or (int(number) if number else -1) for name, number in _TOKEN.findall(path)]
    best: tuple[str | int, ...] = _path(entry, here)
    deepest = 0
    for field_path, template in (
        ((*here, REPLACEMENT), entry.get(REPLACEMENT)),
        ((*here, CHANGE), entry.get(CHANGE)),
        (("spec", BASE), block.get(BASE) if entry.get(REPLACEMENT) is None else None),
    ):
        reached = _walked(template, tokens)
        if len(reached) > deepest:
            best, deepest = (*field_path, *reached), len(reached)
    return best


def _walked(template: Any, tokens: Sequence[str | int]) -> list[str | int]:
    """The names and numbers along a path for as long as the template has them."""
    reached: list[str | int] = []
    for token in tokens:
        inner = _entry(template, token)
        if inner is None:
            break
        template = inner
        reached.append(token)
    return reached


def _entry(template: Any, token: str | int) -> Any:
    if isinstance(token, str):
        return template.get(token) if isinstance(template, Mapping) else None
    return template[token] if isinstance(template, list) and 0 <= token < len(template) else None
