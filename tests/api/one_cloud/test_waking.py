"""Waiting claims that the table's stream wakes. No schedule runs here, so nothing else can have woken them."""

from __future__ import annotations

import time

import pytest

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
LONGEST = 90
SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1}
LARGE = {"name": "large", "resources": {"cpu": "8", "memory": "16Gi"}, "usdPerHour": 0.4}
LAB = {"name": "lab", "kind": "simulated", "spec": {"nodeTypes": [SMALL]}}


class Tenant:
    """Calls of one tenant, and of the platform on that tenant's resources."""

    def __init__(self, api, name):
        self._api = api
        self._person = {"Authorization": f"Bearer {api.token(name, *ROLES)}"}
        platform = api.token("platform", "stockyard-platform")
        self._platform = {"Authorization": f"Bearer {platform}", "X-Stockyard-Tenant": name}

    def good(self, method, path, body=None, *, platform=False, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        identity = self._platform if platform else self._person
        answer = self._api.send(method, f"/v1/{path}", {**identity, **sent}, body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def claim(self, name, provider, cpu="1"):
        """Claims a node that belongs to no cluster."""
        manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}
        spec = {"providerRef": provider, "desiredCapacity": {"cpu": cpu}}
        self.good("POST", "apply", {**manifest, "spec": spec})

    def until(self, name, reached):
        """Waits until ``reached`` is true of the claim, and returns the claim."""
        end = time.monotonic() + LONGEST
        while True:
            claim = self.good("GET", f"node-claims/{name}")
            if reached(claim):
                return claim
            assert time.monotonic() < end, claim

    def wait_until_gone(self, name):
        """Waits until the claim is deleted."""
        end = time.monotonic() + LONGEST
        while self._api.send("GET", f"/v1/node-claims/{name}", self._person).status_code != 404:
            assert time.monotonic() < end, name


def available(claim):
    return claim["phase"] == "Available"


def waits_for(reason):
    return lambda claim: claim["reason"] == reason


def drift(claim):
    return next(
        (
            (condition["status"], condition["reason"])
            for condition in claim["conditions"]
            if condition["type"] == "NotDrifted"
        ),
        None,
    )


@pytest.fixture(scope="module")
def tenant(api):
    """A tenant with one capacity slot: one claim has it and another claim waits for it."""
    calls = Tenant(api, "waking")
    calls.good("POST", "node-providers", LAB)
    calls.claim("first", "lab")
    calls.until("first", available)
    calls.claim("second", "lab")
    calls.until("second", waits_for("NoCapacity"))
    return calls


def test_a_freed_capacity_slot_goes_to_a_waiting_claim(tenant):
    tenant.good("DELETE", "node-claims/first")
    assert tenant.until("second", available)["type"] == "lab.small"


def test_a_new_provider_serves_a_waiting_claim(tenant):
    tenant.claim("early", "later")
    tenant.until("early", waits_for("ProviderNotFound"))
    tenant.good("POST", "node-providers", {**LAB, "name": "later"})
    assert tenant.until("early", available)["type"] == "later.small"


def test_a_new_node_type_serves_a_waiting_claim(tenant):
    tenant.claim("big", "later", cpu="8")
    tenant.until("big", waits_for("NoMatchingNodeType"))
    version = tenant.good("GET", "node-providers/later")["version"]
    spec = {"spec": {"nodeTypes": [SMALL, LARGE]}}
    tenant.good("PATCH", "node-providers/later", spec, If_Match=f'"{version}"')
    assert tenant.until("big", available)["type"] == "later.large"


def test_a_newly_allowed_node_type_serves_a_waiting_claim(tenant):
    tenant.good("PUT", "allowed-node-types", {"allowed": []}, platform=True, If_Match='"0"')
    tenant.claim("barred", "later", cpu="8")
    tenant.until("barred", waits_for("NoMatchingNodeType"))
    tenant.good("PUT", "allowed-node-types", {"allowed": ["later.*"]}, platform=True, If_Match='"1"')
    tenant.until("barred", available)


def test_nodes_drift_when_their_provider_changes_and_stop_when_it_changes_back(tenant):
    tenant.claim("there", "later", cpu="8")
    assert drift(tenant.until("there", available)) == ("True", "AsLaunched")
    for cpu, expected in (("16", ("False", "TypeChanged")), ("8", ("True", "AsLaunched"))):
        provider = tenant.good("GET", "node-providers/later")
        changed = [SMALL, {**LARGE, "resources": {**LARGE["resources"], "cpu": cpu}}]
        tenant.good(
            "PATCH", "node-providers/later", {"spec": {"nodeTypes": changed}}, If_Match=f'"{provider["version"]}"'
        )
        claim = tenant.until("there", lambda claim, expected=expected: drift(claim) == expected)
        assert claim["phase"] == "Available"
