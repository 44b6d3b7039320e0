"""The resources of the API as Python calls. Paths take an id or a name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from stockyard_client.base_models import Model, Resource
from stockyard_client.errors import ApiError, UnexpectedAnswer
from stockyard_client.following import Feed, OnTrouble, Pace, is_older_api, watch
from stockyard_client.models import Cluster, Event, LogLine, Operation, Plan
from stockyard_client.transport import Answer, Transport

M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=Resource)
Body = Mapping[str, Any]
LENIENT = {"Prefer": "handling=lenient"}
"""The header by which a request for a cluster need not have all that the API demands."""


def parsed(model: type[M], document: Any) -> M:
    """``document`` as ``model``. Raises :class:`UnexpectedAnswer`, naming the fields, never their values."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, fault["loc"])) or "(all)" for fault in error.errors(include_input=False))
        raise UnexpectedAnswer(f"the answer is not a {model.__name__}: {fields}") from None


def path(*parts: object) -> str:
    """``/v1`` and the parts, each quoted."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


class Collection:
    """Methods that all resources share: reading one, paging through many, planning."""

    name = ""

    def __init__(self, transport: Transport, new_pace: Callable[[], Pace] = Pace) -> None:
        self._transport = transport
        self._new_pace = new_pace

    def _record(self, model: type[R], answer: Answer) -> R:
        record = parsed(model, answer.object()).with_etag(answer.headers.get("ETag"))
        return record.with_location(answer.headers.get("Location"))

    def _pages(
        self, model: type[M], query: Mapping[str, Any], page_size: int | None, url: str | None = None
    ) -> Iterator[M]:
        token: str | None = None
        while True:
            parameters = {**query, "page_size": page_size, "page_token": token}
            page = self._transport.send("GET", url or path(self.name), query=parameters).object()
            for item in page.get("items", ()):
                yield parsed(model, item)
            token = page.get("next_page_token")
            if not token:
                return

    def _plan(
        self,
        method: str,
        url: str,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Plan:
        parameters = {"dry_run": "true", **(query or {})}
        answer = self._transport.send(method, url, query=parameters, body=body, headers=headers).object()
        return parsed(Plan, answer.get("plan", {}))

    def _update(self, model: type[R], reference: R | str | int, changes: Body) -> R:
        # an id alone is read first: the write then fails only if someone else came between the two
        current = reference if isinstance(reference, Resource) else self._read(model, reference)
        url = path(self.name, current.model_dump()["id"])
        headers = {"If-Match": current.etag}
        return self._record(model, self._transport.send("PATCH", url, body=changes, headers=headers))

    def _plan_update(self, record: Resource, changes: Body) -> Plan:
        url = path(self.name, record.model_dump()["id"])
        return self._plan("PATCH", url, changes, {"If-Match": record.etag})

    def _read(self, model: type[R], reference: str | int) -> R:
        return self._record(model, self._transport.send("GET", path(self.name, reference)))

    def _newer(self, model: type[R], url: str, earlier: R | None, wait: int) -> R:
        """The record once it is another one than ``earlier``; ``earlier`` when it is not within ``wait`` seconds."""
        if earlier is None:
            return self._record(model, self._transport.send("GET", url))
        can_wait = self._transport.can_wait
        try:
            answer = self._transport.send(
                "GET", url, headers={"If-None-Match": earlier.etag}, wait=wait if can_wait else 0, retry=wait == 0
            )
        except ApiError as error:
            if not is_older_api(error) or not can_wait:
                raise
            self._transport.can_wait = False
            return earlier
        return earlier if answer.status == 304 else self._record(model, answer)

    def _watch(self, model: type[R], url: str, on_trouble: OnTrouble | None) -> Iterator[R]:
        pace = self._new_pace()
        pace.on_trouble = on_trouble
        return watch(
            lambda earlier, wait: self._newer(model, url, earlier, wait), pace, lambda: self._transport.can_wait
        )

    def _watch_by_reading(self, read: Callable[[], M], on_trouble: OnTrouble | None) -> Iterator[M]:
        """Watches a resource without versions by reading it after pauses, which grow to 15 seconds."""
        pace = self._new_pace()
        pace.on_trouble = on_trouble
        return watch(lambda _earlier, _wait: read(), pace, lambda: False)

    def _feed(self, prefix: str, query: Body, on_trouble: OnTrouble | None, **start: Any) -> Feed:
        pace = self._new_pace()
        pace.on_trouble = on_trouble
        filters = {name: value for name, value in query.items() if value is not None}
        return Feed(self._transport, path(self.name), prefix, filters, pace, **start)

    def _started(self, answer: Answer) -> Operation:
        """The operation a 202 points to: in the body, or behind ``Location`` or ``operation_id``."""
        body = answer.body if isinstance(answer.body, dict) else {}
        if "phases" in body and "kind" in body:
            return parsed(Operation, body)
        location = answer.headers.get("Location", "").rstrip("/").rpartition("/")[2]
        identifier = location or body.get("operation_id")
        if not identifier:
            raise UnexpectedAnswer("the answer names no operation")
        return self._record(Operation, self._transport.send("GET", path("operations", identifier)))


class Clusters(Collection):
    """Clusters."""

    name = "clusters"

    def create(self, body: Body, *, lenient: bool = False, idempotency_key: str | None = None) -> Cluster:
        """Starts a cluster; its ``operation_id`` is the work. The API demands ``description``, ``settings`` and on EC2
        ``settings.key_pair``; ``lenient``: they may be absent."""
        headers = LENIENT if lenient else None
        answer = self._transport.send(
            "POST", path(self.name), body=body, headers=headers, idempotency_key=idempotency_key
        )
        return self._record(Cluster, answer)

    def plan_create(self, body: Body, *, lenient: bool = False) -> Plan:
        """Plans what :meth:`create` would make and cost."""
        return self._plan("POST", path(self.name), body, LENIENT if lenient else None)

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[Cluster]:
        """All clusters of the tenant, page by page."""
        return self._pages(Cluster, query, page_size)

    def get(self, cluster: str) -> Cluster:
        """One cluster."""
        return self._read(Cluster, cluster)

    def newer(self, cluster: str, earlier: Cluster | None, wait: int) -> Cluster:
        """The cluster once it differs from ``earlier``; ``earlier`` when it does not within ``wait`` seconds."""
        return self._newer(Cluster, path(self.name, cluster), earlier, wait)

    def watch(self, cluster: str, *, on_trouble: OnTrouble | None = None) -> Iterator[Cluster]:
        """The cluster as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(Cluster, path(self.name, cluster), on_trouble)

    def manifest(self, cluster: str) -> dict[str, Any]:
        """A cluster as a manifest, where its driver has a form of manifests."""
        return self._transport.send("GET", path(self.name, cluster), query={"form": "manifest"}).object()

    def update(self, cluster: Cluster | str, changes: Body) -> Cluster:
        """A JSON merge patch, guarded by the record's ETag (412 when it has changed)."""
        return self._update(Cluster, cluster, changes)

    def plan_update(self, cluster: Cluster | str, changes: Body) -> Plan:
        """Plans what :meth:`update` would do, with the costs of the cluster before and after."""
        current = cluster if isinstance(cluster, Cluster) else self.get(cluster)
        return self._plan_update(current, changes)

    def cancel(self, cluster: str, operation: str | None = None) -> Operation:
        """Stops an operation that changes a ready cluster, between two of its steps; or the queued one of that id."""
        query = {"operation": operation}
        return self._started(self._transport.send("POST", path(self.name, cluster, "cancel"), query=query))

    def repave(self, cluster: str) -> dict[str, Any]:
        """Whether the last change replaces nodes: ``state``, ``reasons``, ``nodes``."""
        return self._transport.send("GET", path(self.name, cluster, "repave")).object()

    def decide_repave(self, cluster: str, *, approved: bool) -> dict[str, Any]:
        """Lets a change go on that waits for approval, or takes it back."""
        body = {"approved": approved}
        return self._transport.send("PATCH", path(self.name, cluster, "repave"), body=body).object()

    def start_repave(self, cluster: str) -> Operation:
        """Begins to replace every node, one by one."""
        return self._started(self._transport.send("POST", path(self.name, cluster, "repave")))

    def plan_repave(self, cluster: str) -> Plan:
        """Plans what :meth:`start_repave` would replace, and in which order."""
        return self._plan("POST", path(self.name, cluster, "repave"))

    def certificates(self, cluster: str) -> dict[str, Any]:
        """Times when the certificates of the control plane end."""
        return self._transport.send("GET", path(self.name, cluster, "certificates")).object()

    def renew_certificates(self, cluster: str) -> Operation:
        """Begins to replace the control plane's members, so that their certificates are new."""
        return self._started(self._transport.send("POST", path(self.name, cluster, "certificates", "renew")))

    def plan_renewal(self, cluster: str) -> Plan:
        """Plans what :meth:`renew_certificates` would replace."""
        return self._plan("POST", path(self.name, cluster, "certificates", "renew"))

    def usage(self, cluster: str) -> dict[str, Any]:
        """Use of the cluster's nodes: what pods ask for of each, in ``nodes`` and, by pool, in ``pools``."""
        return self._transport.send("GET", path(self.name, cluster, "usage")).object()

    def snapshots(self, cluster: str) -> dict[str, Any]:
        """The snapshots of etcd in the cluster's cloud: ``items``, the newest first, ``place``, ``failure``."""
        return self._transport.send("GET", path(self.name, cluster, "snapshots")).object()

    def network(self, cluster: str) -> dict[str, Any]:
        """The cluster's overlay: ``range``, None for a cluster without one, ``observed_at``, ``changed_at`` and
        ``members``, those first that are down."""
        return self._transport.send("GET", path(self.name, cluster, "network")).object()

    def restore(self, cluster: str, snapshot: str = "latest") -> Operation:
        """Begins to restore etcd from that snapshot, or from the latest."""
        body = {"snapshot": snapshot}
        return self._started(self._transport.send("POST", path(self.name, cluster, "restore"), body=body))

    def plan_restore(self, cluster: str, snapshot: str = "latest") -> Plan:
        """Plans what :meth:`restore` would replace, and what the cluster would forget."""
        return self._plan("POST", path(self.name, cluster, "restore"), {"snapshot": snapshot})

    def force_delete(self, cluster: str) -> dict[str, Any]:
        """Forgets a cluster whose deletion does not end; ``remaining`` names what may be left."""
        return self._transport.send("DELETE", path(self.name, cluster), query={"force": "true"}).object()

    def delete(self, cluster: str) -> Operation:
        """Starts the deletion, or gives the one that runs."""
        return self._started(self._transport.send("DELETE", path(self.name, cluster)))

    def plan_delete(self, cluster: str) -> Plan:
        """Plans what :meth:`delete` would remove and save."""
        return self._plan("DELETE", path(self.name, cluster))

    def resume(self, cluster: str, changes: Mapping[str, Any] | None = None) -> Operation:
        """Continues a failed operation with its next attempt. A failed creation takes ``changes``: a merge patch of
        ``settings``, and ``kubernetes_version``."""
        body = dict(changes) if changes else None
        return self._started(self._transport.send("POST", path(self.name, cluster, "resume"), body=body))

    def plan_resume(self, cluster: str, changes: Mapping[str, Any] | None = None) -> Plan:
        """The phases that :meth:`resume` would run, and what would be other settings and pools."""
        return self._plan("POST", path(self.name, cluster, "resume"), dict(changes) if changes else None)

    def tree(self, cluster: str) -> dict[str, Any]:
        """The cluster with everything below it."""
        return self._transport.send("GET", path(self.name, cluster, "tree")).object()

    def agent(self, cluster: str) -> dict[str, Any]:
        """The manifest that installs the cluster's agent; only the cluster's own client may read it."""
        return self._transport.send("GET", path(self.name, cluster, "agent")).object()

    def client_secret(self, cluster: str) -> dict[str, Any]:
        """The cluster's Keycloak client and its secret, for admins; audited."""
        return self._transport.send("GET", path(self.name, cluster, "client-secret")).object()

    def kubeconfig(self, cluster: str, *, static: bool = False) -> Any:
        """The kubeconfig as the API sends it; ``static`` holds credentials and is for admins."""
        query = {"static": "true" if static else None}
        return self._transport.send("GET", path(self.name, cluster, "kubeconfig"), query=query).body

    def kubeconfig_secret(self, cluster: str) -> dict[str, Any]:
        """A Secret for Kubernetes with a kubeconfig, whose token is of now and ends in 15 minutes at most. For clusters
        that their cloud admits people to; 409 for others."""
        query = {"form": "secret"}
        return self._transport.send("GET", path(self.name, cluster, "kubeconfig"), query=query).object()

    def token(self, cluster: str) -> dict[str, Any]:
        """An ExecCredential for a cluster that its cloud admits people to, made now; 409 for others."""
        return self._transport.send("POST", path(self.name, cluster, "token")).object()


