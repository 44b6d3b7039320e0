"""Nodes as Python calls: providers, types, claims, manifests, prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stockyard_client.following import OnTrouble
from stockyard_client.models import Operation, Plan
from stockyard_client.node_models import Applied, Explanation, NodeClaim, NodeProvider, NodeType, PriceOf, SetMember
from stockyard_client.resources.base import Body, Collection, parsed, path


class NodeProviders(Collection):
    """Sources of nodes."""

    name = "node-providers"

    def create(self, body: Body, *, idempotency_key: str | None = None) -> NodeProvider:
        """Adds a provider."""
        answer = self._transport.send("POST", path(self.name), body=body, idempotency_key=idempotency_key)
        return self._record(NodeProvider, answer)

    def plan_create(self, body: Body) -> Plan:
        """Plans what :meth:`create` would do."""
        return self._plan("POST", path(self.name), body)

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[NodeProvider]:
        """All providers of the tenant, page by page."""
        return self._pages(NodeProvider, query, page_size)

    def get(self, provider: str) -> NodeProvider:
        """One provider."""
        return self._read(NodeProvider, provider)

    def watch(self, provider: str, *, on_trouble: OnTrouble | None = None) -> Iterator[NodeProvider]:
        """The provider as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(NodeProvider, path(self.name, provider), on_trouble)

    def manifest(self, provider: str) -> dict[str, Any]:
        """A provider as its manifest."""
        return self._transport.send("GET", path(self.name, provider), query={"form": "manifest"}).object()

    def update(self, provider: NodeProvider | str, changes: Body) -> NodeProvider:
        """A JSON merge patch, guarded by the record's ETag (412 when it has changed)."""
        return self._update(NodeProvider, provider, changes)

    def plan_update(self, provider: NodeProvider, changes: Body) -> Plan:
        """Plans what :meth:`update` would change."""
        return self._plan_update(provider, changes)

    def delete(self, provider: str) -> Operation:
        """Removes a provider; 409 while claims or clusters use it."""
        return self._started(self._transport.send("DELETE", path(self.name, provider)))

    def plan_delete(self, provider: str) -> Plan:
        """Plans what :meth:`delete` would do."""
        return self._plan("DELETE", path(self.name, provider))


class NodeTypes(Collection):
    """Kinds of nodes on offer."""

    name = "node-types"

    def list(self, *, provider: str | None = None, page_size: int | None = None, **query: Any) -> Iterator[NodeType]:
        """All node types, or those of one provider, page by page."""
        return self._pages(NodeType, {"provider": provider, **query}, page_size)

    def get(self, node_type: str) -> NodeType:
        """One node type, by id, ``provider.type``, or ``type`` where no other provider has it."""
        return self._read(NodeType, node_type)

    def watch(self, node_type: str, *, on_trouble: OnTrouble | None = None) -> Iterator[NodeType]:
        """The type as it is, and again after each change, which is seen within 15 seconds, until it is gone."""
        return self._watch_by_reading(lambda: self.get(node_type), on_trouble)


