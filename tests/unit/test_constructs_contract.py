"""Properties of the constructs are those of the contract as it is now."""

from __future__ import annotations

import json

import pytest

from local.cloudformation import properties as generator
from stockyard_stack_resources.kinds import KINDS

DOCUMENT = json.loads((generator.ROOT / "openapi.json").read_text(encoding="utf-8"))


def test_the_written_modules_are_those_of_the_contract(capsys) -> None:
    assert generator.main(["--check"]) == 0, capsys.readouterr().err


def test_no_secret_is_a_property_of_a_construct() -> None:
    secrets = {
        field
        for schema in DOCUMENT["components"]["schemas"]
        if "properties" in DOCUMENT["components"]["schemas"][schema]
        for field in generator.Schemas(DOCUMENT).secrets(schema)
    }
    assert {"api_key", "secret_access_key", "client_key"} <= secrets
    text = "".join(generator.properties(DOCUMENT).values())
    for secret in secrets - {"token", "kubeconfig"}:
        assert f"    {secret}: " not in text


def test_each_kind_of_the_handler_is_one_of_the_contract() -> None:
    assert KINDS.keys() == generator.KINDS.keys()
    for kind in KINDS.values():
        assert f"/v1/{kind.collection.replace('{cluster}', '{id}')}" in DOCUMENT["paths"]


@pytest.mark.parametrize("kind", sorted(generator.KINDS))
def test_outputs_are_fields_of_what_the_api_shows(kind: str) -> None:
    view = {"NodePool": "PoolView"}.get(kind, f"{kind}View")
    fields = DOCUMENT["components"]["schemas"][view]["properties"]
    assert KINDS[kind].outputs(dict.fromkeys(fields, "x"))
    assert KINDS[kind].outputs({}) == {}
