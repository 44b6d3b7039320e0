"""Faults at the product's calls to vendors: every call is numbered and recorded, and a chosen call can fail.

A call is identified by its point (a phase of a workflow, or a handler), its name and its number there. So a recorded
run shows which calls a later run will make.
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

from stockyard import side_by_side
from stockyard.errors import PermissionDenied, VendorThrottled, VendorTimeout

T = TypeVar("T")

TABLE_WRITES = frozenset({"dynamodb.TransactWriteItems", "dynamodb.PutItem", "dynamodb.UpdateItem"})
_READS = (
    "Describe",
    "Get",
    "List",
    "Query",
    "BatchGet",
    "TransactGet",
    "Scan",
    "AssumeRole",
    "Decrypt",
    "find_",
    "owned_",
)
_READS_OF_PORTS = frozenset({"identity.client_secret", "identity.service_token"})
_THROTTLED, _REFUSED = "ThrottlingException", "AccessDeniedException"
_CODES: Mapping[str, tuple[str, str]] = {
    "ec2": ("RequestLimitExceeded", "UnauthorizedOperation"),
    "elbv2": ("Throttling", "AccessDenied"),
    "iam": ("Throttling", "AccessDenied"),
    "sts": ("Throttling", "AccessDenied"),
    "dlm": ("ThrottlingException", "AccessDeniedException"),
}
_BURST = 2
"""How many calls in a row a throttled vendor refuses."""
_TRIES = {"cudo": 4}
"""How many requests a call is, of clients that pass the tap with each of their own tries."""


class Crash(BaseException):
    """The process dies here. Not an ``Exception``, so that nothing in the product can catch it."""


class Mode(Enum):
    """Event at the chosen call."""

    BEFORE = "before"
    """The process dies before the call."""
    AFTER = "after"
    """The process dies after the call, before it is recorded."""
    RECORDED = "recorded"
    """The process dies after the table's write that follows the call."""
    TIMEOUT = "timeout"
    """The call is done, but its answer is lost."""
    THROTTLED = "throttled"
    """The call and the next call of that name are throttled."""
    REFUSED = "refused"
    """The call and every later call of that name are refused, until ``Tap.lift``."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One call: the ``number``-th (from 1) of ``name`` (``ec2.CreateVpc``, ``identity.create_client``) at ``point``."""

    point: str
    name: str
    number: int

    @property
    def mutating(self) -> bool:
        """Whether the call can change something."""
        return self.name not in _READS_OF_PORTS and not self.name.partition(".")[2].startswith(_READS)

    @property
    def record(self) -> bool:
        """Whether the call writes our own table."""
        return self.name in TABLE_WRITES

    def __str__(self) -> str:
        return f"{self.point}-{self.name}-{self.number}"


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors that a vendor's client raises."""

    timeout: Callable[[], Exception]
    throttled: Callable[[], Exception]
    refused: Callable[[], Exception]


@dataclass
class Fault:
    """One fault: the call, the mode, and whether it has happened."""

    call: Call
    mode: Mode
    fired: bool = False
    _remaining: int = 0
    _trailing: bool = False

    def __post_init__(self) -> None:
        tries = _TRIES.get(self.call.name.partition(".")[0], 1)
        self._remaining = _BURST * tries if self.mode is Mode.THROTTLED else 1

    def applies_to(self, call: Call) -> bool:
        """Whether this is the fault's call, or a later call that the same fault hits too."""
        if self._trailing:
            return call.record
        if self.mode is Mode.REFUSED and self.fired:
            # Our own table is refused at one point only. Without it the product could not report anything.
            elsewhere = call.point != self.call.point and call.name.startswith("dynamodb.")
            return call.name == self.call.name and not elsewhere
        again = self.mode is Mode.THROTTLED and self.fired and call.name == self.call.name
        if not self._remaining or not (call == self.call or again):
            return False
        self._remaining -= 1
        return True

    def apply(self, call: Call, work: Callable[[], T], errors: Errors) -> T:
        """Does to the call what the mode says."""
        if self.mode is Mode.RECORDED:
            self._trailing = not call.record
            if self._trailing:
                return work()
            work()
            self.fired = True
            raise Crash(str(call))
        self.fired = True
        if self.mode in (Mode.AFTER, Mode.TIMEOUT):
            with suppress(Exception):  # An error is lost too, with the process or with the answer.
                work()
        if self.mode in (Mode.BEFORE, Mode.AFTER):
            raise Crash(str(call))
        error_of = {Mode.TIMEOUT: errors.timeout, Mode.THROTTLED: errors.throttled, Mode.REFUSED: errors.refused}
        raise error_of[self.mode]()


@dataclass
class Tap:
    """All calls to vendors pass here. ``point()`` names the current point; calls at an empty point are not recorded."""

    point: Callable[[], str]
    calls: list[Call] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    on_call: Callable[[Call], None] = lambda _: None
    """Called before each call is done."""
    on_fault: Callable[[Fault], None] = lambda _: None
    """Called before a fault happens for the first time."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the last call, by name."""
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def lift(self) -> None:
        """Ends all faults that have happened so far."""
        self.faults = [fault for fault in self.faults if not fault.fired]

    def around(self, name: str, work: Callable[[], T], errors: Errors) -> T:
        """Does the call, or applies the first fault that hits it."""
        point = self.point()
        if not point:
            return work()
        self._counts[(point, name)] += 1
        call = Call(point, name, self._counts[(point, name)])
        self.calls.append(call)
        self.on_call(call)
        for fault in self.faults:
            if fault.applies_to(call):
                if not fault.fired:
                    self.on_fault(fault)
                return fault.apply(call, work, errors)
        return work()


PORT_ERRORS = Errors(
    lambda: VendorTimeout("no answer in time", code="Injected"),
    lambda: VendorThrottled("too many requests", code="429"),
    lambda: PermissionDenied("not allowed", code="403"),
)


class Tapped:
    """A port whose methods in ``methods`` pass through the tap. All other attributes are the port's own."""

    def __init__(self, port: Any, tap: Tap, name: str, methods: frozenset[str]) -> None:
        self._port, self._tap, self._name, self._methods = port, tap, name, methods

    def __getattr__(self, attribute: str) -> Any:
        member = getattr(self._port, attribute)
        if attribute not in self._methods:
            return member
        tap, name = self._tap, f"{self._name}.{attribute}"

        def call(*args: Any, **options: Any) -> Any:
            tap.parameters = options
            return tap.around(name, lambda: member(*args, **options), PORT_ERRORS)

        return call


Intercept = Callable[[Any, str, Mapping[str, Any]], Any]
"""(client, operation, parameters) -> answer; called instead of the vendor."""


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
    """Passes every call of every boto3 client through ``tap``. ``intercepts`` answers calls of the services and
    ``service.Operation`` that it names.

    The faults stand for the errors that botocore raises after its own retries.
    """
    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = str(client.meta.service_model.service_name)
        name = f"{service}.{operation}"
        tap.parameters = parameters
        carry_out: Intercept = intercepts.get(name) or intercepts.get(service) or original
        return tap.around(name, lambda: carry_out(client, operation, parameters), _boto_errors(service, operation))

    # One call after the other: a fault is at the call of a number.
    with patch.object(BaseClient, "_make_api_call", call), patch.object(side_by_side, "LANES", 1):
        yield
