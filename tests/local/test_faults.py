"""Calls are numbered by place and name, and a fault hits exactly its call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT
from stockyard.errors import PermissionDenied, VendorThrottled, VendorTimeout
from tests.harness.crash.faults import PORT_ERRORS, Call, Crash, Fault, Mode, Tap, Tapped, tapped_clients
from tests.harness.worlds.inprocess import credentials

MAKE = "cloud.make"
RECORD = "dynamodb.PutItem"


class Bench:
    """A place with calls that are recorded when they are done."""

    def __init__(self, mode: Mode, name: str = MAKE, number: int = 1) -> None:
        self.point = "here"
        self.trace: list[str] = []
        self.fault = Fault(Call("here", name, number), mode)
        self.tap = Tap(lambda: self.point, faults=[self.fault])

    def call(self, name: str = MAKE) -> None:
        self.tap.around(name, lambda: self.trace.append(name), PORT_ERRORS)


def test_calls_are_numbered_by_point_and_name() -> None:
    bench = Bench(Mode.BEFORE, number=9)
    bench.call()
    bench.call(RECORD)
    bench.call()
    bench.point = "there"
    bench.call()
    bench.point = ""
    bench.call()
    assert bench.tap.calls == [
        Call("here", MAKE, 1),
        Call("here", RECORD, 1),
        Call("here", MAKE, 2),
        Call("there", MAKE, 1),
    ]
    assert len(bench.trace) == 5
    assert not bench.fault.fired


@pytest.mark.parametrize(
    ("mode", "error", "done"),
    [
        (Mode.BEFORE, Crash, 0),
        (Mode.AFTER, Crash, 1),
        (Mode.TIMEOUT, VendorTimeout, 1),
        (Mode.THROTTLED, VendorThrottled, 0),
        (Mode.REFUSED, PermissionDenied, 0),
    ],
)
def test_a_fault_hits_its_call(mode: Mode, error: type[BaseException], done: int) -> None:
    bench = Bench(mode, number=2)
    bench.call()
    before = bench.fault.fired
    with pytest.raises(error):
        bench.call()
    assert (before, bench.fault.fired) == (False, True)
    assert len(bench.trace) == 1 + done


def outcomes(bench: Bench, *calls: Callable[[], None]) -> str:
    """One letter for each call: ``o`` when it was done, ``x`` for an error."""
    outcome = ""
    for call in calls:
        try:
            call()
            outcome += "o"
        except (Crash, VendorThrottled, PermissionDenied):
            outcome += "x"
    return outcome


def test_a_crash_happens_once_throttling_twice_and_a_refusal_until_it_is_lifted() -> None:
    for mode, expected in ((Mode.BEFORE, "xooo"), (Mode.THROTTLED, "xxoo"), (Mode.REFUSED, "xxxx")):
        bench = Bench(mode)
        assert outcomes(bench, *[bench.call] * 4) == expected
        bench.tap.lift()
        assert outcomes(bench, bench.call) == "o"


def test_lift_keeps_a_fault_that_has_not_happened() -> None:
    bench = Bench(Mode.REFUSED, number=2)
    bench.tap.lift()
    assert outcomes(bench, bench.call, bench.call) == "ox"


def test_a_refusal_hits_a_vendor_everywhere_and_our_table_at_one_point() -> None:
    for name, elsewhere in ((MAKE, "x"), (RECORD, "o")):
        bench = Bench(Mode.REFUSED, name)
        assert outcomes(bench, partial(bench.call, name)) == "x"
        bench.point = "there"
        assert outcomes(bench, partial(bench.call, name)) == elsewhere


def test_recorded_crashes_after_the_next_write_of_our_table() -> None:
    bench = Bench(Mode.RECORDED)
    bench.call()
    before = bench.fault.fired
    bench.call("dynamodb.GetItem")
    with pytest.raises(Crash):
        bench.call(RECORD)
    assert (before, bench.fault.fired) == (False, True)
    assert bench.trace == [MAKE, "dynamodb.GetItem", RECORD]


@pytest.mark.parametrize(("mode", "error"), [(Mode.AFTER, Crash), (Mode.TIMEOUT, VendorTimeout)])
def test_an_error_of_the_vendor_is_lost_with_the_answer(mode: Mode, error: type[BaseException]) -> None:
    bench = Bench(mode)
    with pytest.raises(error):
        bench.tap.around(MAKE, refused, PORT_ERRORS)


def test_recorded_crashes_after_the_record_of_a_refusal() -> None:
    bench = Bench(Mode.RECORDED)
    with pytest.raises(ZeroDivisionError):
        bench.tap.around(MAKE, refused, PORT_ERRORS)
    with pytest.raises(Crash):
        bench.call(RECORD)


def refused() -> None:
    raise ZeroDivisionError


def test_on_fault_is_called_once() -> None:
    bench = Bench(Mode.REFUSED)
    struck_faults: list[Fault] = []
    bench.tap.on_fault = struck_faults.append
    outcomes(bench, bench.call, bench.call)
    assert struck_faults == [bench.fault]


def test_only_named_methods_of_a_port_pass_the_tap() -> None:
    class Port:
        size = 3

        def make(self, text: str) -> str:
            return text

        def look(self) -> str:
            return "seen"

    tap = Tap(lambda: "here")
    port = Tapped(Port(), tap, "cloud", frozenset({"make"}))
    assert (port.size, port.make("x"), port.look()) == (3, "x", "seen")
    assert tap.calls == [Call("here", "cloud.make", 1)]


def test_a_client_gets_the_errors_that_botocore_raises_after_retries() -> None:
    errors: list[str] = []
    with mock_aws(), credentials(OWN_ACCOUNT):
        tap = Tap(lambda: "here")
        with tapped_clients(tap, {"sts.GetCallerIdentity": lambda *_: {"Account": "intercepted"}}):
            ec2 = boto3.client("ec2")
            for mode in (Mode.TIMEOUT, Mode.THROTTLED, Mode.REFUSED):
                tap.faults = [Fault(Call("here", "ec2.CreateVpc", len(errors) + 1), mode)]
                try:
                    ec2.create_vpc(CidrBlock=f"10.{len(errors)}.0.0/16")
                except ReadTimeoutError as lost:
                    errors.append(type(lost).__name__)
                except ClientError as refused:
                    errors.append(refused.response["Error"]["Code"])
            assert boto3.client("sts").get_caller_identity()["Account"] == "intercepted"
        cidrs = [vpc["CidrBlock"] for vpc in ec2.describe_vpcs()["Vpcs"]]
    assert errors == ["ReadTimeoutError", "RequestLimitExceeded", "UnauthorizedOperation"]
    assert "10.0.0.0/16" in cidrs  # carried out; only the answer was lost
    assert not {"10.1.0.0/16", "10.2.0.0/16"} & set(cidrs)


@pytest.mark.parametrize(
    ("name", "mutating"),
    [
        ("ec2.CreateVpc", True),
        ("ec2.DescribeVpcs", False),
        ("sts.AssumeRole", False),
        ("identity.client_secret", False),
        ("identity.delete_client", True),
        ("dynamodb.Query", False),
    ],
)
def test_mutating_calls_are_recognized_by_name(name: str, mutating: bool) -> None:
    assert Call("here", name, 1).mutating is mutating
