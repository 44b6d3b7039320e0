"""Warnings in the API's answers are said on stderr by every command that makes or changes something."""

from __future__ import annotations

import json

import pytest

WARNINGS = [{"pointer": "", "detail": "mind this"}]
POOL = {"name": "base", "kind": "dynamic", "form": "", "cluster_id": "clu_01"}
CLAIM = {"id": "ncl_1", "name": "c1", "phase": "Pending"}
PROVIDER = {"id": "npr_1", "name": "lab", "kind": "simulated", "phase": "Available"}
POOLS = "/v1/clusters/demo/pools"
APPLIED = {"results": [{"kind": "Pool", "name": "base", "id": "pol_1", "action": "created", "warnings": WARNINGS}]}


@pytest.fixture
def warned(api, cli, cluster_document, operation_document, tmp_path):
    """An API that warns of whatever is made or changed, and an editor that changes something."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s#: .*#: y#" "$1"\n')
    editor.chmod(0o700)
    cli.environment["EDITOR"] = str(editor)
    ready = {"status": "ready", "settings": {"node_groups": [{"name": "l4", "min_size": 0, "max_size": 8}]}}
    changed = {**cluster_document(operation_id="op_02", **ready), "warnings": WARNINGS}
    api.answer("GET", "/v1/clusters/demo", cluster_document(**ready))
    api.answer("PATCH", "/v1/clusters/clu_01", changed, status=202)
    api.answer("POST", "/v1/clusters", changed, status=202)
    api.answer("GET", "/v1/operations/op_02", operation_document(id="op_02"))
    for name, form in (("base", ""), ("l4", "group")):
        pool = {**POOL, "name": name, "form": form, "floor": 1}
        api.answer("GET", f"{POOLS}/{name}", pool)
        api.answer("PATCH", f"{POOLS}/{name}", {**pool, "warnings": WARNINGS})
        api.answer("DELETE", f"{POOLS}/{name}", {**pool, "warnings": WARNINGS}, status=202)
    api.answer("POST", POOLS, {**POOL, "warnings": WARNINGS}, status=201)
    for path, key, plain in (("/v1/node-claims", "c1", CLAIM), ("/v1/node-providers", "lab", PROVIDER)):
        record = {**plain, "display_name": "x", "warnings": WARNINGS}
        api.answer("POST", path, record, status=201).answer("GET", f"{path}/{key}", {**record, "warnings": []})
        api.answer("PATCH", f"{path}/{record['id']}", record).answer("GET", f"{path}/{record['id']}", record)
    return api.answer("POST", "/v1/apply", APPLIED)


def test_what_only_tells_is_a_note_and_what_is_said_of_many_fields_is_said_once(cli, api):
    many = [{"pointer": f"/{n}/spec", "detail": "the host cannot be reached"} for n in range(23)]
    two = [{"pointer": f"/{n}", "detail": "twice"} for n in range(2)]
    note = {"pointer": "/nat_gateways", "detail": "One costs 36.50.", "note": True}
    api.answer("POST", "/v1/apply", {"results": [{**APPLIED["results"][0], "warnings": [note, *many, *two]}]})
    lines = cli("apply", "-f", "-", stdin=MANIFEST).stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["Warning", "Warning", "Warning", "Note"]
    assert "and 22 other places: the host cannot be reached" in lines[0]
    assert lines[-1].endswith("One costs 36.50.")


DOCUMENT = json.dumps({"name": "demo"})
MANIFEST = json.dumps({"apiVersion": "stockyard/v1", "kind": "Pool", "metadata": {"name": "base"}, "spec": {}})


@pytest.mark.parametrize(
    ("line", "stdin"),
    [
        ("cluster create -f -", DOCUMENT),
        ("cluster update demo --set description=y", ""),
        ("cluster edit demo", ""),
        ("cluster upgrade demo --to 1.36", ""),
        ("pool create --cluster demo --name base", ""),
        ("pool create --cluster demo -f -", MANIFEST),
        ("pool update base --cluster demo --floor 2", ""),
        ("pool edit base --cluster demo", ""),
        ("pool scale base --cluster demo --floor 2", ""),
        ("pool scale l4 --cluster demo --most 3", ""),
        ("pool add-group new --cluster demo --type m5.large", ""),
        ("pool delete l4 --cluster demo", ""),
        ("claim create --cluster demo", ""),
        ("claim update c1 --set display_name=y", ""),
        ("provider create -f -", json.dumps({"name": "lab", "kind": "simulated", "spec": {}})),
        ("provider update lab --set display_name=y", ""),
        ("apply -f -", MANIFEST),
    ],
)
def test_what_is_warned_of_is_said(cli, warned, line, stdin):
    result = cli(*line.split(), stdin=stdin)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("Warning: ") == result.stderr.count("mind this") == 1, result.stderr
    assert "/stockyard-" not in result.stderr, "a file of an editor that is gone"
    assert "mind this" not in result.stdout


@pytest.mark.parametrize(
    ("price", "text"),
    [
        ({"hour": 0.2577, "month": 188.12}, "It costs 0.2577 USD/hour, 188.12 USD/month."),
        (
            {
                "hour": None,
                "month": None,
                "complete": False,
                "known_hour": 0.1,
                "known_month": 73,
                "items": [{"hour": 0.1}],
            },
            "It costs at least 0.1000 USD/hour, at least 73.00 USD/month.",
        ),
    ],
)
def test_a_creation_says_what_it_costs(cli, api, cluster_document, price, text):
    api.answer("POST", "/v1/clusters", {**cluster_document(), "price": price}, status=202)
    assert text in cli("cluster", "create", "-f", "-", stdin=DOCUMENT).stderr
