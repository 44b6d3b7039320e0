"""EC2 and STS as far as a node's life needs them: a dictionary of machines and templates. A machine boots and ends at
once; that these take time on EC2 is no part of what is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Answer = dict[str, Any]


@dataclass
class Cloud:
    """``answer`` is what the service says to one call."""

    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    fleets: dict[str, Answer] = field(default_factory=dict)

    def answer(self, operation: str, parameters: Mapping[str, Any]) -> Answer:
        """The answer to a call. ``KeyError`` names one that nobody has played yet."""
        calls: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
            "AssumeRole": self._assume,
            "DescribeLaunchTemplates": self._described_templates,
            "CreateLaunchTemplate": self._new_template,
            "CreateFleet": self._fleet,
            "DescribeInstances": self._described,
            "TerminateInstances": self._terminate,
        }
        return calls[operation](parameters)

    def _assume(self, _: Mapping[str, Any]) -> Answer:
        keys = {"AccessKeyId": "AKIA0", "SecretAccessKey": "none", "SessionToken": "none"}
        return {"Credentials": {**keys, "Expiration": datetime(2030, 1, 1, tzinfo=UTC)}}

    def _described_templates(self, request: Mapping[str, Any]) -> Answer:
        names = request.get("LaunchTemplateNames", list(self.templates))
        return {"LaunchTemplates": [self.templates[name] for name in names if name in self.templates]}

    def _new_template(self, request: Mapping[str, Any]) -> Answer:
        name, tags = request["LaunchTemplateName"], request["TagSpecifications"][0]["Tags"]
        self.templates[name] = {"LaunchTemplateId": f"lt-{name}", "LaunchTemplateName": name, "Tags": tags}
        return {}

    def _fleet(self, request: Mapping[str, Any]) -> Answer:
        token = request["ClientToken"]
        if token not in self.fleets:
            self.fleets[token] = self._launched(request)
        return self.fleets[token]

    def _launched(self, request: Mapping[str, Any]) -> Answer:
        way = request["LaunchTemplateConfigs"][0]["Overrides"][0]
        tags = next(each["Tags"] for each in request["TagSpecifications"] if each["ResourceType"] == "instance")
        names = []
        for _ in range(request["TargetCapacitySpecification"]["TotalTargetCapacity"]):
            name = f"i-{len(self.machines):017x}"
            self.machines[name] = {
                "InstanceId": name,
                "InstanceType": way["InstanceType"],
                "Placement": {"AvailabilityZone": "us-east-1a"},
                "State": {"Name": "running"},
                "Tags": tags,
            }
            names.append(name)
        entry = {"InstanceIds": names, "InstanceType": way["InstanceType"]}
        return {"Instances": [{**entry, "LaunchTemplateAndOverrides": {"Overrides": way}}], "Errors": []}

    def _described(self, request: Mapping[str, Any]) -> Answer:
        names = request.get("InstanceIds", list(self.machines))
        machines = [self.machines[name] for name in names if name in self.machines]
        tags = {(each["Name"].removeprefix("tag:"), each["Values"][0]) for each in request.get("Filters", ())}
        matching = [each for each in machines if tags <= {(tag["Key"], tag["Value"]) for tag in each["Tags"]}]
        return {"Reservations": [{"Instances": matching}]}

    def _terminate(self, request: Mapping[str, Any]) -> Answer:
        for name in request["InstanceIds"]:
            self.machines[name]["State"] = {"Name": "terminated"}
        return {}
