"""Content of a version of a cluster profile, and its use in a cluster. Pure functions of plain documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.profiles.pack_templates import VARIABLE, Object, TemplateFault, Terms, documents, fill, paths
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.rights import OPERATOR

OS, K8S, CNI, CSI, ADD_ON = "os", "k8s", "cni", "csi", "addon"
LAYERS = (OS, K8S, CNI, CSI, ADD_ON)
"""In the order in which they are applied."""
MAX_CONTENT = 4 * 1024 * 1024
"""Bytes of a version's content before it is compressed."""
MAX_OBJECTS = 1000
"""Of all packs of a cluster, so that the list of them fits into one record."""

Content = Mapping[str, Any]
"""``variables`` and ``packs``, as ``models.cluster_profiles`` has read them, manifests with their text."""
Fault = tuple[tuple[str | int, ...], str]


PROFILE_KIND = "ClusterProfile"
PROFILE_LABEL = "stockyard.dev/profile"
"""The label of each object that a profile has brought."""


@dataclass(frozen=True, slots=True)
class ProfileDocument:
    """A version of a profile that a manifest asks for; None leaves what the profile has."""

    name: str
    version: str
    content: Content
    description: str | None = None
    cloud: str | None = None


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack as it is to stand in a cluster."""

    profile: str
    layer: str
    name: str
    tag: str
    values: Mapping[str, Any]
    objects: tuple[Object, ...]
    rights: str = OPERATOR
    """With whose rights it is applied, see ``pack_rights``."""

    @property
    def key(self) -> str:
        """Name of the pack among those of a cluster."""
        return f"{self.profile}/{self.name}"


def digest(text: str | bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def kubernetes_version(content: Content) -> str:
    """The minor that the profile's layer k8s gives its clusters; empty where it has none."""
    return next((str(pack["tag"]) for pack in content["packs"] if pack["layer"] == K8S), "")


