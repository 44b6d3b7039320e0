"""Entry points of the Lambda function, and what they are wired to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from stockyard_stack_resources.api import Api, Login
from stockyard_stack_resources.errors import Busy, StackResourceError, Superseded
from stockyard_stack_resources.identity import Identity
from stockyard_stack_resources.life import Life, kind_of_path
from stockyard_stack_resources.proofs import by_role, by_secret
from stockyard_stack_resources.requests import Change, Target
from stockyard_stack_resources.stack import Look, check_awaited, is_last, is_living, looking
from stockyard_stack_resources.steps import STEPS, physical_id_of_step

LIMIT_SECONDS = "STOCKYARD_LIMIT_SECONDS"
"""The variable with the seconds that the framework polls for."""
MARGIN = timedelta(minutes=2)
"""How long before that the handler says itself that it took too long: the framework would only say that it did."""


@dataclass(frozen=True, slots=True)
class Handler:
    """Both entry points. ``limit`` is how long a request may take, from its first delivery."""

    life: Life
    look: Look
    limit: timedelta
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def on_event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Says which resource a request is about. It asks nothing of Stockyard, so that no answer of it can be lost
        with something made."""
        answer: dict[str, Any] = {"Since": self.now().isoformat()}
        if event["RequestType"] == "Delete":
            return {**answer, "PhysicalResourceId": event["PhysicalResourceId"]}
        check_awaited(event, self.look(event["StackId"], event["LogicalResourceId"]), self.now())
        if event["RequestType"] == "Update":
            answer["Previous"] = event["PhysicalResourceId"]
        if event["ResourceProperties"].get("Kind") in STEPS:
            return {**answer, "PhysicalResourceId": physical_id_of_step(event)}
        target = Target.read(event, event["ResourceProperties"])
        return {**answer, "PhysicalResourceId": target.identity.physical_id}

    def is_complete(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Takes one step, and says whether it was the last one, with the outputs then."""
        trouble = "it is not ready yet"
        try:
            if event["RequestType"] == "Delete":
                if self._removed(event):
                    return {"IsComplete": True}
            else:
                check_awaited(event, self.look(event["StackId"], event["LogicalResourceId"]), self.now())
                outputs = self._step(event)
                if outputs is not None:
                    return {"IsComplete": True, "Data": dict(outputs)}
        except Busy as busy:
            trouble = str(busy)
        except Superseded:
            if self._taken_back(event):
                raise
        if self._passed(event) > self.limit - MARGIN:
            minutes = int(self._passed(event).total_seconds() // 60)
            raise StackResourceError(f"{event['PhysicalResourceId']}: after {minutes} minutes {trouble}")
        return {"IsComplete": False}

    def _passed(self, event: Mapping[str, Any]) -> timedelta:
        """Time since the first delivery of a request."""
        return self.now() - datetime.fromisoformat(event["Since"])

    def _step(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Outputs of the resource when it is as the stack wants it, or when a later resource waits for that."""
        properties, passed = event["ResourceProperties"], self._passed(event)
        is_handed_on = properties.get("AtLimit") == "Continue" and passed > self.limit - MARGIN
        step = STEPS.get(str(properties.get("Kind")))
        if step is not None:
            document = json.loads(properties["Document"])
            outputs = step(self.life.api, document, str(event["RequestId"]), passed)
            return {} if outputs is None and is_handed_on else outputs
        change = Change.read(event)
        outputs = self.life.bring(change)
        return self.life.present(change) if outputs is None and is_handed_on else outputs

    def _taken_back(self, event: Mapping[str, Any]) -> bool:
        """Whether nothing is left of a creation that is not waited for any more. The framework itself answers the
        deletion of one that it has called failed, as it does when it is told of one twice and the second time fails."""
        properties, kind = event["ResourceProperties"], event["ResourceProperties"].get("Kind")
        if event["RequestType"] != "Create" or kind in STEPS or properties.get("Retains") == "true":
            return True
        resource = self.look(event["StackId"], event["LogicalResourceId"])
        identity = Target.read(event, properties).identity
        if is_living(identity.physical_id, resource) or (
            resource is not None and resource.status == "CREATE_IN_PROGRESS"
        ):
            return True
        try:
            return self.life.remove(identity, kind_of_path(identity.path), datetime.fromisoformat(event["Since"]))
        except Busy:
            return False

    def _removed(self, event: Mapping[str, Any]) -> bool:
        if event["ResourceProperties"].get("Kind") in STEPS:
            return True
        physical_id, since = str(event["PhysicalResourceId"]), datetime.fromisoformat(event["Since"])
        identity = Identity.of_physical_id(physical_id)
        if identity is None:  # nobody has ever answered, so CloudFormation has made up an id
            identity = Target.read(event, event["ResourceProperties"]).identity
            return self.life.remove(identity, kind_of_path(identity.path), since)
        resource = self.look(event["StackId"], event["LogicalResourceId"])
        if is_living(physical_id, resource):
            return True
        kind = kind_of_path(identity.path)
        retains = event["ResourceProperties"].get("Retains") == "true"
        if is_last(physical_id, resource) and not retains and not self.life.remove_replacements(identity, kind, since):
            return False
        return self.life.remove(identity, kind, since)


@cache
def _handler() -> Handler:
    """The handler of this function, by its environment and the clients of boto3."""
    import boto3

    secrets = boto3.client("secretsmanager")

    def read_secret(arn: str) -> str:
        return str(secrets.get_secret_value(SecretId=arn)["SecretString"])

    issuer, client = os.environ["STOCKYARD_ISSUER"], os.environ.get("STOCKYARD_CLIENT_SECRET")
    proof = by_role(boto3.client("sts"), issuer) if client is None else by_secret(read_secret, client)
    api = Api(os.environ["STOCKYARD_URL"], Login(issuer, proof))
    limit = timedelta(seconds=int(os.environ[LIMIT_SECONDS]))
    return Handler(Life(api, read_secret), looking(boto3.client("cloudformation")), limit)


def on_event(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    """Entry point ``onEvent`` of the provider framework."""
    return _handler().on_event(event)


def is_complete(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    """Entry point ``isComplete`` of the provider framework."""
    return _handler().is_complete(event)
