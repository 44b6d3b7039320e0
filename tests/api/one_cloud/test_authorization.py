"""Route by kind of token, made from ``openapi.json``: 401 where the gateway must refuse it, 403 by the role table."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import replace

import pytest

from local.authorizer import Refused

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin", "stockyard-platform")


def encoded(document):
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def unsigned(api, **header):
    return f"{encoded({'typ': 'JWT', **header})}.{encoded(api.claims(api.token('acme', *ROLES)))}"


def with_public_key_as_secret(api):
    """The classic confusion: HS256, with the text of the public key as the secret."""
    head = unsigned(api, alg="HS256", kid=api.cloud.identity.realm._key.key_id)
    key = json.dumps(api.cloud.identity.realm.certificates()["keys"][0]).encode()
    return f"{head}.{base64.urlsafe_b64encode(hmac.new(key, head.encode(), hashlib.sha256).digest()).decode()}"


def with_other_claims(api):
    """A good signature over other claims."""
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
    """An authorizer that believes every token it can read."""

    def claims(self, header):
        try:
            text = (header or "").split(".")[1]
            return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (IndexError, ValueError, RecursionError):
            raise Refused("unreadable") from None


def check_roles(api, operation):
    """Each role alone, no role, and a cluster's own client: in or out as the document says."""
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
    """A token that the gateway must not accept opens nothing but what is open to all."""
    answer = api.call(operation, NOT_ACCEPTED[kind](api))
    if operation.path == "/v1/health":
        assert answer.status_code == 200
    elif operation.public:
        assert answer.status_code == 404
    else:
        assert answer.status_code == 401, answer.text


@pytest.mark.parametrize("kind", NOT_ACCEPTED)
def test_tokens_that_are_not_accepted(api, operation, kind):
    check_refused(api, operation, kind)


def test_roles(api, operation):
    check_roles(api, operation)


@pytest.mark.parametrize("kind", NO_TENANT)
def test_tokens_without_a_tenant(api, guarded, kind):
    refused(api.call(guarded, api.signed(NO_TENANT[kind])), 403, kind)


def test_only_the_platform_names_a_tenant(api, guarded):
    for tenant in (*NAMED, PLATFORM):
        refused(api.call(guarded, api.token("acme", *ROLES[:3]), tenant=tenant), 403, tenant)
    for tenant in NO_NAMES:
        refused(api.call(guarded, api.token("acme", *ROLES), tenant=tenant), 403, tenant)


def check_platform(api, operation):
    """The platform itself is meant by its role alone, and only where it has things of its own."""
    answer = api.call(operation, api.token("acme", *ROLES), tenant=PLATFORM)
    if operation.platform and "stockyard-platform" in operation.roles:
        assert answer.status_code not in (401, 403), answer.text
    else:
        refused(answer, 403, "the platform itself")


def test_the_platform_itself_has_only_what_it_shares(api, guarded):
    check_platform(api, guarded)


def test_roles_at_home_give_none_abroad(api, closed_to_platform):
    refused(api.call(closed_to_platform, api.token("acme", *ROLES), tenant="globex"), 403, "a foreign tenant")


def test_a_wrong_table_is_noticed(api, all_operations):
    """The check itself: with a role added or taken away in the table it must fail."""
    guarded = [one for one in all_operations if one.roles and not one.public]
    assert guarded
    for operation in guarded:
        for wrong in (operation.roles[1:], tuple({*operation.roles, "stockyard-viewer"})):
            if set(wrong) != set(operation.roles):
                with pytest.raises(AssertionError):
                    check_roles(api, replace(operation, roles=wrong))


def test_handlers_that_ignore_roles_are_noticed(broken, chosen):
    leaking = broken(WITHOUT_ROLES)
    for operation in chosen["guarded"]:
        with pytest.raises(AssertionError):
            check_roles(leaking, operation)


def test_an_authorizer_that_trusts_everybody_is_noticed(broken, chosen):
    trusting = broken(authorizer=Trusting())
    for kind in NOT_ACCEPTED.keys() - UNREADABLE:
        for operation in chosen["listing"]:
            with pytest.raises(AssertionError):
                check_refused(trusting, operation, kind)


def test_the_matrix_is_whole(all_operations, chosen, whole, record_property):
    whole(all_operations)
    everywhere, guarded, home = (len(chosen[name]) for name in ("operation", "guarded", "closed_to_platform"))
    kinds = len(NOT_ACCEPTED) + len(PEOPLE)
    tenants = len(NO_TENANT) + len(NAMED) + len(NO_NAMES) + 2
    cells = everywhere * kinds + guarded * tenants + home
    assert (everywhere, guarded) == (len(all_operations), sum(not one.public for one in all_operations))
    figure = {"operations": everywhere, "kinds": kinds + tenants, "cells": cells, "percent": 100}
    record_property("figure:authorization", figure)
