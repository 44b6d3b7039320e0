"""Every route with every kind of token, from ``openapi.json``: the gateway answers 401, the table of roles 403."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import replace

import pytest

from local.functions.authorizer import Refused

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin", "stockyard-platform")


OPEN = frozenset({"/v1/docs", "/v1/health", "/v1/openapi.json"})
"""Paths that anybody may read."""


def encoded(document):
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def unsigned(api, **header):
    return f"{encoded({'typ': 'JWT', **header})}.{encoded(api.claims(api.token('acme', *ROLES)))}"


def with_public_key_as_secret(api):
    """The known attack on the algorithm: HS256, with the text of the public key as the secret."""
    head = unsigned(api, alg="HS256", kid=api.cloud.identity.realm._key.key_id)
    key = json.dumps(api.cloud.identity.realm.certificates()["keys"][0]).encode()
    return f"{head}.{base64.urlsafe_b64encode(hmac.new(key, head.encode(), hashlib.sha256).digest()).decode()}"


def with_other_claims(api):
    """A token whose claims were replaced after it was signed."""
    head, _, signature = api.token("acme", ROLES[0]).split(".")
    return f"{head}.{encoded(api.claims(api.token('acme', *ROLES)))}.{signature}"


NOT_ACCEPTED = {
    "none": lambda api: None,
    "garbage": lambda api: "garbage",
    "expired": lambda api: api.token("acme", *ROLES, ttl=-1),
    "not yet valid": lambda api: api.signed({"nbf": int(time.time()) + 3600}),
    "issued in the future": lambda api: api.signed({"iat": int(time.time()) + 3600}),
    "wrong issuer": lambda api: api.signed({"iss": "https://issuer.invalid"}),
    "wrong audience": lambda api: api.signed({"aud": "account"}),
    "no audience": lambda api: api.signed({"aud": None}),
    "no expiry": lambda api: api.signed({"exp": None}),
    "alg none": lambda api: unsigned(api, alg="none") + ".",
    "HS256": with_public_key_as_secret,
    "unknown key": lambda api: unsigned(api, alg="RS256", kid="unknown") + ".c2ln",
    "other claims": with_other_claims,
    "nested too deep": lambda api: ".".join([base64.urlsafe_b64encode(b"[" * 3000).decode()] * 2) + ".c2ln",
}
UNREADABLE = {"none", "garbage", "nested too deep"}
NO_TENANT = {
    "no organization": {"organization": None},
    "two organizations": {"organization": {"acme": {}, "globex": {}}},
    "a list of two": {"organization": ["acme", "globex"]},
    "the platform's own records": {"organization": "_platform"},
    "a key of the table": {"organization": "acme#Cluster"},
}
NAMED = ("acme", "globex")
PLATFORM = "_platform"
NO_NAMES = ("_other", "a b")
PEOPLE = (*ROLES, "no role", "another cluster's client")

WITHOUT_ROLES = """
from stockyard.edge import serve

def identify(self):
    if self._route.token:
        self._caller = serve.caller_of(self._event)

serve.Call._identify = identify
"""


class Trusting:
    """An authorizer that accepts every token it can read, without checking the signature."""

    def claims(self, header):
        try:
            text = (header or "").split(".")[1]
            return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (IndexError, ValueError, RecursionError):
            raise Refused("unreadable") from None


def check_roles(api, operation):
    """Checks each role alone, no role, and a cluster's own client: accepted or refused as the document says."""
    for role in ROLES:
        tenant = "acme" if role == "stockyard-platform" else None
        answer = api.call(operation, api.token("acme", role), tenant=tenant)
        if role in operation.roles or operation.public:
            assert answer.status_code not in (401, 403), (role, answer.text)
        else:
            refused(answer, 403, role)
    nobody = api.call(operation, api.token("acme", "offline_access", client_id=None))
    machine = api.call(operation, api.token("acme", client_id="other-0123456789ab"))
    if operation.public:
        assert nobody.status_code != 403
    else:
        refused(nobody, 403, "no role")
        if operation.machine:
            refused(machine, 404, "another cluster's client")
        else:
            refused(machine, 403, "a machine")


