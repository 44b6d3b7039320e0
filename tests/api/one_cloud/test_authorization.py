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
from local.functions.gateway import Gateway
from local.functions.invocation import Invocation
from tests.api.each import check_each

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
PLATFORM = "_platform"
NAMED = ("globex", "acme", PLATFORM)
NO_NAMES = ("_other", "a b")
PEOPLE = (*ROLES, "no role", "another cluster's client")

WITHOUT_ROLES = """
from stockyard.edge import serve

serve.admit = lambda call, caller: None
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
        if operation.public and operation.path not in OPEN:
            assert answer.status_code == 401, "a token of a person is no proof of a machine"
        elif role in operation.roles or operation.public:
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
    """Checks that a token which the gateway must not accept opens only what is open to everybody. Routes of machines
    refuse it like a proof of nobody, whatever id is asked for."""
    answer = api.call(operation, NOT_ACCEPTED[kind](api))
    assert answer.status_code == (200 if operation.path in OPEN else 401), answer.text


class Reached:
    """Stands for all functions, and counts the requests that come to one."""

    count = 0

    def invoke(self, name, payload, **more):
        self.count += 1
        return Invocation(b'{"statusCode": 204}')


@pytest.fixture
def check_stopped():
    """A check that a gateway with these routes lets a token through to the functions of public operations alone."""
    functions = Reached()
    gateway = Gateway(functions)

    def check(routes, operation, token):
        gateway.serve(routes)
        before = functions.count
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        status = gateway.answer(operation.method, operation.at(), headers, b"", "127.0.0.1").status
        assert (status, functions.count - before) == ((204, 1) if operation.public else (401, 0))

    yield check
    gateway.close()


def one_of_each_kind(operations):
    """An operation for each way in which the document may declare who calls it."""
    kinds = {(route.roles, route.machine, route.platform, route.public): route for route in operations}
    assert len(kinds) > 5
    return list(kinds.values())


def test_every_route_refuses_a_caller_without_a_token(api, all_operations):
    check_each(all_operations, lambda operation: check_refused(api, operation, "none"))


def test_invalid_tokens_are_refused(api, all_operations):
    for kind in NOT_ACCEPTED:
        check_each(one_of_each_kind(all_operations), lambda operation, kind=kind: check_refused(api, operation, kind))


def test_an_invalid_token_reaches_no_function(api, all_operations, check_stopped):
    """The gateway checks a token before it calls a function, on each route in the same way."""
    routes = api.cloud.gateway._routes
    for make_token in NOT_ACCEPTED.values():
        token = make_token(api)
        check_each(all_operations, lambda operation, token=token: check_stopped(routes, operation, token))


def test_every_route_accepts_exactly_its_roles(api, all_operations):
    check_each(all_operations, lambda operation: check_roles(api, operation))


def test_tokens_without_a_tenant_are_refused(api, operations_by_choice):
    """Callers are read from the request before its route is asked: each kind once, and one on every route."""
    guarded = operations_by_choice["guarded"]
    for number, (kind, claims) in enumerate(NO_TENANT.items()):
        token = api.signed(claims)
        routes = one_of_each_kind(guarded) if number else guarded
        check_each(routes, lambda route, kind=kind, token=token: refused(api.call(route, token), 403, kind))


def test_only_the_platform_may_name_another_tenant(api, operations_by_choice):
    """As above: each tenant once, and one of each list on every route."""
    guarded = operations_by_choice["guarded"]
    for names, roles in ((NAMED, ROLES[:3]), (NO_NAMES, ROLES)):
        token = api.token("acme", *roles)
        for number, tenant in enumerate(names):
            routes = one_of_each_kind(guarded) if number else guarded
            check_each(
                routes,
                lambda route, token=token, name=tenant: refused(api.call(route, token, tenant=name), 403, name),
            )


def check_platform(api, operation):
    """Checks that only the platform role may name the platform as tenant, and only on routes of the platform."""
    answer = api.call(operation, api.token("acme", *ROLES), tenant=PLATFORM)
    if operation.platform and "stockyard-platform" in operation.roles:
        assert answer.status_code not in (401, 403), answer.text
    else:
        refused(answer, 403, "the platform itself")


def test_the_platform_as_tenant_reaches_only_what_it_shares(api, operations_by_choice):
    check_each(operations_by_choice["guarded"], lambda operation: check_platform(api, operation))


def test_roles_of_one_tenant_do_not_open_another_tenant(api, operations_by_choice):
    token = api.token("acme", *ROLES)
    check_each(
        operations_by_choice["closed_to_platform"],
        lambda operation: refused(api.call(operation, token, tenant="globex"), 403, "a foreign tenant"),
    )


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


def test_the_check_of_tokens_fails_when_the_authorizer_accepts_everything(api, operations_by_choice, check_stopped):
    trusting = [replace(route, authorizer=route.authorizer and Trusting()) for route in api.cloud.gateway._routes]
    for kind in NOT_ACCEPTED.keys() - UNREADABLE:
        token = NOT_ACCEPTED[kind](api)
        for operation in operations_by_choice["guarded"]:
            with pytest.raises(AssertionError):
                check_stopped(trusting, operation, token)


def test_the_check_of_tokens_fails_when_a_route_has_no_authorizer(api, operations_by_choice, check_stopped):
    routes = api.cloud.gateway._routes
    for operation in operations_by_choice["guarded"]:
        open_ = [replace(route, authorizer=None) if route.key == str(operation) else route for route in routes]
        with pytest.raises(AssertionError):
            check_stopped(open_, operation, None)


def test_the_matrix_of_roles_has_every_operation(
    all_operations, operations_by_choice, check_all_declared, record_property
):
    check_all_declared(all_operations)
    everywhere, guarded, home = (
        len(operations_by_choice[name]) for name in ("operation", "guarded", "closed_to_platform")
    )
    kinds = len(NOT_ACCEPTED) + len(PEOPLE)
    tenants = len(NO_TENANT) + len(NAMED) + len(NO_NAMES)
    # of tokens without a tenant and of each list of names one is tried on every route, and the platform as tenant
    once = len(one_of_each_kind(operations_by_choice["guarded"])) * (tenants - 3)
    cells = everywhere * kinds + guarded * (3 + 1) + once + home
    assert (everywhere, guarded) == (len(all_operations), sum(not operation.public for operation in all_operations))
    figure = {"operations": everywhere, "kinds": kinds + tenants + 1, "cells": cells, "percent": 100}
    record_property("figure:authorization", figure)
