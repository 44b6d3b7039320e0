"""Pods of Kubernetes as the packer reads them: ``v1`` Pods, and the templates of what makes pods.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.fields import (
    MOST_LABELS,
    Document,
    Place,
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
    affinity, place = object_at(spec, "affinity", ("spec",)), ("spec", "affinity")
    node = object_at(affinity, "nodeAffinity", place)
    pods, anti = object_at(affinity, "podAffinity", place), object_at(affinity, "podAntiAffinity", place)
    return Pod(
        namespace,
        tuple(sorted(labels.items())),
        tuple(sorted(requests(spec).items())),
        _required(spec, node, (*place, "nodeAffinity")),
        tuple(_preferences(node, (*place, "nodeAffinity"))),
        tuple(each(spec.get("tolerations"), ("spec", "tolerations"), _toleration)),
        tuple(each(spec.get("topologySpreadConstraints"), ("spec", "topologySpreadConstraints"), spread(labels))),
        tuple(of_one_pod(pod_terms(pods, (*place, "podAffinity"), namespace, labels, namespaces))),
        tuple(pod_terms(anti, (*place, "podAntiAffinity"), namespace, labels, namespaces)),
        tuple(_ports(spec)),
        tuple(volumes),
        integer(spec.get("priority", 0), ("spec", "priority")),
        f"{namespace}/{labels[POD_GROUP]}" if POD_GROUP in labels else "",
        devices=tuple(each(spec.get("resourceClaims"), ("spec", "resourceClaims"), _device)),
    )


def _required(spec: Document, node: Document, place: Place) -> tuple[Term, ...]:
    selected = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in texts(spec.get("nodeSelector"), ("spec", "nodeSelector")).items()
    ]
    alternatives = object_at(node, REQUIRED, place).get("nodeSelectorTerms")
    if alternatives is None:
        return (read_term(selected, ("spec", "nodeSelector")),)
    terms = listed(alternatives, (*place, REQUIRED, "nodeSelectorTerms"))
    # An alternative without requirements selects nothing.
    return tuple(
        read_term([*selected, *entries], term_place)
        for document, term_place in terms
        if (entries := _node_entries(document, term_place))
    )


def _preferences(node: Document, place: Place) -> Iterable[Preference]:
    for document, preference_place in listed(node.get(PREFERRED), (*place, PREFERRED)):
        preference = object_at(document, "preference", preference_place)
        entries = _node_entries(preference, (*preference_place, "preference"))
        weight = read_weight(document, preference_place)
        if entries:
            yield Preference(weight, read_term(entries, preference_place))


def _node_entries(document: Document, place: Place) -> list[Document]:
    fields = [
        {**entry, "key": {"metadata.name": "kubernetes.io/hostname"}.get(entry["key"], entry["key"])}
        for entry in entries_of(document, "matchFields", place, _FIELD_OPERATORS)
    ]
    return [*expressions(document, place, _NODE_OPERATORS), *fields]


def _toleration(document: Document, place: Place) -> Toleration:
    key, value = (optional_text(document, name, place) for name in ("key", "value"))
    operator = choice(document, "operator", place, ("Equal", "Exists", "Gt", "Lt"))
    effect = choice(document, "effect", place, _EFFECTS)
    if document.get("tolerationSeconds") is not None:
        integer(document["tolerationSeconds"], (*place, "tolerationSeconds"))
        if effect != "NoExecute":
            raise wrong((*place, "effect"), "NoExecute is needed where tolerationSeconds is set")
    if not key and operator != "Exists":
        raise wrong((*place, "operator"), "a toleration without a key needs Exists")
    if value and operator == "Exists":
        raise wrong((*place, "value"), "Exists takes no value")
    if operator in ("Gt", "Lt") and whole_number(value) is None:
        raise wrong((*place, "value"), f"{operator} needs a whole number")
    return Toleration(key, operator, value, effect)


def _device(document: Document, place: Place) -> str:
    """The name of a claim to a device."""
    return text(document.get("name"), (*place, "name"))


def _ports(spec: Document) -> Iterable[HostPort]:
    """The ports of the node that the containers take, and the sidecars; other init containers have none. There are at
    most ``MOST_HOST_PORTS`` of a pod."""
    count = 0
    on_host = boolean(spec, "hostNetwork", ("spec",))
    containers = listed(spec.get("containers"), ("spec", "containers"))
    starting = listed(spec.get("initContainers"), ("spec", "initContainers"))
    sidecars = [(container, place) for container, place in starting if is_sidecar(container, place)]
    for container, place in (*containers, *sidecars):
        for port, port_place in listed(container.get("ports"), (*place, "ports")):
            number = _port(port, "hostPort", port_place) or (_port(port, "containerPort", port_place) * on_host)
            address = optional_text(port, "hostIP", port_place)
            protocol = choice(port, "protocol", port_place, _PROTOCOLS)
            if number:
                count += 1
                if count > MOST_HOST_PORTS:
                    raise wrong(port_place, f"a pod has at most {MOST_HOST_PORTS} ports of its node")
                yield HostPort(number, protocol, "" if address == _EVERY_ADDRESS else address)


def _port(document: Document, name: str, place: Place) -> int:
    """The number of a port; 0 where there is none."""
    number = document.get(name)
    if number is None:
        return 0
    if integer(number, (*place, name), 0) > _LARGEST_PORT:
        raise wrong((*place, name), f"no more than {_LARGEST_PORT} is possible")
    return int(number)
