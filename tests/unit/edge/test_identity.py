"""Identity of a caller, by the rules of the claims."""

from __future__ import annotations

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.edge.identity import Roles, caller_of
from stockyard.errors import Forbidden, Unauthorized

ROLES = {"roles": ["stockyard-operator", "offline_access"]}


def claims(**more):
    return {"sub": "u-1", "organization": "acme", "realm_access": ROLES, **more}


@pytest.mark.parametrize(
    "organization",
    ["acme", ["acme"], {"acme": {}}, {"acme": {"id": "42"}}, {"acme": None}],
)
def test_tenant_is_the_only_organization_of_the_token(make_event, organization):
    caller = caller_of(make_event("GET", "/", claims=claims(organization=organization)))
    assert (caller.tenant, caller.roles) == ("acme", Roles.OPERATOR)


@pytest.mark.parametrize(
    ("organization", "expected"),
    [
        ({"acme": {"id": "0b5e-7"}}, "0b5e-7"),
        ({"acme": {}}, ""),
        ({"acme": {"id": 42}}, ""),
        ({"acme": {"id": "a\nb"}}, ""),
        (["acme"], ""),
    ],
)
def test_the_organizations_id_is_what_its_mapper_adds(make_event, organization, expected):
    caller = caller_of(make_event("GET", "/", claims=claims(organization=organization)))
    assert caller.organization_id == expected


@pytest.mark.parametrize(
    "organization",
    [None, [], {}, "", ["a", "b"], {"a": {}, "b": {}}, ["a", "a"], [1], 7, True, "_platform", "a#b", "a/b", "a" * 64],
)
def test_no_or_several_or_malformed_organizations_are_forbidden(make_event, organization):
    with pytest.raises(Forbidden):
        caller_of(make_event("GET", "/", claims=claims(organization=organization)))


@pytest.mark.parametrize(
    "access", [None, [], "stockyard-admin", {"roles": "stockyard-admin"}, {"roles": [1, None]}, {}]
)
def test_malformed_roles_grant_nothing(make_event, access):
    caller = caller_of(make_event("GET", "/", claims=claims(realm_access=access)))
    assert caller.roles == Roles.NONE


def test_every_role_is_recognized(make_event):
    names = ["stockyard-viewer", "stockyard-operator", "stockyard-admin", "stockyard-platform"]
    caller = caller_of(make_event("GET", "/", claims=claims(realm_access={"roles": names})))
    assert caller.roles == Roles.VIEWER | Roles.OPERATOR | Roles.ADMIN | Roles.PLATFORM


def test_call_without_verified_token_is_refused(make_event):
    event = make_event("GET", "/", claims=claims())
    del event["requestContext"]["authorizer"]
    with pytest.raises(Unauthorized):
        caller_of(event)
    event["requestContext"]["authorizer"] = {"lambda": {}}
    with pytest.raises(Unauthorized):
        caller_of(event)


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer a.b", "Bearer a.!!!.c", "Bearer a.W10.c", "Basic dTpw"])
def test_unreadable_token_is_refused(make_event, token):
    event = make_event("GET", "/", claims=claims(), flat={})
    event["headers"]["authorization"] = token
    with pytest.raises(Unauthorized):
        caller_of(event)


@pytest.mark.parametrize("name", ["sub", "iss", "jti", "azp"])
def test_claims_of_token_must_equal_verified_ones(make_event, name):
    event = make_event("GET", "/", claims=claims(iss="i", jti="j", azp="z"), flat={name: "other"})
    with pytest.raises(Unauthorized):
        caller_of(event)


def test_header_names_ignore_case_and_scheme_is_optional(make_event):
    event = make_event("GET", "/", claims=claims())
    value = event["headers"].pop("authorization")
    event["headers"]["Authorization"] = value.replace("Bearer", "bEARER ")
    assert caller_of(event).tenant == "acme"
    event["headers"]["Authorization"] = value.removeprefix("Bearer ")
    assert caller_of(event).tenant == "acme"


def platform(make_event, tenant, **more):
    roles = {"roles": ["stockyard-platform", "stockyard-operator"]}
    headers = {} if tenant is None else {"X-Stockyard-Tenant": tenant}
    return caller_of(make_event("GET", "/", claims={**claims(realm_access=roles), **more}, headers=headers))


def test_platform_role_acts_for_named_tenant(make_event):
    assert platform(make_event, "globex").tenant == "globex"
    assert platform(make_event, "globex", organization=None).tenant == "globex"


def test_only_platform_role_counts_in_other_tenant(make_event):
    assert platform(make_event, "globex").roles == Roles.PLATFORM
    assert platform(make_event, "acme").roles == Roles.PLATFORM | Roles.OPERATOR
    assert platform(make_event, None).roles == Roles.PLATFORM | Roles.OPERATOR


def test_only_platform_role_counts_for_platform(make_event):
    for organization in (None, {"acme": {}}, "_platform"):
        caller = platform(make_event, "_platform", organization=organization)
        assert (caller.tenant, caller.roles) == ("_platform", Roles.PLATFORM)


@pytest.mark.parametrize("tenant", ["", "_other", "_Platform", "a b", "a#b", "acme,globex"])
def test_malformed_tenant_name_is_forbidden(make_event, tenant):
    with pytest.raises(Forbidden):
        platform(make_event, tenant)


def test_platform_token_without_tenant_gets_hint(make_event):
    with pytest.raises(Forbidden, match="X-Stockyard-Tenant"):
        platform(make_event, None, organization=None)


def test_other_roles_cannot_name_a_tenant(make_event):
    for tenant in ("globex", "acme", "_platform"):
        event = make_event("GET", "/", claims=claims(), headers={"x-stockyard-tenant": tenant})
        with pytest.raises(Forbidden):
            caller_of(event)


@pytest.mark.parametrize("given_claims", [{"azp": "one-1"}, {"client_id": "one-1"}, {"azp": "one-1", "client_id": "x"}])
def test_machine_is_a_client_without_roles(make_event, given_claims):
    roles = {"roles": ["default-roles"]}
    caller = caller_of(make_event("GET", "/", claims=claims(realm_access=roles, **given_claims)))
    assert (caller.machine, caller.client_id, caller.actor) == (True, "one-1", "client:one-1")


def test_person_is_no_machine(make_event):
    caller = caller_of(make_event("GET", "/", claims=claims(azp="console", preferred_username="b\nb\x00é")))
    assert (caller.machine, caller.actor) == (False, "user:b?b??")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=5,
)


@given(organization=json_values, access=json_values, azp=json_values, sub=json_values)
def test_any_claims_give_caller_or_typed_error(organization, access, azp, sub):
    body = {"organization": organization, "realm_access": access, "azp": azp, "sub": sub}
    payload = base64.urlsafe_b64encode(json.dumps(body).encode()).decode()
    event = {
        "headers": {"authorization": f"Bearer a.{payload}.c"},
        "requestContext": {"authorizer": {"jwt": {"claims": {}}}},
    }
    with suppress(Unauthorized, Forbidden):
        caller = caller_of(event)
        assert caller.tenant
        assert "#" not in caller.tenant
        assert caller.actor.isprintable()
