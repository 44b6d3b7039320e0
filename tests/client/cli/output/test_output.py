"""The five output forms."""

from __future__ import annotations

import json

import pytest
import yaml

from stockyard_client.cli.output.output import unmet
from stockyard_client.part_models import Condition


@pytest.fixture
def listed(api, cluster_document):
    items = [cluster_document(), cluster_document(name="a-longer-name", id="clu_02", status="ready", phase=None)]
    api.answer("GET", "/v1/clusters", {"items": items, "next_page_token": None})
    return items


def test_table_is_aligned_and_ends_no_line_in_blanks(cli, listed):
    lines = cli("cluster", "list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "VERSION", "PROVIDER", "REGION", "AGE", "WHY"]
    assert [line.split()[0] for line in lines[1:]] == ["demo", "a-longer-name"]
    assert {line.index(word) for line, word in zip(lines, ("STATUS", "preparing", "ready"), strict=True)} == {16}
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[2].split()[2] == "-"


@pytest.mark.parametrize(
    ("settings", "region"),
    [
        ({"region_name": "eu-west-1", "autoscaler_node_groups": [{"name": "workers"}]}, "eu-west-1"),
        (
            {
                "autoscaler_node_groups": [
                    {"role": "worker", "data_center_id": "gb-bournemouth-1"},
                    {"role": "control", "data_center_id": "us-dallas-1"},
                ]
            },
            "us-dallas-1",
        ),
        ({"autoscaler_node_groups": [{"role": "worker", "data_center_id": "us-dallas-1"}]}, "-"),
    ],
)
def test_the_region_of_a_cluster_is_where_its_control_plane_stands(cli, api, cluster_document, settings, region):
    api.answer("GET", "/v1/clusters/demo", cluster_document(settings=settings))
    _, line = cli("cluster", "get", "demo", "-o", "table").stdout.splitlines()
    assert line.split()[4] == region


def test_wide_shows_more(cli, listed):
    lines = cli("cluster", "list", "-o", "wide").stdout.splitlines()
    assert "CLIENT ID" in lines[0]
    assert "clu_02" in lines[2]


def test_json_and_yaml_are_the_records(cli, listed):
    assert json.loads(cli("cluster", "list", "-o", "json").stdout) == listed
    assert yaml.safe_load(cli("cluster", "list", "-o", "yaml").stdout) == listed


def test_one_record_is_an_object(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document())
    assert json.loads(cli("cluster", "get", "demo", "-o", "json").stdout) == cluster_document()


def test_name_is_for_other_commands(cli, listed):
    assert cli("cluster", "list", "-o", "name").stdout == "demo\na-longer-name\n"


@pytest.mark.parametrize(("form", "expected"), [("table", ""), ("name", ""), ("json", "[]\n"), ("yaml", "[]\n")])
def test_nothing_found(cli, api, form, expected):
    api.answer("GET", "/v1/clusters", {"items": [], "next_page_token": None})
    result = cli("cluster", "list", "-o", form)
    assert (result.exit_code, result.stdout) == (0, expected)


def test_operation_shows_its_phases(cli, api, operation_document):
    api.answer("GET", "/v1/operations/op_01", operation_document("running", "succeeded", "running"))
    lines = cli("operation", "get", "op_01").stdout.splitlines()
    assert lines[1].split()[:6] == ["op_01", "create_cluster", "clu_01", "running", "33%", "network"]
    assert lines[2:] == ["✓ account", "● network", "○ control_plane"]


def test_markup_in_a_message_is_text(cli, api, cluster_document):
    api.answer("GET", "/v1/clusters", {"items": [cluster_document(description="[bold]x[/] :smile:")]})
    assert "[bold]x[/] :smile:" in cli("cluster", "list", "-o", "wide").stdout


def test_conditions_of_faults_hold_while_they_are_false():
    conditions = [
        Condition(type="Degraded", status="False", reason="Changed", message=""),
        Condition(type="PoolsReady", status="Unknown", reason="New", message=""),
        Condition(type="Ready", status="False", reason="Lacking", message=""),
        Condition(type="NetworkReady", status="True", reason="Made", message=""),
    ]
    assert [condition.type for condition in unmet(conditions)] == ["Ready", "PoolsReady"]
    assert [condition.type for condition in unmet([Condition(type="Degraded", status="True")])] == ["Degraded"]
