"""Pods of Kubernetes as the packer reads them: ``v1`` Pods, and the templates of what makes pods.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.fields import (
    MOST_LABELS,
    Document,
    FieldPath,
    boolean,
    choice,
    each,
    integer,
    listed,
    object_at,
    optional_text,
    text,
    texts,
    wrong,
)
from stockyard.scheduling.packing.model import Pod, Preference, Term, Toleration, whole_number
from stockyard.scheduling.packing.pod_requests import is_sidecar, requests
from stockyard.scheduling.packing.pod_selectors import (
    PREFERRED,
    REQUIRED,
    NamespaceLabels,
    entries_of,
    expressions,
    of_one_pod,
    pod_terms,
    read_term,
    read_weight,
    spread,
)

POD_GROUP = "scheduling.x-k8s.io/pod-group"
"""The label that coscheduling knows a gang by."""
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - it is compared, nothing is bound to it
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_LARGEST_PORT = 65535
MOST_HOST_PORTS = 100
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")


def read_pod(manifest: Document, volumes: Sequence[Term] = (), namespaces: NamespaceLabels | None = None) -> Pod:
    """The pod of a ``v1`` Pod, or of a pod template with ``metadata`` and ``spec``.

    ``volumes`` are the alternatives of where its volumes can be, which the pod itself does not say. ``namespaces`` are
    the labels of those namespaces that are known; None where nothing is known of any.
    """
    metadata, spec = object_at(manifest, "metadata", ()), object_at(manifest, "spec", ())
    labels = texts(metadata.get("labels"), ("metadata", "labels"), MOST_LABELS)
    namespace = text(metadata.get("namespace", "default"), ("metadata", "namespace"))
    affinity, path = object_at(spec, "affinity", ("spec",)), ("spec", "affinity")
    node = object_at(affinity, "nodeAffinity", path)
    pods, anti = object_at(affinity, "podAffinity", path), object_at(affinity, "podAntiAffinity", path)
    return Pod(
        namespace,
        tuple(sorted(labels.items())),
        tuple(sorted(requests(spec).items())),
        _required(spec, node, (*path, "nodeAffinity")),
        tuple(_preferences(node, (*path, "nodeAffinity"))),
        tuple(each(spec.get("tolerations"), ("spec", "tolerations"), _toleration)),
        tuple(each(spec.get("topologySpreadConstraints"), ("spec", "topologySpreadConstraints"), spread(labels))),
        tuple(of_one_pod(pod_terms(pods, (*path, "podAffinity"), namespace, labels, namespaces))),
        tuple(pod_terms(anti, (*path, "podAntiAffinity"), namespace, labels, namespaces)),
        tuple(_ports(spec)),
        tuple(volumes),
        integer(spec.get("priority", 0), ("spec", "priority")),
        f"{namespace}/{labels[POD_GROUP]}" if POD_GROUP in labels else "",
        devices=tuple(each(spec.get("resourceClaims"), ("spec", "resourceClaims"), _device)),
    )


def _required(spec: Document, node: Document, path: FieldPath) -> tuple[Term, ...]:
    selected = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in texts(spec.get("nodeSelector"), ("spec", "nodeSelector")).items()
    ]
    alternatives = object_at(node, REQUIRED, path).get("nodeSelectorTerms")
    if alternatives is None:
        return (read_term(selected, ("spec", "nodeSelector")),)
    terms = listed(alternatives, (*path, REQUIRED, "nodeSelectorTerms"))
    # An alternative without requirements selects nothing.
    return tuple(
        read_term([*selected, *entries], term_path)
        for document, term_path in terms
        if (entries := _node_entries(document, term_path))
    )


def _preferences(node: Document, path: FieldPath) -> Iterable[Preference]:
    for document, preference_path in listed(node.get(PREFERRED), (*path, PREFERRED)):
        preference = object_at(document, "preference", preference_path)
        entries = _node_entries(preference, (*preference_path, "preference"))
        weight = read_weight(document, preference_path)
        if entries:
            yield Preference(weight, read_term(entries, preference_path))


def _node_entries(document: Document, path: FieldPath) -> list[Document]:
    fields = [
        {**entry, "key": {"metadata.name": "kubernetes.io/hostname"}.get(entry["key"], entry["key"])}
        for entry in entries_of(document, "matchFields", path, _FIELD_OPERATORS)
    ]
    return [*expressions(document, path, _NODE_OPERATORS), *fields]


def _toleration(document: Document, path: FieldPath) -> Toleration:
    key, value = (optional_text(document, name, path) for name in ("key", "value"))
    operator = choice(document, "operator", path, ("Equal", "Exists", "Gt", "Lt"))
    effect = choice(document, "effect", path, _EFFECTS)
    if document.get("tolerationSeconds") is not None:
        integer(document["tolerationSeconds"], (*path, "tolerationSeconds"))
        if effect != "NoExecute":
            raise wrong((*path, "effect"), "NoExecute is needed where tolerationSeconds is set")
    if not key and operator != "Exists":
        raise wrong((*path, "operator"), "a toleration without a key needs Exists")
    if value and operator == "Exists":
        raise wrong((*path, "value"), "Exists takes no value")
    if operator in ("Gt", "Lt") and whole_number(value) is None:
        raise wrong((*path, "value"), f"{operator} needs a whole number")
    return Toleration(key, operator, value, effect)


def _device(document: Document, path: FieldPath) -> str:
    """The name of a claim to a device."""
    return text(document.get("name"), (*path, "name"))


def _ports(spec: Document) -> Iterable[HostPort]:
    """The ports of the node that the containers take, and the sidecars; other init containers have none. There are at
    most ``MOST_HOST_PORTS`` of a pod."""
    count = 0
    on_host = boolean(spec, "hostNetwork", ("spec",))
    containers = listed(spec.get("containers"), ("spec", "containers"))
    starting = listed(spec.get("initContainers"), ("spec", "initContainers"))
    sidecars = [(container, path) for container, path in starting if is_sidecar(container, path)]
    for container, path in (*containers, *sidecars):
        for port, port_path in listed(container.get("ports"), (*path, "ports")):
            number = _port(port, "hostPort", port_path) or (_port(port, "containerPort", port_path) * on_host)
            address = optional_text(port, "hostIP", port_path)
            protocol = choice(port, "protocol", port_path, _PROTOCOLS)
            if number:
                count += 1
                if count > MOST_HOST_PORTS:
                    raise wrong(port_path, f"a pod has at most {MOST_HOST_PORTS} ports of its node")
                yield HostPort(number, protocol, "" if address == _EVERY_ADDRESS else address)


def _port(document: Document, name: str, path: FieldPath) -> int:
    """The number of a port; 0 where there is none."""
    number = document.get(name)
    if number is None:
        return 0
    if integer(number, (*path, name), 0) > _LARGEST_PORT:
        raise wrong((*path, name), f"no more than {_LARGEST_PORT} is possible")
    return int(number)
