"""What the table's stream alone brings about: here no schedule runs, so that nothing else can have done it."""

from __future__ import annotations

import time

import pytest

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
LONGEST = 90
SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1}
LARGE = {"name": "large", "resources": {"cpu": "8", "memory": "16Gi"}, "usdPerHour": 0.4}
LAB = {"name": "lab", "kind": "simulated", "spec": {"nodeTypes": [SMALL]}}


class Tenant:
    """Calls of one tenant, and of the platform in it."""

    def __init__(self, api, name):
        self._api = api
        self._person = {"Authorization": f"Bearer {api.token(name, *ROLES)}"}
        platform = api.token("platform", "stockyard-platform")
        self._platform = {"Authorization": f"Bearer {platform}", "X-Stockyard-Tenant": name}

    def good(self, method, path, body=None, *, platform=False, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        known = self._platform if platform else self._person
        answer = self._api.send(method, f"/v1/{path}", {**known, **sent}, body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def claim(self, name, provider, cpu="1"):
        """A node of no cluster."""
        manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}
        spec = {"providerRef": provider, "desiredCapacity": {"cpu": cpu}}
        self.good("POST", "apply", {**manifest, "spec": spec})

    def until(self, name, seen):
        """The claim once it is as wanted."""
        end = time.monotonic() + LONGEST
        while True:
            claim = self.good("GET", f"node-claims/{name}")
            if seen(claim):
                return claim
            assert time.monotonic() < end, claim

    def gone(self, name):
        """Once the claim is no more."""
        end = time.monotonic() + LONGEST
        while self._api.send("GET", f"/v1/node-claims/{name}", self._person).status_code != 404:
            assert time.monotonic() < end, name


def available(claim):
    return claim["phase"] == "Available"


def waits_for(reason):
    return lambda claim: claim["reason"] == reason


def drift(claim):
    return next(((one["status"], one["reason"]) for one in claim["conditions"] if one["type"] == "NotDrifted"), None)


@pytest.fixture(scope="module")
def tenant(api):
    """A tenant with one place, which one claim has, while another one waits for it."""
    found = Tenant(api, "waking")
    found.good("POST", "node-providers", LAB)
    found.claim("first", "lab")
    found.until("first", available)
    found.claim("second", "lab")
    found.until("second", waits_for("NoCapacity"))
    return found


def test_a_place_that_is_given_back_goes_to_who_waits_for_it(tenant):
    tenant.good("DELETE", "node-claims/first")
    assert tenant.until("second", available)["type"] == "lab.small"


def test_a_provider_that_appears_serves_who_waits_for_it(tenant):
    tenant.claim("early", "later")
    tenant.until("early", waits_for("ProviderNotFound"))
    tenant.good("POST", "node-providers", {**LAB, "name": "later"})
    assert tenant.until("early", available)["type"] == "later.small"


def test_a_type_that_appears_serves_who_waits_for_it(tenant):
    tenant.claim("big", "later", cpu="8")
    tenant.until("big", waits_for("NoMatchingNodeType"))
    version = tenant.good("GET", "node-providers/later")["version"]
    spec = {"spec": {"nodeTypes": [SMALL, LARGE]}}
    tenant.good("PATCH", "node-providers/later", spec, If_Match=f'"{version}"')
    assert tenant.until("big", available)["type"] == "later.large"


def test_a_type_that_is_allowed_serves_who_waits_for_it(tenant):
    tenant.good("PUT", "allowed-node-types", {"allowed": []}, platform=True, If_Match='"0"')
    tenant.claim("barred", "later", cpu="8")
    tenant.until("barred", waits_for("NoMatchingNodeType"))
    tenant.good("PUT", "allowed-node-types", {"allowed": ["later.*"]}, platform=True, If_Match='"1"')
    tenant.until("barred", available)


def test_a_changed_provider_shows_on_its_nodes_and_so_does_its_undoing(tenant):
    tenant.claim("there", "later", cpu="8")
    assert drift(tenant.until("there", available)) == ("True", "AsLaunched")
    for cpu, expected in (("16", ("False", "TypeChanged")), ("8", ("True", "AsLaunched"))):
        provider = tenant.good("GET", "node-providers/later")
        changed = [SMALL, {**LARGE, "resources": {**LARGE["resources"], "cpu": cpu}}]
        tenant.good(
            "PATCH", "node-providers/later", {"spec": {"nodeTypes": changed}}, If_Match=f'"{provider["version"]}"'
        )
        claim = tenant.until("there", lambda one, expected=expected: drift(one) == expected)
        assert claim["phase"] == "Available"
