"""The operator of Metal3's hosts as baremetal-operator (02aa505) with its fixture provisioner was seen to be.

It speaks to an API server, simulated or real, by the same requests, and has no metal. What was seen is in
``tests/contracts/test_bare_metal_operator.py``, row by row. From the operator's own documents, and not seen, are: a
host whose user data are not there does not get on, one that is paused or detached is left alone, and one that is
deleted is wiped first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from local.kubernetes.real.callers import Caller
from local.kubernetes.real.client import Refused

ROOT = "/apis/metal3.io/v1alpha1"
FINALIZER = "baremetalhost.metal3.io"
_ASIDE = frozenset({"baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached"})
MANAGER = "bmo"
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seconds:
    """Durations of what the operator does."""

    register: float = 0.25
    prepare: float = 0.25
    provision: float = 10.0
    deprovision: float = 10.0
    power: float = 0.25


@dataclass
class BareMetalOperator:
    """Works on all hosts of a cluster, a round at a time. ``failing`` are the names of hosts on which images cannot be
    written, ``hardware`` is what an inspection finds."""

    caller: Caller
    now: Callable[[], datetime]
    seconds: Seconds = field(default_factory=Seconds)
    failing: set[str] = field(default_factory=set)
    hardware: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda _host: {"cpus": 1, "memory": 131_072}

    def __post_init__(self) -> None:
        self._since: dict[tuple[str, str], datetime] = {}

    def work(self) -> int:
        """One round; how many hosts changed."""
        changed = 0
        for listed in self.caller.call("GET", f"{ROOT}/baremetalhosts")["items"]:
            host: Object | None = {"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", **listed}
            for _ in range(4):  # states that take no time follow each other at once
                host = self._stepped(host) if host is not None else None
                changed += host is not None
        return changed

    def _stepped(self, host: Object) -> Object | None:
        """The host after its next step; None when there is none now."""
        if _ASIDE & (host["metadata"].get("annotations") or {}).keys():
            return None
        if FINALIZER not in (host["metadata"].get("finalizers") or ()):
            if host["metadata"].get("deletionTimestamp"):
                return None
            return self._with_finalizers(host, [*(host["metadata"].get("finalizers") or ()), FINALIZER])
        before = _status(host)
        status = json.loads(json.dumps(before))
        if host["metadata"].get("deletionTimestamp") and self._is_deleted(host, status):
            finalizers = [each for each in host["metadata"]["finalizers"] if each != FINALIZER]
            self._with_finalizers(host, finalizers)
            return None
        if not host["metadata"].get("deletionTimestamp"):
            self._next(host, status)
        if status == before:
            return None
        return self._put({**host, "status": status}, "/status")

    def _with_finalizers(self, host: Object, finalizers: list[str]) -> Object | None:
        return self._put({**host, "metadata": {**host["metadata"], "finalizers": finalizers}}, "")

    def _put(self, host: Object, part: str) -> Object | None:
        """The host after the change; None when somebody else has changed it meanwhile: the next round sees it anew."""
        meta = host["metadata"]
        path = f"{ROOT}/namespaces/{meta['namespace']}/baremetalhosts/{meta['name']}{part}?fieldManager={MANAGER}"
        try:
            answer: Object = self.caller.call("PUT", path, host)
        except Refused as refused:
            if refused.status in (404, 409):
                return None
            raise
        return answer

    def _is_deleted(self, host: Object, status: Object) -> bool:
        """Whether a host that is being deleted is wiped; begins or ends that."""
        if status["provisioning"]["state"] in ("provisioned", "provisioning"):
            self._enter(host, status, "deprovisioning")
        elif status["provisioning"]["state"] != "deprovisioning" or self._is_over(host, self.seconds.deprovision):
            return True
        return False

    def _next(self, host: Object, status: Object) -> None:
        """The host's next state, in its status."""
        fault = self._registration_fault(host)
        if fault is not None:
            status.update(operationalStatus="error", errorType="registration error", errorMessage=fault)
            status["errorCount"] = max(1, status["errorCount"])
            return
        if status.get("errorType") == "registration error":
            _well(status)
        state = status["provisioning"]["state"]
        step = {
            "": self._register,
            "registering": self._register,
            "preparing": self._prepare,
            "available": self._available,
            "provisioning": self._provision,
            "provisioned": self._provisioned,
            "deprovisioning": self._deprovision,
        }[state]
        step(host, status)

    def _registration_fault(self, host: Object) -> str | None:
        bmc = host["spec"].get("bmc")
        if not bmc:
            return "Missing BMC connection details"
        name = bmc["credentialsName"]
        if not self._has_secret(host, name):
            return f"The BMC secret {host['metadata']['namespace']}/{name} does not exist"
        return None

    def _has_secret(self, host: Object, name: str, namespace: str = "") -> bool:
        space = namespace or host["metadata"]["namespace"]
        try:
            self.caller.call("GET", f"/api/v1/namespaces/{space}/secrets/{name}")
        except Refused as refused:
            if refused.status == 404:
                return False
            raise
        return True

    def _register(self, host: Object, status: Object) -> None:
        if self._is_over(host, self.seconds.register):
            self._enter(host, status, "preparing")
            status["provisioning"]["ID"] = f"id-{host['metadata']['name']}"

    def _prepare(self, host: Object, status: Object) -> None:
        if self._is_over(host, self.seconds.prepare):
            hardware = self.hardware(host)
            status["hardware"] = {
                "cpu": {"arch": "x86_64", "count": hardware["cpus"]},
                "hostname": host["metadata"]["name"],
                "ramMebibytes": hardware["memory"],
            }
            self._enter(host, status, "available")

    def _available(self, host: Object, status: Object) -> None:
        if host["spec"].get("image") and host["spec"]["online"]:
            status["provisioning"]["image"] = host["spec"]["image"]
            self._enter(host, status, "provisioning")
            return
        self._power(host, status)

    def _provision(self, host: Object, status: Object) -> None:
        if _is_cancelled(host, status):
            self._enter(host, status, "deprovisioning")
            return
        if not self._is_over(host, self.seconds.provision) or not self._has_first_boot(host):
            return
        if host["metadata"]["name"] in self.failing:
            text = "Image provisioning failed: the image could not be written"
            status.update(operationalStatus="error", errorType="provisioning error", errorMessage=text)
            status["errorCount"] = max(1, status["errorCount"])
            return
        self._enter(host, status, "provisioned")
        status["poweredOn"] = True

    def _has_first_boot(self, host: Object) -> bool:
        """Whether the Secrets that the host refers to are there."""
        references = [host["spec"].get(name) for name in ("userData", "networkData", "metaData")]
        return all(self._has_secret(host, each["name"], each.get("namespace", "")) for each in references if each)

    def _provisioned(self, host: Object, status: Object) -> None:
        if _is_cancelled(host, status):
            self._enter(host, status, "deprovisioning")
            return
        self._power(host, status)

    def _deprovision(self, host: Object, status: Object) -> None:
        if self._is_over(host, self.seconds.deprovision):
            status["provisioning"].pop("image", None)
            status["poweredOn"] = False
            _well(status)
            self._enter(host, status, "available")

    def _power(self, host: Object, status: Object) -> None:
        """Power follows the wish a moment later."""
        key = (host["metadata"]["uid"], "power")
        if status["poweredOn"] is host["spec"]["online"]:
            self._since.pop(key, None)
        elif (self.now() - self._since.setdefault(key, self.now())).total_seconds() >= self.seconds.power:
            status["poweredOn"] = host["spec"]["online"]

    def _enter(self, host: Object, status: Object, state: str) -> None:
        status["provisioning"]["state"] = state
        self._since[host["metadata"]["uid"], "state"] = self.now()

    def _is_over(self, host: Object, seconds: float) -> bool:
        since = self._since.setdefault((host["metadata"]["uid"], "state"), self.now())
        return (self.now() - since).total_seconds() >= seconds


def _status(host: Mapping[str, Any]) -> Object:
    first = {
        "errorCount": 0,
        "errorMessage": "",
        "operationalStatus": "OK",
        "poweredOn": False,
        "provisioning": {"ID": "", "state": ""},
        "provisioningFailCount": 0,
    }
    status: Object = host.get("status") or first
    return status


def _is_cancelled(host: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the image is to go: there is none any more, or it is another one. The operator asks nobody."""
    image, present = host["spec"].get("image") or {}, status["provisioning"].get("image") or {}
    return not image.get("url") or (bool(present.get("url")) and image["url"] != present["url"])


def _well(status: Object) -> None:
    status.update(operationalStatus="OK", errorMessage="", errorCount=0)
    status.pop("errorType", None)


def states(host: Mapping[str, Any]) -> Iterator[str]:
    """State and power of a host, for whoever looks."""
    status = _status(host)
    yield status["provisioning"]["state"]
    yield "on" if status["poweredOn"] else "off"