def refused(answer, status, why):
    assert answer.status_code == status, (why, answer.status_code, answer.text)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["error_type"] == {403: "Forbidden", 404: "NotFound"}[status]


def check_refused(api, operation, kind):
    """Checks that a token which the gateway must not accept opens only what is open to everybody."""
    answer = api.call(operation, NOT_ACCEPTED[kind](api))
    if operation.path in OPEN:
        assert answer.status_code == 200
    elif operation.public:
        assert answer.status_code == 404
    else:
        assert answer.status_code == 401, answer.text


@pytest.mark.parametrize("kind", NOT_ACCEPTED)
def test_invalid_tokens_are_refused_on_every_route(api, operation, kind):
    check_refused(api, operation, kind)


def test_every_route_accepts_exactly_its_roles(api, operation):
    check_roles(api, operation)


@pytest.mark.parametrize("kind", NO_TENANT)
def test_tokens_without_a_tenant_are_refused(api, guarded, kind):
    refused(api.call(guarded, api.signed(NO_TENANT[kind])), 403, kind)


def test_only_the_platform_may_name_another_tenant(api, guarded):
    for tenant in (*NAMED, PLATFORM):
        refused(api.call(guarded, api.token("acme", *ROLES[:3]), tenant=tenant), 403, tenant)
    for tenant in NO_NAMES:
        refused(api.call(guarded, api.token("acme", *ROLES), tenant=tenant), 403, tenant)


def check_platform(api, operation):
    """Checks that only the platform role may name the platform as tenant, and only on routes of the platform."""
    answer = api.call(operation, api.token("acme", *ROLES), tenant=PLATFORM)
    if operation.platform and "stockyard-platform" in operation.roles:
        assert answer.status_code not in (401, 403), answer.text
    else:
        refused(answer, 403, "the platform itself")


def test_the_platform_as_tenant_reaches_only_what_it_shares(api, guarded):
    check_platform(api, guarded)


def test_roles_of_one_tenant_do_not_open_another_tenant(api, closed_to_platform):
    refused(api.call(closed_to_platform, api.token("acme", *ROLES), tenant="globex"), 403, "a foreign tenant")


def test_the_check_of_roles_fails_for_a_wrong_table(api, all_operations):
    """Adds a role to the table or removes one from it: each time the check must fail."""
    guarded = [operation for operation in all_operations if operation.roles and not operation.public]
    assert guarded
    for operation in guarded:
        for wrong in (operation.roles[1:], tuple({*operation.roles, "stockyard-viewer"})):
            if set(wrong) != set(operation.roles):
                with pytest.raises(AssertionError):
                    check_roles(api, replace(operation, roles=wrong))


def test_the_check_of_roles_fails_when_handlers_ignore_roles(broken, operations_by_choice):
    leaking = broken(WITHOUT_ROLES)
    for operation in operations_by_choice["guarded"]:
        with pytest.raises(AssertionError):
            check_roles(leaking, operation)


def test_the_check_of_tokens_fails_when_the_authorizer_accepts_everything(broken, operations_by_choice):
    trusting = broken(authorizer=Trusting())
    for kind in NOT_ACCEPTED.keys() - UNREADABLE:
        for operation in operations_by_choice["listing"]:
            with pytest.raises(AssertionError):
                check_refused(trusting, operation, kind)


def test_the_matrix_of_roles_has_every_operation(
    all_operations, operations_by_choice, check_all_declared, record_property
):
    check_all_declared(all_operations)
    everywhere, guarded, home = (
        len(operations_by_choice[name]) for name in ("operation", "guarded", "closed_to_platform")
    )
    kinds = len(NOT_ACCEPTED) + len(PEOPLE)
    tenants = len(NO_TENANT) + len(NAMED) + len(NO_NAMES) + 2
    cells = everywhere * kinds + guarded * tenants + home
    assert (everywhere, guarded) == (len(all_operations), sum(not operation.public for operation in all_operations))
    figure = {"operations": everywhere, "kinds": kinds + tenants, "cells": cells, "percent": 100}
    record_property("figure:authorization", figure)
