"""Approval of certificates for kubelets: a machine's first one under the name of its token alone, and serving
certificates for what is the node's own. Everything else of these signers is refused, or left to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from .commands.commands import NAME
from .commands.tokens import JOINERS, NODE_GROUP, node_of
from .kubernetes import Kubernetes, Object, Refused, path_of
from .observation import timestamp
from .signing_request import SigningRequest, parse
from .transport import Unreachable

CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODES, NODE_USER = "system:nodes", "system:node:"
_USAGES = {CLIENT: {"digital signature", "client auth"}, SERVING: {"digital signature", "server auth"}}
_OF_RSA = "key encipherment"
_ENDS = frozenset({"Approved", "Denied", "Failed"})
_PAGE = 100


class Unfit(Exception):
    """Reason why a request is denied."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """Looks through the requests that wait. It keeps nothing: who approved first, and how often, does not matter."""

    kube: Kubernetes
    now: Callable[[], Any]
    log: Callable[[str], None]
    own_hosts: frozenset[str] = frozenset()
    """Where the API server answers inside the cluster: no node's name or address."""

    def look(self) -> None:
        """Decide what can be decided. Raises ``Refused``, ``Unreachable``."""
        for signer in (CLIENT, SERVING):
            for request in self.kube.collect(PATH, {"fieldSelector": f"spec.signerName={signer}"}, _waiting, _PAGE):
                try:
                    self._decide(signer, request)
                except (Refused, Unreachable, OSError):
                    raise
                except Exception as error:  # what somebody else has sent must not hold up the others
                    self.log(f"a certificate request cannot be decided: {type(error).__name__}")

    def _decide(self, signer: str, request: Object) -> None:
        name = request["metadata"]["name"]
        try:
            text = self._first(request["spec"]) if signer == CLIENT else self._serving(request["spec"])
            if not text:
                return
            kind, reason = "Approved", "StockyardApproved"
        except Unfit as unfit:
            kind, reason, text = "Denied", "StockyardDenied", str(unfit)
        condition = {"type": kind, "status": "True", "reason": reason, "message": text}
        condition["lastUpdateTime"] = timestamp(self.now())[:19] + "Z"
        status = request.get("status") or {}
        decided = {**request, "status": {**status, "conditions": [*(status.get("conditions") or ()), condition]}}
        try:
            self.kube.call("PUT", f"{PATH}/{name}/approval", decided)
        except Refused as refused:
            if refused.status not in (404, 409):  # else it is gone, or somebody has decided it meanwhile
                raise
            return
        self.log(f"certificate request {name} {kind.lower()}: {text}")

    def _first(self, spec: Mapping[str, Any]) -> str | None:
        """Reason to approve a machine's first certificate; None when the request is not of one of our tokens.

        Raises ``Unfit``.
        """
        groups = [str(group) for group in spec.get("groups") or ()]
        names = [group for group in groups if group.startswith(NODE_GROUP)]
        if JOINERS not in groups and not names:
            return None
        if len(names) != 1:
            raise Unfit("the token names no node, or more than one")
        node = node_of(names[0])
        request = _parsed(spec, CLIENT)
        if (request.organization, request.common_name) != (NODES, NODE_USER + node):
            raise Unfit(
                f"the token is for the node {node}, not for {request.common_name!r} of {request.organization!r}"
            )
        if request.dns_names or request.addresses:
            raise Unfit("a client's certificate has no alternative names")
        return f"the token is for the node {node}"

    def _serving(self, spec: Mapping[str, Any]) -> str | None:
        """Reason to approve a kubelet's serving certificate; None when that is not known yet. Raises ``Unfit``."""
        user = str(spec.get("username"))
        if not user.startswith(NODE_USER) or NODES not in (spec.get("groups") or ()):
            raise Unfit("only a node asks for the certificate that it serves with")
        request = _parsed(spec, SERVING)
        if (request.organization, request.common_name) != (NODES, user):
            raise Unfit(f"the subject is {request.common_name!r} of {request.organization!r}, and {user} asks")
        name = user.removeprefix(NODE_USER)
        if not NAME.fullmatch(name):
            raise Unfit("that is no name of a node")
        try:
            node = self.kube.call("GET", path_of("nodes", name))
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
        if not request.dns_names and not request.addresses:
            raise Unfit("it names nothing that the node serves at")
        self._check_addresses(name, node, request)
        return f"all names and addresses are the node's own: {', '.join((*request.dns_names, *request.addresses))}"

    def _check_addresses(self, name: str, node: Object, request: SigningRequest) -> None:
        """Check the names and addresses that a kubelet states itself: a name must be the node's or contain one of its
        addresses, and an address must be of an allowed kind and of no other node. Raises ``Unfit``."""
        own = _addresses(node)
        for address in request.addresses:
            if address not in own or address in self.own_hosts or not _of_a_node(address):
                raise Unfit(f"{address} is no address of the node {name}")
        for text in request.dns_names:
            if text != name and not (text in own and _tells(text, node, own)):
                raise Unfit(f"{text} is no name of the node {name}")
        sharing = self.kube.collect("/api/v1/nodes", {}, lambda other: _sharing(other, name, request.addresses), _PAGE)
        if sharing:
            raise Unfit(f"the node {sharing[0]} has one of these addresses too")


def _waiting(request: Object) -> Object | None:
    conditions = (request.get("status") or {}).get("conditions") or ()
    return None if any(condition.get("type") in _ENDS for condition in conditions) else request


def _parsed(spec: Mapping[str, Any], signer: str) -> SigningRequest:
    usages = list(spec.get("usages") or ())
    if set(usages) - {_OF_RSA} != _USAGES[signer] or len(usages) != len(set(usages)):
        raise Unfit(
            f"the usages are {', '.join(map(str, usages))}; a kubelet asks for {', '.join(sorted(_USAGES[signer]))}"
        )
    try:
        return parse(spec.get("request"))
    except ValueError as error:
        raise Unfit(str(error)) from None


def _addresses(node: Object) -> frozenset[str]:
    listed = (node.get("status") or {}).get("addresses") or ()
    return frozenset(str(entry.get("address")) for entry in listed)


def _sharing(other: Object, name: str, addresses: tuple[str, ...]) -> str | None:
    other_name = str(other["metadata"]["name"])
    return other_name if other_name != name and _addresses(other) & set(addresses) else None


def _of_a_node(address: str) -> bool:
    parsed = ip_address(address)
    return not (parsed.is_loopback or parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified)


def _tells(text: str, node: Object, own: frozenset[str]) -> bool:
    """Whether a name's first label is that of a machine: with an address of the node, or its id in its cloud."""
    label, dot, _ = text.partition(".")
    machine = str((node.get("spec") or {}).get("providerID") or "").rpartition("/")[2]
    dashed = {
        address.replace(".", "-") for address in own if address.count(".") == 3 and address.replace(".", "").isdigit()
    }
    return bool(dot) and (label == machine != "" or label.partition("-")[2] in dashed)
