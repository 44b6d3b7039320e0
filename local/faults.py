"""Faults at the product's calls to vendors: every call is numbered and recorded, and one of them can be made to fail.

A call is known by where it happens (a phase of a document, a door), its name and its number there, so that a recorded
run says which calls a later run will make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar
from unittest.mock import patch

from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from stockyard.errors import PermissionDenied, VendorThrottled, VendorTimeout

T = TypeVar("T")

TABLE_WRITES = frozenset({"dynamodb.TransactWriteItems", "dynamodb.PutItem", "dynamodb.UpdateItem"})
_READS = ("Describe", "Get", "List", "Query", "BatchGet", "TransactGet", "Scan", "AssumeRole", "find_", "owned_")
_READS_OF_PORTS = frozenset({"identity.client_secret", "identity.service_token"})
_THROTTLED, _REFUSED = "ThrottlingException", "AccessDeniedException"
_CODES: Mapping[str, tuple[str, str]] = {
    "ec2": ("RequestLimitExceeded", "UnauthorizedOperation"),
    "elbv2": ("Throttling", "AccessDenied"),
    "iam": ("Throttling", "AccessDenied"),
    "sts": ("Throttling", "AccessDenied"),
}
_BURST = 2
"""How many calls in a row a throttled vendor refuses."""


class Crash(BaseException):
    """The process dies here. Not an ``Exception``, so that nothing in the product can catch it."""


class Mode(Enum):
    """What happens at the chosen call."""

    BEFORE = "before"
    """The process dies before the call."""
    AFTER = "after"
    """The process dies after the call, before it is recorded."""
    RECORDED = "recorded"
    """The process dies after the table's write that follows the call."""
    TIMEOUT = "timeout"
    """The call is carried out, its answer is lost."""
    THROTTLED = "throttled"
    """The call and the next one of that name are refused for now."""
    REFUSED = "refused"
    """The call is refused, and every further one of that name, until ``Tap.lift``."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One call: the ``number``-th (from 1) of ``name`` (``ec2.CreateVpc``, ``identity.create_client``) at ``where``."""

    where: str
    name: str
    number: int

    @property
    def mutating(self) -> bool:
        """Whether it can change something."""
        return self.name not in _READS_OF_PORTS and not self.name.partition(".")[2].startswith(_READS)

    @property
    def record(self) -> bool:
        """Whether it writes our own table."""
        return self.name in TABLE_WRITES

    def __str__(self) -> str:
        return f"{self.where}-{self.name}-{self.number}"


@dataclass(frozen=True, slots=True)
class Errors:
    """What a vendor's client raises."""

    timeout: Callable[[], Exception]
    throttled: Callable[[], Exception]
    refused: Callable[[], Exception]


@dataclass
class Fault:
    """One fault: where, what, and whether it has come to it."""

    call: Call
    mode: Mode
    fired: bool = False
    _left: int = 0
    _trailing: bool = False

    def __post_init__(self) -> None:
        self._left = _BURST if self.mode is Mode.THROTTLED else 1

    def strikes(self, call: Call) -> bool:
        """Whether this is its call, or one of those that the same fault hits next."""
        if self._trailing:
            return call.record
        if self.mode is Mode.REFUSED and self.fired:
            # Our own table is taken away from one place only: without it nothing could be told at all.
            elsewhere = call.where != self.call.where and call.name.startswith("dynamodb.")
            return call.name == self.call.name and not elsewhere
        again = self.mode is Mode.THROTTLED and self.fired and call.name == self.call.name
        if not self._left or not (call == self.call or again):
            return False
        self._left -= 1
        return True

    def strike(self, call: Call, work: Callable[[], T], errors: Errors) -> T:
        """What becomes of a call that it strikes."""
        if self.mode is Mode.RECORDED:
            self._trailing = not call.record
            if self._trailing:
                return work()
            work()
            self.fired = True
            raise Crash(str(call))
        self.fired = True
        if self.mode in (Mode.AFTER, Mode.TIMEOUT):
            with suppress(Exception):  # also a refusal is lost with the process, or with the answer
                work()
        if self.mode in (Mode.BEFORE, Mode.AFTER):
            raise Crash(str(call))
        made = {Mode.TIMEOUT: errors.timeout, Mode.THROTTLED: errors.throttled, Mode.REFUSED: errors.refused}
        raise made[self.mode]()


@dataclass
class Tap:
    """Where all vendor calls pass. ``where()`` names the place; an empty name lets a call pass unseen."""

    where: Callable[[], str]
    calls: list[Call] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    struck: Callable[[Fault], None] = lambda _: None
    """Told before a fault strikes for the first time."""
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def lift(self) -> None:
        """Whatever has failed so far is well again."""
        self.faults = [fault for fault in self.faults if not fault.fired]

    def around(self, name: str, work: Callable[[], T], errors: Errors) -> T:
        """Carry the call out, or what the first fault that strikes makes of it."""
        where = self.where()
        if not where:
            return work()
        self._counts[(where, name)] += 1
        call = Call(where, name, self._counts[(where, name)])
        self.calls.append(call)
        for fault in self.faults:
            if fault.strikes(call):
                if not fault.fired:
                    self.struck(fault)
                return fault.strike(call, work, errors)
        return work()


PORT_ERRORS = Errors(
    lambda: VendorTimeout("no answer in time", code="Injected"),
    lambda: VendorThrottled("too many requests", code="429"),
    lambda: PermissionDenied("not allowed", code="403"),
)


class Tapped:
    """A port whose methods named in ``methods`` pass through the tap; everything else is the port's own."""

    def __init__(self, port: Any, tap: Tap, name: str, methods: frozenset[str]) -> None:
        self._port, self._tap, self._name, self._methods = port, tap, name, methods

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._port, attribute)
        if attribute not in self._methods:
            return found
        tap, name = self._tap, f"{self._name}.{attribute}"

        def call(*args: Any, **given: Any) -> Any:
            return tap.around(name, lambda: found(*args, **given), PORT_ERRORS)

        return call


Intercept = Callable[[Any, str, Mapping[str, Any]], Any]
"""(client, operation, parameters) -> answer, in place of the vendor."""


def _boto_errors(service: str, operation: str) -> Errors:
    throttled, refused = _CODES.get(service, (_THROTTLED, _REFUSED))

    def answer(code: str, status: int) -> ClientError:
        body: Any = {"Error": {"Code": code, "Message": "injected"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        return ClientError(body, operation)

    return Errors(
        lambda: ReadTimeoutError(endpoint_url=f"https://{service}.example"),
        lambda: answer(throttled, 400),
        lambda: answer(refused, 403),
    )


@contextmanager
def tapped_clients(tap: Tap, intercepts: Mapping[str, Intercept]) -> Iterator[None]:
    """Every call of every boto3 client passes through ``tap``; those of a service, or a ``service.Operation``, in
    ``intercepts`` end there.

    The faults take the place of what botocore gives up with after its own retries.
    """
    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = str(client.meta.service_model.service_name)
        name = f"{service}.{operation}"
        carry_out: Intercept = intercepts.get(name) or intercepts.get(service) or original
        return tap.around(name, lambda: carry_out(client, operation, parameters), _boto_errors(service, operation))

    with patch.object(BaseClient, "_make_api_call", call):
        yield