class NodeClaims(Collection):
    """Wanted, promised and existing nodes."""

    name = "node-claims"

    def create(self, body: Body, *, idempotency_key: str | None = None) -> NodeClaim:
        """Asks for a node; the claim's ``operation_id`` is the work."""
        answer = self._transport.send("POST", path(self.name), body=body, idempotency_key=idempotency_key)
        return self._record(NodeClaim, answer)

    def plan_create(self, body: Body, *, run: bool = False) -> Plan:
        """The node type that would be chosen, its price, and what ruled the others out; with ``run`` also the run of a
        template that would make the node."""
        return self._plan("POST", path(self.name), body, query={"run": "true"} if run else None)

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[NodeClaim]:
        """All claims, or those of a ``cluster``, ``provider``, ``phase`` or ``label``, page by page."""
        return self._pages(NodeClaim, query, page_size)

    def get(self, claim: str) -> NodeClaim:
        """One claim."""
        return self._read(NodeClaim, claim)

    def watch(self, claim: str, *, on_trouble: OnTrouble | None = None) -> Iterator[NodeClaim]:
        """The claim as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(NodeClaim, path(self.name, claim), on_trouble)

    def manifest(self, claim: str) -> dict[str, Any]:
        """A claim as its manifest."""
        return self._transport.send("GET", path(self.name, claim), query={"form": "manifest"}).object()

    def update(self, claim: NodeClaim | str, changes: Body) -> NodeClaim:
        """A JSON merge patch, guarded by the record's ETag (412 when it has changed)."""
        return self._update(NodeClaim, claim, changes)

    def plan_update(self, claim: NodeClaim, changes: Body) -> Plan:
        """Plans what :meth:`update` would change."""
        return self._plan_update(claim, changes)

    def delete(self, claim: str, grace_seconds: int | None = None) -> Operation:
        """Gives the node back, or gives the operation that does so already. ``grace_seconds`` is how long pods may
        still hold the node; 0 ends them at once, also when the deletion is under way."""
        query = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
        return self._started(self._transport.send("DELETE", path(self.name, claim), query=query))

    def plan_delete(self, claim: str) -> Plan:
        """Plans what :meth:`delete` would remove and save, and until when pods may hold the node."""
        return self._plan("DELETE", path(self.name, claim))

    def explain(self, claim: str) -> Explanation:
        """Explains why the claim got its node type, or none."""
        return parsed(Explanation, self._transport.send("GET", path(self.name, claim, "explanation")).object())

    def power(self, claim: str, state: str) -> NodeClaim:
        """Switches the machine ``On`` or ``Off``, or restarts it with ``Reboot``."""
        answer = self._transport.send("POST", path(self.name, claim, "power"), body={"state": state})
        return self._record(NodeClaim, answer)

    def plan_power(self, claim: str, state: str) -> Plan:
        """Plans what :meth:`power` would do."""
        return self._plan("POST", path(self.name, claim, "power"), {"state": state})


class AppliedList(list[Applied]):
    """Outcome of each manifest; ``warnings`` are about documents as a whole."""

    def __init__(self, results: Iterable[Applied], warnings: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(results)
        self.warnings = tuple(warnings)

    @property
    def every_warning(self) -> tuple[dict[str, Any], ...]:
        """Warnings of the documents, and of each result."""
        return (*self.warnings, *(warning for result in self for warning in result.warnings))


class Manifests(Collection):
    """Documents of Kubernetes' form."""

    name = "apply"

    def apply(
        self,
        documents: Sequence[Body],
        *,
        create_only: bool = False,
        prune: bool = False,
        set_name: str | None = None,
        take: bool = False,
        idempotency_key: str | None = None,
    ) -> AppliedList:
        """Makes what is not there and changes what differs; all are checked before one is stored.

        With ``create_only`` whatever is there already is refused (409), and nothing is written. With ``prune`` pools
        that came by a vcluster.yaml and that those of the documents do not name are deleted. With ``set_name`` all of
        them belong to that set; what belongs to another one is refused (409) without ``take``.
        """
        query = _query(create_only=create_only, prune=prune, set_name=set_name, take=take)
        answer = self._transport.send(
            "POST", path(self.name), query=query, body=[*documents], idempotency_key=idempotency_key
        ).object()
        results = [parsed(Applied, item) for item in answer.get("results", ())]
        return AppliedList(results, answer.get("warnings", ()))

    def plan(
        self,
        documents: Sequence[Body],
        *,
        create_only: bool = False,
        prune: bool = False,
        set_name: str | None = None,
        take: bool = False,
    ) -> Plan:
        """Plans what :meth:`apply` would do."""
        query = _query(create_only=create_only, prune=prune, set_name=set_name, take=take)
        query["dry_run"] = "true"
        answer = self._transport.send("POST", path(self.name), query=query, body=[*documents]).object()
        return parsed(Plan, answer.get("plan", {}))


def _query(*, create_only: bool, prune: bool, set_name: str | None, take: bool) -> dict[str, str]:
    flags = {"create_only": create_only, "prune": prune, "take": take}
    return {**{name: "true" for name, flag in flags.items() if flag}, **({"set": set_name} if set_name else {})}


class SetMembers(Collection):
    """Members of sets of manifests: things that were applied together."""

    name = "set-members"

    def list(self, *, set_name: str | None = None, page_size: int | None = None) -> Iterator[SetMember]:
        """Members of a set, or of all sets, as far as they are there, page by page."""
        return self._pages(SetMember, {"set": set_name}, page_size)


class Prices(Collection):
    """Price lists of regions."""

    name = "prices"

    def list(self, *, region: str | None = None, page_size: int | None = None, **query: Any) -> Iterator[PriceOf]:
        """The catalogue of a region, page by page."""
        return self._pages(PriceOf, {"region": region, **query}, page_size)