def variables_of(content: Content, overrides: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """The values of all variables, and what is wrong with those that are overrides, by name."""
    declared = {str(variable["name"]): variable for variable in content["variables"]}
    lacking = f"the profile has no such variable; it has {', '.join(declared) or 'none'}"
    faults: list[Fault] = [((name,), lacking) for name in overrides if name not in declared]
    values: dict[str, Any] = {}
    for name, variable in declared.items():
        value = _spoken_value(variable, overrides.get(name, variable.get("default")))
        if value is None:
            if variable.get("required"):
                faults.append(((name,), "this variable is required"))
            values[name] = ""
            continue
        fault = value_fault(variable, value)
        if fault:
            faults.append(((name,), fault))
        values[name] = value
    return values, faults


def _spoken_value(variable: Mapping[str, Any], value: Any) -> Any:
    """The value; of a number or a boolean also as a text, since forms of others have nothing but texts."""
    if variable["type"] == "string" or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def value_fault(variable: Mapping[str, Any], value: Any) -> str | None:
    """Fault of a value of a variable, or None."""
    kind = variable["type"]
    types: dict[str, type[Any] | tuple[type[Any], ...]] = {"string": str, "number": (int, float), "boolean": bool}
    if not isinstance(value, types[kind]) or (kind == "number" and isinstance(value, bool)):
        return f"must be a {kind}"
    pattern = variable.get("regex")
    return regex_fault(pattern, str(value)) if pattern else None


def is_regex(text: str) -> bool:
    """Whether the text is a regular expression of RE2."""
    import re2  # only where a variable has an expression

    try:
        re2.compile(text, _quiet())
    except re2.error:
        return False
    return True


def regex_fault(pattern: str, text: str) -> str | None:
    """Reason why the text does not match the expression as a whole, or None where it does. The time is linear in the
    text's length (RE2), whatever the expression is."""
    import re2

    try:
        matched = re2.fullmatch(pattern, text, _quiet())
    except re2.error:
        return f"cannot be matched: {pattern} is no regular expression of RE2"
    return None if matched else f"does not match the variable's regex {pattern}"


def _quiet() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return options


def overlaid(values: Any, other: Any) -> Any:
    """Values under others: objects field by field, everything else as a whole."""
    if not isinstance(values, Mapping) or not isinstance(other, Mapping):
        return other
    merged = dict(values)
    for name, value in other.items():
        merged[name] = overlaid(values[name], value) if name in values else value
    return merged


def packs_of(
    content: Content, profile: str, variables: Mapping[str, Any], pack_values: Mapping[str, Any]
) -> tuple[list[Pack], list[Fault]]:
    """The packs in order, with effective values; faults by path below the packs.

    ``variables`` are complete, see :func:`variables_of`.
    """
    terms = Terms({(VARIABLE, name): value for name, value in variables.items()})
    packs: list[Pack] = []
    faults: list[Fault] = []
    for index, document in enumerate(content["packs"]):
        values = overlaid(document.get("values") or {}, pack_values.get(document["name"], {}))
        try:
            values = fill(values, terms)
        except TemplateFault as fault:
            faults.append(((index, "values"), str(fault)))
            continue
        here = terms.with_values(paths(values))
        objects: list[Object] = []
        for number, manifest in enumerate(document.get("manifests") or ()):
            try:
                items = documents(manifest["content"], here)
                objects += [_marked(_within(item, document.get("namespace")), profile) for item in items]
            except TemplateFault as fault:
                faults.append(((index, "manifests", number, "content"), str(fault)))
        repeated = _repeated(objects)
        if repeated:
            faults.append(((index, "manifests"), f"has {repeated} twice"))
        packs.append(
            Pack(profile, document["layer"], document["name"], document["tag"], values, tuple(_ordered(objects)))
        )
    return packs, faults


_WITHOUT_NAMESPACE = frozenset(
    {
        *("Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "APIService", "Node"),
        *("StorageClass", "CSIDriver", "CSINode", "PersistentVolume", "VolumeSnapshotClass", "DeviceClass"),
        *("PriorityClass", "IngressClass", "RuntimeClass", "GatewayClass"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    }
)
"""Kinds that stand in no namespace. Others are not put into the pack's where they say so themselves."""


def _within(item: Object, namespace: str | None) -> Object:
    """The object in the pack's namespace, where it names none and is of a kind that has one."""
    if not namespace or item["metadata"].get("namespace") or item["kind"] in _WITHOUT_NAMESPACE:
        return item
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


def _marked(item: Object, profile: str) -> Object:
    """The object with the label that says whose it is. So it has a field of ours: one of which nothing but its name is
    applied, such as a Namespace, would be nobody's."""
    labels = item["metadata"].get("labels") or {}
    if not profile or not isinstance(labels, Mapping):
        return item
    return {**item, "metadata": {**item["metadata"], "labels": {**labels, PROFILE_LABEL: profile}}}


_FIRST = ("Namespace", "CustomResourceDefinition")


def _ordered(objects: Sequence[Object]) -> Iterator[Object]:
    """Namespaces and definitions before what needs them; else as it is written."""
    for kind in _FIRST:
        yield from (item for item in objects if item["kind"] == kind)
    yield from (item for item in objects if item["kind"] not in _FIRST)


def content_changes(before: Content, after: Content) -> dict[str, list[Any]]:
    """Differences between two versions, as parts of a plan; pointers are into the later one."""
    earlier = {pack["name"]: pack for pack in before["packs"]}
    later = {pack["name"]: pack for pack in after["packs"]}
    changes = []
    for index, (name, pack) in enumerate(later.items()):
        for field in ("layer", "tag", "namespace", "values", "manifests"):
            pair = [_plain(each.get(field)) for each in (earlier.get(name, pack), pack)]
            if pair[0] != pair[1]:
                changes.append({"pointer": pointer("packs", index, field), "before": pair[0], "after": pair[1]})
    if before["variables"] != after["variables"]:
        changes.append({"pointer": "/variables", "before": before["variables"], "after": after["variables"]})
    return {
        "creates": [{"kind": "pack", "name": f"{name} {later[name]['tag']}"} for name in later if name not in earlier],
        "deletes": [
            {"kind": "pack", "name": f"{name} {earlier[name]['tag']}"} for name in earlier if name not in later
        ],
        "changes": changes,
    }


def _plain(value: Any) -> Any:
    """A field of a pack for people: of each manifest its digest in place of its text."""
    if not isinstance(value, list):
        return value or None
    return {manifest["name"]: f"sha256:{digest(manifest['content'])}" for manifest in value} or None


def in_order(packs: Sequence[Pack]) -> list[list[Pack]]:
    """The packs by layers, layers of all profiles together, without layers that have none."""
    layers = [[pack for pack in packs if pack.layer == layer] for layer in LAYERS]
    return [layer for layer in layers if layer]


def reference(pack: str, item: Object) -> str:
    """An object as the list of what stands names it. No namespace and ``default`` are the same."""
    meta = item["metadata"]
    namespace = meta.get("namespace") or ""
    return "|".join((pack, item["apiVersion"], item["kind"], "" if namespace == "default" else namespace, meta["name"]))


def spoken(line: str) -> str:
    """An object of that list in words."""
    _, _, kind, namespace, name = line.split("|", 4)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def identity(line: str) -> str:
    """The object that a line is about, whichever pack it is of."""
    return line.partition("|")[2]


def object_documents(packs: Sequence[Pack]) -> dict[str, Object]:
    """Each object as it is wanted, by what it is."""
    return {identity(reference(pack.key, item)): item for pack in packs for item in pack.objects}


def _repeated(objects: Sequence[Object]) -> str | None:
    lines = [reference("", item) for item in objects]
    return next((spoken(line) for index, line in enumerate(lines) if line in lines[:index]), None)


_COUNTED = {
    "Deployment": ("replicas", "updatedReplicas", "readyReplicas"),
    "StatefulSet": ("replicas", "updatedReplicas", "readyReplicas"),
    "DaemonSet": ("desiredNumberScheduled", "updatedNumberScheduled", "numberReady"),
}
"""How many pods are wanted, how many are of now, how many are ready: the fields by kind."""

WORKLOADS = frozenset({*_COUNTED, "Job"})
"""Kinds that are ready when their pods are."""


def readiness(item: Object, live: Object | None) -> str | None:
    """Condition that an applied object still waits for; None when it is ready. ``TemplateFault`` for one that has
    failed."""
    name = spoken(reference("", item))
    if live is None:
        return f"{name} is not there yet"
    status = live.get("status") or {}
    spec = live.get("spec") or {}
    kind = item["kind"]
    if kind in _COUNTED:
        wanted_field, updated_field, ready_field = _COUNTED[kind]
        if int(status.get("observedGeneration") or 0) < int(live["metadata"].get("generation") or 0):
            return f"{name} is not seen by its controller yet"
        target = int(spec.get("replicas", 1) if wanted_field == "replicas" else status.get(wanted_field) or 0)
        ready = min(int(status.get(updated_field) or 0), int(status.get(ready_field) or 0))
        return None if ready >= target else f"{name} has {ready} of {target} pods ready"
    conditions = {entry.get("type"): entry for entry in status.get("conditions") or ()}
    if kind == "Job":
        if conditions.get("Failed", {}).get("status") == "True":
            raise TemplateFault(f"{name} has failed: {conditions['Failed'].get('reason') or 'no reason is given'}")
        return None if conditions.get("Complete", {}).get("status") == "True" else f"{name} is not complete"
    if kind == "CustomResourceDefinition":
        return None if conditions.get("Established", {}).get("status") == "True" else f"{name} is not established"
    return None