class Operations(Collection):
    """Long-running changes."""

    name = "operations"

    def get(self, operation: str) -> Operation:
        """One operation."""
        return self._read(Operation, operation)

    def watch(self, operation: str, *, on_trouble: OnTrouble | None = None) -> Iterator[Operation]:
        """The operation as it is, and again after each change, until it is gone (:class:`ApiError`, 404)."""
        return self._watch(Operation, path(self.name, operation), on_trouble)

    def list(self, *, page_size: int | None = None, **query: Any) -> Iterator[Operation]:
        """Operations of the tenant, page by page; ``status``, ``subject``, ``kind``, ``since``, ``order="desc"``."""
        return self._pages(Operation, query, page_size)

    def log(
        self, operation: str, *, after: str | None = None, run: str | None = None, wait: int = 0
    ) -> tuple[Sequence[LogLine], str | None]:
        """The lines of the operation's runs behind the cursor ``after``, of those named ``run`` when given, and the
        cursor to go on from. With ``wait`` it takes so many seconds until there are any."""
        lines: deque[LogLine] = deque()
        url, token = path(self.name, operation, "log"), None
        while True:
            query = {"after": after, "run": run, "page_size": 200, "page_token": token}
            seconds = wait if after and not lines and self._transport.can_wait else 0
            page = self._transport.send("GET", url, query=query, wait=seconds).object()
            lines += [parsed(LogLine, item) for item in page.get("items", ())]
            token = page.get("next_page_token")
            if not token:
                return tuple(lines), page.get("cursor") or after

    def newer(self, operation: str, earlier: Operation | None, wait: int) -> Operation:
        """The operation once it differs from ``earlier``; ``earlier`` when it does not within ``wait`` seconds."""
        return self._newer(Operation, path(self.name, operation), earlier, wait)


