"""The examples of events as CloudFormation deploys them into the local cloud, by boto3 alone; and a pipe that runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from moto.events.models import EventPattern

from local.aws.accounts import REGION
from local.template import CreatedResource, Stack, TemplateError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
Client = Callable[[str], Any]
"""A boto3 client of the account, by service."""


@dataclass(slots=True)
class Deployed:
    """Resources that a template has made in an account. ``skipped`` are those that the local cloud has not."""

    client: Client
    account: str
    refs: dict[str, str] = field(default_factory=dict)
    pipe: Mapping[str, Any] = field(default_factory=dict)
    skipped: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    roles: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def run_pipe(self) -> int:
        """Carry what waits in the pipe's queue once, as EventBridge does; how many messages matched its filter. Those
        that do not are removed."""
        sqs, parameters = self.client("sqs"), self.pipe["SourceParameters"]
        patterns = [EventPattern.load(entry["Pattern"]) for entry in parameters["FilterCriteria"]["Filters"]]
        url, count = self.refs["Wishes"], 0
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1).get("Messages"):
            (message,) = messages
            record = {"messageId": message["MessageId"], "body": _parsed(message["Body"])}
            if any(pattern.matches_event(record) for pattern in patterns):
                self._put(record)
                count += 1
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return count

    def _put(self, record: Mapping[str, Any]) -> None:
        parameters = self.pipe["TargetParameters"]
        detail = re.sub(r"<\$\.([\w.]+)>", lambda match: json.dumps(_at(record, match[1])), parameters["InputTemplate"])
        target = parameters["EventBridgeEventBusParameters"]
        assert self.pipe["Target"].split(":")[4] == self.account, "a pipe reaches buses of its own account alone"
        entry = {"EventBusName": self.pipe["Target"], "Detail": json.dumps(json.loads(detail)), **target}
        assert self.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _at(record: Mapping[str, Any], path: str) -> Any:
    value: Any = record
    for part in path.split("."):
        value = value[part]
    return value


def template_of(path: str) -> dict[str, Any]:
    """The template at a path below ``examples``."""
    document: dict[str, Any] = yaml.safe_load((EXAMPLES / path).read_text(encoding="utf-8"))
    return document


def deploy(client: Client, account: str, path: str, **parameters: str) -> Deployed:
    """Make the resources of the template at ``path`` below ``examples``, in the account that ``client`` reaches."""
    deployed = Deployed(client, account)
    pseudo = {"AWS::AccountId": account, "AWS::Region": REGION, "AWS::Partition": "aws", "AWS::NoValue": ""}
    maker = _Maker(deployed)
    Stack(template_of(path), pseudo, {}, maker, parameters).create()
    return deployed


class _Maker:
    """Creates one resource at a time."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed

    def __call__(self, kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        make = getattr(self, "_" + kind.removeprefix("AWS::").replace("::", "_").lower(), None)
        if make is None:
            raise TemplateError(f"nobody makes {kind} here")
        resource: CreatedResource = make(logical, properties)
        self._deployed.refs[logical] = resource.ref
        return resource

    def _iam_role(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        client = self._deployed.client("iam")
        trust = json.dumps(properties["AssumeRolePolicyDocument"])
        role = client.create_role(RoleName=f"example-{logical}", AssumeRolePolicyDocument=trust)["Role"]
        for policy in properties["Policies"]:
            self._deployed.roles.setdefault(logical, []).extend(policy["PolicyDocument"]["Statement"])
        return CreatedResource(role["RoleName"], {"Arn": role["Arn"]})

    def _stepfunctions_statemachine(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        text = json.dumps(properties["Definition"])
        for name, value in properties.get("DefinitionSubstitutions", {}).items():
            text = text.replace(f"${{{name}}}", value)
        machine = self._deployed.client("stepfunctions").create_state_machine(
            name=properties["StateMachineName"], definition=text, roleArn=properties["RoleArn"]
        )
        return CreatedResource(machine["stateMachineArn"], {"Arn": machine["stateMachineArn"]})

    def _events_rule(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        client, bus = self._deployed.client("events"), properties.get("EventBusName", "default")
        pattern = json.dumps(properties["EventPattern"])
        client.put_rule(Name=properties["Name"], EventBusName=bus, EventPattern=pattern)
        client.put_targets(Rule=properties["Name"], EventBusName=bus, Targets=properties["Targets"])
        return CreatedResource(properties["Name"])

    def _sqs_queue(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        name = properties["QueueName"]
        url = self._deployed.client("sqs").create_queue(QueueName=name)["QueueUrl"]
        return CreatedResource(url, {"Arn": f"arn:aws:sqs:{REGION}:{self._deployed.account}:{name}"})

    def _sns_topic(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        topic = self._deployed.client("sns").create_topic(Name=properties["TopicName"])["TopicArn"]
        return CreatedResource(topic, {"TopicArn": topic})

    def _pipes_pipe(self, _logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        self._deployed.pipe = properties
        return CreatedResource(properties["Name"])

    def _not_here(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        self._deployed.skipped[logical] = properties
        return CreatedResource(logical, {"Arn": f"arn:aws:local:::{logical}"})

    _sns_topicpolicy = _not_here

    def _events_connection(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        connection = self._deployed.client("events").create_connection(Name=logical, **properties)
        return CreatedResource(logical, {"Arn": connection["ConnectionArn"]})

    def _events_apidestination(self, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        destination = self._deployed.client("events").create_api_destination(Name=logical, **properties)
        return CreatedResource(logical, {"Arn": destination["ApiDestinationArn"]})
