"""The client of Cudo, against a Cudo that knows its own document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cudo.api import SimulatedCudo
from local.cudo.document import Judge
from stockyard.errors import (
    CredentialsRevoked,
    InsufficientCapacity,
    PermissionDenied,
    StockyardError,
    VendorConflict,
    VendorNotFound,
    VendorQuotaExceeded,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.providers.clouds.cudo import values
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.errors import retry_delay, translated
from stockyard.providers.clouds.cudo.values import FAILED, PENDING, READY, STOPPED, NewVm, Rule

SHARED = Path(__file__).parents[6] / "shared" / "data"
DALLAS, V100, BROADWELL = "us-dallas-1", "intel-broadwell-v100", "intel-broadwell"
KEY = "cudo-api-key-0123456789"


class Yard:
    """A Cudo, a client of its project, and the clock of both. ``pauses`` are the client's."""

    def __init__(self, judge: Judge | None = None) -> None:
        self.moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
        self.pauses: list[float] = []
        self.cudo = SimulatedCudo({KEY: "acme", "other": "globex"}, lambda: self.moment, judge=judge)
        self.client = self.client_of(KEY, "acme")

    def client_of(self, key: str, project: str) -> Cudo:
        return Cudo(key, project, transport=self.cudo.transport(), pause=self.pauses.append, chance=lambda: 1.0)

    def wait(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def _judges() -> Iterator[Any]:
    yield pytest.param(None, id="trimmed")
    path = SHARED / "cudo-openapi.json"
    if path.exists():
        yield pytest.param(Judge(json.loads(path.read_text(encoding="utf-8"))), id="whole")
    else:
        mark = pytest.mark.skip(reason="the vendor's whole document is not part of the repository")
        yield pytest.param(None, id="whole", marks=mark)


@pytest.fixture(params=list(_judges()))
def yard(request: pytest.FixtureRequest) -> Iterator[Yard]:
    yard = Yard(request.param)
    yield yard
    assert yard.cudo.outside == [], "every request is one of the document"


def new_vm(name: str = "web", **fields: Any) -> NewVm:
    known_fields: dict[str, Any] = {
        "id": name,
        "data_center": DALLAS,
        "machine_type": BROADWELL,
        "vcpus": 4,
        "memory_gib": 8,
        "boot_disk_gib": 50,
        "image": "ubuntu-2404",
        "start_script": "#!/bin/sh\n",
        "metadata": {"stockyard-tenant": "acme", "stockyard-resource": "ncl_1"},
        "security_groups": ["closed"],
        **fields,
    }
    return NewVm(**known_fields)


def _there(machine: values.Vm | None) -> values.Vm:
    assert machine is not None
    return machine


def grouped(yard: Yard) -> None:
    yard.client.put_security_group("closed", DALLAS, "ours", [Rule("6443", "10.0.0.0/8")])


def test_types_have_prices_and_what_is_free(yard: Yard) -> None:
    types = {(kind.name, kind.data_center): kind for kind in yard.client.machine_types()}
    gpu, plain = types[V100, DALLAS], types[BROADWELL, DALLAS]
    assert (gpu.gpu_model, gpu.gpu_price, gpu.max_gpu_free) == ("V100", Decimal("0.19"), 8)
    assert (plain.gpu_model, plain.gpu_price, plain.max_gpu_free) == ("", 0, 0)
    assert plain.memory_gib_per_vcpu == (1.0, 10.0)
    # A unit of the price list is 2 vCPUs and 4 GiB.
    assert float(2 * plain.vcpu_price + 4 * plain.memory_gib_price) == pytest.approx(0.0184, abs=1e-5)
    assert "ubuntu-2404" in yard.client.images()
    assert DALLAS in {center.id for center in yard.client.data_centers()}


def test_a_machine_lives_and_ends_with_its_disks(yard: Yard) -> None:
    client = yard.client
    grouped(yard)
    client.create_disk("data", DALLAS, 100)
    assert client.disk("data") == values.Disk("data", DALLAS, 100, PENDING)
    yard.wait(10)
    machine = client.create_vm(new_vm(storage_disks=["data"], gpus=1, machine_type=V100, ttl_seconds=3600))
    assert (machine.id, machine.state, machine.data_center) == ("web", PENDING, DALLAS)
    yard.wait(60)
    machine = _there(client.vm("web"))
    assert (machine.state, machine.vcpus, machine.memory_gib, machine.gpus) == (READY, 4, 8, 1)
    assert machine.public_address
    assert [disk.id for disk in machine.disks] == ["data"]
    client.stop_vm("web")
    assert [vm.state for vm in client.vms()] == [STOPPED]
    client.start_vm("web")
    with pytest.raises(VendorConflict, match="attached"):
        client.delete_disk("data")
    client.detach_disk("data")
    client.delete_disk("data")
    client.delete_disk("data")
    assert (client.disk("data"), client.disks()) == (None, [])
    client.terminate_vm("web")
    client.terminate_vm("web")
    yard.wait(60)
    assert (client.vm("web"), client.vms()) == (None, [])
    client.terminate_vm("web")
    client.delete_security_group("closed")
    client.delete_security_group("closed")
    assert client.security_groups() == []


@pytest.mark.parametrize("number", [1, 2])
def test_numbers_come_as_text_and_as_numbers(yard: Yard, number: int) -> None:
    grouped(yard)
    for name in [f"vm-{index}" for index in range(number)]:
        yard.client.create_vm(new_vm(name))
    machine = yard.client.vm(f"vm-{number - 1}")
    assert machine is not None
    assert (machine.vcpus, machine.memory_gib) == (4, 8)
    raw = yard.cudo.projects["acme"].machines[f"vm-{number - 1}"]
    assert isinstance(yard.cudo._machine(yard.cudo.projects["acme"], raw)["vcpus"], str if number == 1 else int)


def test_what_fails_is_shown_as_failed(yard: Yard) -> None:
    grouped(yard)
    yard.cudo.plan.failing.update(["CreateVM", "CreateStorageDisk"])
    yard.client.create_disk("data", DALLAS, 100)
    yard.client.create_vm(new_vm())
    yard.wait(60)
    machine, disk = yard.client.vm("web"), yard.client.disk("data")
    assert machine is not None
    assert disk is not None
    assert (machine.state, disk.state) == (FAILED, FAILED)


def test_an_unknown_state_is_one_that_passes() -> None:
    assert values.vm({"id": "a", "state": "TELEPORTING"}).state == PENDING
    assert values.disk({"id": "a", "diskState": "UNKNOWN"}).state == PENDING


def test_a_machine_that_nobody_adopts_ends_by_itself(yard: Yard) -> None:
    grouped(yard)
    for name in ("lost", "adopted"):
        yard.client.create_vm(new_vm(name, ttl_seconds=3600))
    yard.client.keep_vm("adopted")
    yard.wait(3601)
    yard.client.vms()
    yard.wait(60)
    assert [machine.id for machine in yard.client.vms()] == ["adopted"]


def test_what_was_made_before_is_taken_and_what_is_somebody_elses_is_not(yard: Yard) -> None:
    grouped(yard)
    client = yard.client
    assert client.create_vm(new_vm()).id == client.create_vm(new_vm()).id == "web"
    assert len(client.vms()) == 1
    with pytest.raises(VendorConflict):
        client.create_vm(new_vm(metadata={"stockyard-tenant": "acme", "stockyard-resource": "ncl_2"}))
    client.create_disk("data", DALLAS, 100)
    yard.wait(10)
    assert client.create_disk("data", DALLAS, 100).state == READY
    with pytest.raises(VendorConflict):
        client.create_disk("data", DALLAS, 50)
    with pytest.raises(VendorConflict):
        client.put_security_group("closed", DALLAS, "theirs", [])


def test_a_groups_rules_are_what_was_asked_for_last(yard: Yard) -> None:
    grouped(yard)
    grouped(yard)
    assert yard.cudo.calls["UpdateSecurityGroup"] == 0
    rules = [Rule("6443", "10.0.0.0/8"), Rule("22", "192.0.2.0/24")]
    yard.client.put_security_group("closed", DALLAS, "ours", rules)
    group = yard.client.security_group("closed")
    assert group is not None
    assert group.rules == frozenset(rules)


def test_lists_are_read_to_their_end(yard: Yard) -> None:
    for number in range(250):
        yard.client.create_disk(f"disk-{number}", DALLAS, 10)
    assert len({disk.id for disk in yard.client.disks()}) == 250
    assert yard.cudo.calls["ListDisks"] == 3


def test_only_the_keys_own_project_is_reached(yard: Yard) -> None:
    yard.client.check_project()
    with pytest.raises(PermissionDenied):
        yard.client_of("other", "acme").check_project()
    with pytest.raises(CredentialsRevoked) as refusal:
        yard.client_of("no such key", "acme").check_project()
    assert "no such key" not in str(refusal.value)


def test_a_data_center_without_room_says_so(yard: Yard) -> None:
    grouped(yard)
    next(
        offered for offered in yard.cudo.stock if offered.data_center == DALLAS and not offered.gpu_model
    ).free.vcpus = 2
    with pytest.raises(InsufficientCapacity):
        yard.client.create_vm(new_vm())
    assert yard.client.vms() == []


def test_reads_are_repeated_as_the_vendor_asks(yard: Yard) -> None:
    yard.cudo.plan.unavailable["ListVMs"] = 2
    assert yard.client.vms() == []
    assert yard.pauses == [0.5, 0.8]
    yard.cudo.plan.throttled["ListVMs"] = 1
    yard.pauses.clear()
    assert yard.client.vms() == []
    assert yard.pauses == [1.0]
    yard.cudo.plan.unavailable["ListVMs"] = 4
    with pytest.raises(VendorUnavailable):
        yard.client.vms()


def test_a_write_is_repeated_only_where_it_cannot_have_happened(yard: Yard) -> None:
    grouped(yard)
    yard.cudo.plan.throttled["CreateVM"] = 1
    assert yard.client.create_vm(new_vm()).id == "web"
    tries: list[str] = []

    def lost(request: httpx.Request) -> httpx.Response:
        tries.append(request.method)
        raise httpx.ReadTimeout("no answer", request=request)

    silent = Cudo(KEY, "acme", transport=httpx.MockTransport(lost), pause=yard.pauses.append)
    with pytest.raises(VendorTimeout):
        silent.create_vm(new_vm("two"))
    with pytest.raises(VendorTimeout):
        silent.vms()
    assert tries == ["POST", "GET", "GET", "GET", "GET"]


@pytest.mark.parametrize(
    "answer", [httpx.Response(302), httpx.Response(200, text="<html>"), httpx.Response(200, json=[])]
)
def test_an_answer_that_is_none_is_an_error(answer: httpx.Response) -> None:
    client = Cudo(KEY, "acme", transport=httpx.MockTransport(lambda _: answer), pause=lambda _: None)
    with pytest.raises(StockyardError):
        client.vms()


ERRORS: list[tuple[int, dict[str, Any], type[StockyardError]]] = [
    (401, {"code": 16, "message": "m"}, CredentialsRevoked),
    (403, {"status": "PERMISSION_DENIED"}, PermissionDenied),
    (404, {"code": 404}, VendorNotFound),
    (409, {"status": "ALREADY_EXISTS"}, VendorConflict),
    (409, {"status": "FAILED_PRECONDITION", "details": [{"reason": "CLUSTER_STATE_INVALID"}]}, VendorConflict),
    (400, {"status": "INVALID_ARGUMENT", "details": [{"reason": "MACHINE_TYPE_UNAVAILABLE"}]}, InsufficientCapacity),
    (400, {"status": "INVALID_ARGUMENT", "details": [{"fieldViolations": []}]}, VendorRefused),
    (429, {"status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"subject": "s"}]}]}, VendorQuotaExceeded),
    (429, {}, VendorThrottled),
    (503, {"error": {"status": "UNAVAILABLE"}}, VendorUnavailable),
    (504, {}, VendorTimeout),
    (500, {"details": "none"}, VendorUnavailable),
    (418, {}, VendorRefused),
]


@pytest.mark.parametrize(("status", "body", "leaf"), ERRORS)
def test_errors_are_the_products_own(status: int, body: dict[str, Any], leaf: type[StockyardError]) -> None:
    assert type(translated(status, json.dumps(body).encode())) is leaf
    assert type(translated(status, b"<html>")) is not StockyardError


def test_published_errors_are_understood() -> None:
    path = SHARED / "errors.json"
    if not path.exists():
        pytest.skip("the vendor's published errors are not part of the repository")
    leaves = [
        type(translated(entry["code"], json.dumps(entry).encode()))
        for entry in json.loads(path.read_text(encoding="utf-8"))
    ]
    expected = [InsufficientCapacity, VendorConflict, VendorNotFound, VendorQuotaExceeded]
    assert leaves == [*expected, VendorUnavailable, VendorUnavailable]


def test_the_delay_that_the_vendor_asks_for() -> None:
    assert retry_delay(json.dumps({"details": [{"retryDelay": "30s"}]}).encode()) == 30.0
    assert retry_delay(json.dumps({"details": [{"retryDelay": "1.500s"}]}).encode()) == 1.5
    assert retry_delay(json.dumps({"details": [{"retryDelay": "soon"}, 3]}).encode()) is None
    assert retry_delay(b"no json") is None


@pytest.mark.parametrize("written", [{"value": "NaN"}, {"value": "-1"}, {"value": "one"}, {"value": {}}])
def test_a_price_that_is_none_is_refused(written: Any) -> None:
    with pytest.raises(VendorRefused):
        values.price({"vcpuPriceHr": written}, "vcpuPriceHr")


def test_a_missing_price_is_nothing() -> None:
    assert values.price({}, "x") == values.price({"x": {"value": ""}}, "x") == 0
    assert values.whole({"x": "12"}, "x") == 12
    with pytest.raises(VendorRefused):
        values.whole({"x": "many"}, "x")
    with pytest.raises(VendorRefused):
        values.number({"x": []}, "x")