class Events(Collection):
    """Events of the tenant's resources."""

    name = "events"

    def list(
        self, *, subject: str | None = None, after: str | None = None, page_size: int | None = None, **query: Any
    ) -> Iterator[Event]:
        """Events in order, of one ``subject`` (an id) and ``after`` an event, when given; also ``reason``,
        ``detail_type``, ``since`` (a time), ``order="desc"``."""
        return self._pages(Event, {"subject": subject, "after": after, **query}, page_size)

    def follow(
        self,
        *,
        subject: str | None = None,
        after: str | None = None,
        since: str | None = None,
        newest: int = 0,
        on_trouble: OnTrouble | None = None,
        **query: Any,
    ) -> Iterator[Event]:
        """Each event once, in order, as soon as it has happened; for ever.

        It begins ``after`` a cursor or an id, or ``since`` a time, or with the ``newest`` so many, else now. Lost
        connections are made again for five minutes; ``on_trouble`` gets the error and the seconds until then.
        """
        feed = self.feed(subject=subject, after=after, since=since, newest=newest, on_trouble=on_trouble, **query)
        while True:
            for item in feed.poll():
                yield parsed(Event, item)

    def feed(
        self,
        *,
        subject: str | None = None,
        after: str | None = None,
        since: str | None = None,
        newest: int = 0,
        on_trouble: OnTrouble | None = None,
        **query: Any,
    ) -> Feed:
        """Source of :meth:`follow`: ``poll()`` gives what is new, ``cursor`` is where another one goes on."""
        filters = {"subject": subject, **query}
        return self._feed("evt", filters, on_trouble, after=after, since=since, newest=newest)

    def newest(self, subject: str, count: int) -> Sequence[Event]:
        """The last ``count`` events of a subject, the newest at the end."""
        try:
            return list(islice(self.list(subject=subject, order="desc", page_size=min(count, 200)), count))[::-1]
        except ApiError as error:
            if not is_older_api(error):
                raise
        return deque(self.list(subject=subject, page_size=200), maxlen=count)
