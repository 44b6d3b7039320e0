"""Contract between functions and the edge: routes, requests, answers. Plain values, cheap to import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stockyard.domain.values.field_changes import change_views, field_changes, with_subject
from stockyard.domain.values.frozen import dataclass
from stockyard.edge.http.paging import R, counted, filtered, total_of
from stockyard.edge.http.query import Query
from stockyard.edge.idempotency import IdempotencyLease
from stockyard.edge.identity import Caller, Roles
from stockyard.errors import PreconditionFailed

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stockyard import ports
    from stockyard.edge.http.content import Content

MODELS = "stockyard.domain.models."


def model_of(reference: type[BaseModel] | str) -> type[BaseModel]:
    """A model, or the one that ``module:Class`` below the domain's models names.

    Routes name models as text so that importing a function does not load pydantic.
    """
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    model: type[BaseModel] = getattr(import_module(MODELS + module), name)
    return model


@dataclass(frozen=True, slots=True)
class Page:
    """Wanted part of a list: at most ``size`` items behind ``after``; ``counts``: the number of all is wanted too."""

    size: int
    after: str | None = None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request. ``params`` are those of its path, ``body`` is the validated model.

    ``if_match`` is the version the caller read. ``lease`` is there when the request has an ``Idempotency-Key``.
    ``lenient``: the body was read by the route's ``lenient_body``. ``credential`` is what an open route was sent as
    ``Authorization``, a bearer token or the password of Basic; None where nothing was.
    """

    params: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    caller: Caller
    request_id: str
    if_match: int | None = None
    lease: IdempotencyLease | None = None
    dry_run: bool = False
    lenient: bool = False
    page: Page = field(default_factory=lambda: Page(50))
    credential: str | None = field(default=None, repr=False)

    @property
    def version(self) -> int:
        """``if_match`` of a route that demands it."""
        if self.if_match is None:
            raise TypeError("the route does not demand If-Match")
        return self.if_match

    def check_version(self, name: str, version: int) -> None:
        """``PreconditionFailed`` unless ``version`` is the one that the caller read; ``name`` says of what."""
        if version != self.version:
            raise PreconditionFailed(f"The {name} is at version {version}, not {self.version}.")

    def stable_id(self, prefix: str) -> str | None:
        """An identifier for what is created, the same in every try of an idempotency key; None without a key."""
        return self.lease.stable_id(prefix) if self.lease else None


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a function. ``version`` becomes the ``ETag``.

    ``digest`` stands for what else the body shows, see ``edge.http.etag``. ``cursor`` is for lists that are followed:
    where the next request goes on. ``probe`` reads little and gives another value when the answer may be another one.
    ``subject`` is what the audit record is about (by default the answer's id, else the path's); ``audited`` says that
    the use case has written that record in its own transaction. ``next_id`` is for lists, and ``total`` for those whose
    items are counted. ``content`` is a file, in place of a body. ``texts`` are members of the body by their names that
    are JSON already.
    """

    status: int
    body: BaseModel | Mapping[str, Any] | None = field(default=None, repr=False)
    version: int | None = None
    location: str | None = None
    subject: str | None = None
    audited: bool = False
    next_id: str | None = None
    total: Mapping[str, Any] | None = None
    content: Content | None = field(default=None, repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    digest: str = ""
    cursor: str | None = None
    probe: Callable[[], object] | None = field(default=None, repr=False)

    @staticmethod
    def listing(
        items: Sequence[Mapping[str, Any]],
        next_id: str | None,
        cursor: str | None = None,
        total: Mapping[str, Any] | None = None,
    ) -> Answer:
        """A page of a list; the edge makes the token to go on behind ``next_id``. ``total`` is how many there are."""
        return Answer(200, {"items": list(items)}, next_id=next_id, cursor=cursor, total=total)

    @staticmethod
    def matching(
        page: Page,
        read: Callable[..., ports.Page[R]],
        keep: Callable[[R], bool],
        view: Callable[[R], Mapping[str, Any]],
        count: Callable[[], int] | None = None,
    ) -> Answer:
        """A page of the records that ``keep`` lets through; see :func:`stockyard.edge.http.paging.filtered`.

        ``count`` says how many all are, where that is known without reading them.
        """
        records, next_id = filtered(read, keep, after=page.after, size=page.size)
        total = None
        if page.counts:
            total = counted(read, keep) if count is None else total_of(count())
        return Answer.listing([view(record) for record in records], next_id, total=total)

    @staticmethod
    def accepted(body: Mapping[str, Any], operation_id: str, **settings: Any) -> Answer:
        """202: the work goes on, and ``Location`` names its operation."""
        return Answer(202, body, location=f"/v1/operations/{operation_id}", **settings)

    @staticmethod
    def plan(plan: Mapping[str, Any]) -> Answer:
        """The answer to a dry run."""
        return Answer(200, {"plan": {**plan, "changes": with_subject(plan.get("changes", ()), "", "", {})}})

    @staticmethod
    def free_plan(**parts: Sequence[Any] | Mapping[str, Any]) -> Answer:
        """The answer to a dry run; a part that is not given is empty, and costs nothing."""
        sums = {"hour": 0, "month": 0, "complete": True, "known_hour": 0, "known_month": 0}
        price = {"currency": "USD", **sums, "items": []}
        empty = {"creates": [], "changes": [], "deletes": [], "price": price, "rejected": [], "warnings": []}
        return Answer.plan({**empty, "verdict": "", "groups": [], "price_before": None, "steps": [], **parts})

    @staticmethod
    def change_plan(
        current: Any, fields: Mapping[str, Any], kind: str, name: str = "", **parts: Sequence[Any] | Mapping[str, Any]
    ) -> Answer:
        """The answer to a dry run of a change: what of ``fields`` is not as in ``current``, a record or a view of what
        has this ``kind`` and ``name``, field by field."""
        before = current if isinstance(current, Mapping) else {field: getattr(current, field) for field in fields}
        changes = [
            change
            for field, value in fields.items()
            for change in field_changes(before[field], value, tuple(field.split("/")), field.replace("/", "."))
        ]
        return Answer.free_plan(changes=change_views(changes, kind=kind, name=name), **parts)


Handler = Callable[[Request], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, and everything that the edge, the document and the gateway must know of it.

    ``name`` is method and path template, ``POST /v1/clusters``. ``action`` names it in audit records and in the
    document: by default the name of the function that serves it, as one word (``CreateCluster``). ``summary`` is by
    default the first sentence of that function's docstring; its others are put before ``description``. ``roles``: any
    of them will do. ``machine``: a client without roles may call too; the function checks whose it is.
    ``open_because``: why no token is needed; empty where one is. ``proof`` checks, of an open route whose callers prove
    themselves by the header ``Authorization``, what was sent there, given the path's parameters; it raises
    ``Unauthorized`` before anything else is read. Models may be named ``module:Class``.
    ``audited``: by default what changes something. ``yaml``: the body may be a stream of YAML documents; the model is
    then given their list. ``lenient_body``: the model of the body where the request has ``Prefer: handling=lenient``
    (RFC 7240), which has the same fields and demands fewer. ``large``: the body may have 5 MiB and come as gzip.
    ``optional``: the body may be left out. ``question``: its answer is work and nothing is written, so it takes
    one of the tenant's turns and has a deadline. ``waits``: it takes ``wait``; one resource also takes
    ``If-None-Match``, and a list gives a ``cursor``. ``counted``: a list that takes ``count``. ``platform``: the role
    stockyard-platform may mean the platform itself, which has things of this kind. ``media``: the answer is a file of
    this type (:class:`stockyard.edge.http.content.Content`); empty for JSON of a model. ``other_media``: types that the
    file may have besides, by the header ``Accept``.
    """

    name: str
    _: KW_ONLY
    summary: str = ""
    action: str = ""
    roles: Roles = Roles.NONE
    machine: bool = False
    open_because: str = ""
    proof: Callable[[Mapping[str, str], str | None], None] | None = None
    body: type[BaseModel] | str | None = None
    lenient_body: type[BaseModel] | str | None = None
    optional: bool = False
    answers: Mapping[int, type[BaseModel] | str | None]
    query: tuple[Query, ...] = ()
    paged: bool = False
    counted: bool = False
    waits: bool = False
    question: bool = False
    idempotent: bool = False
    if_match: bool = False
    dry_run: bool = False
    audited: bool | None = None
    yaml: bool = False
    platform: bool = False
    large: bool = False
    media: str = ""
    other_media: tuple[str, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        if self.audited is None:
            object.__setattr__(self, "audited", self.method != "GET")

    @property
    def method(self) -> str:
        """``POST``."""
        return self.name.partition(" ")[0]

    @property
    def path(self) -> str:
        """``/v1/clusters``."""
        return self.name.partition(" ")[2]
