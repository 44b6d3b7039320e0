"""Event sources of functions: the table's stream, schedules, and request events on our own bus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.config import StageConfig
from stacks.errors import ConfigError
from stacks.functions import REQUEST_SOURCE, SCHEDULES
from stacks.names import Names

ALLOWED_TYPES = "tenant/allowed-node-types"
"""The id of the fact that names the node types a tenant may use."""
BUDGETS = "tenant/budgets"
"""The id of the fact that is written when a budget is set."""

OWN_SOURCE = "stockyard"
MOST_FILTERS = 5
"""Filters of one event source of a function, unless AWS has raised that quota for the account."""
NO_NEWS_FOR_POOLS = ("Accepted", "Scheduled", "Provisioned", "Joined", "Drained")
"""Steps of a node on its way, after which its pool has as many nodes, and as many on their way, as before. Each pass
reads all claims of its cluster."""
POOL_EVENTS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "Pools": (
        "Pool",
        "Pools that are new, changed or on their way out",
        {"reason": ["Created", "Changed", "DeletionRequested"]},
    ),
    "PoolNodes": (
        "NodeClaim",
        "Nodes of pools that have come, failed or gone",
        {"pool": [{"exists": True}], "reason": [{"anything-but": list(NO_NEWS_FOR_POOLS)}]},
    ),
    "PoolClusters": (
        "Cluster",
        "Clusters that are ready",
        {"phase": {"before": [{"anything-but": ["ready"]}], "after": ["ready"]}},
    ),
    "PoolUnclaimed": ("UnclaimedNodes", "Nodes that node groups have made", {"nodes": [{"exists": True}]}),
    "PoolPods": ("PendingPods", "Pods that wait for nodes", {"pods": [{"exists": True}]}),
}
"""Events that wake the passes over pools: name of the rule -> detail type, meaning, pattern of the detail."""
CATALOG_EVENTS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "CatalogClusters": (
        "Cluster",
        "New clusters, perhaps in a region of which nothing is known",
        {"phase": {"after": ["preparing"]}, "reason": ["Accepted"]},
    ),
}
"""Events after which the catalogue looks whether it lacks a region, as above."""
NODE_EVENTS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "UnreadyNodes": (
        "UnreadyNodes",
        "Nodes that are ready no more, whose machines may be gone",
        {"nodes": [{"exists": True}]},
    ),
    "SumsBehind": (
        "SumsBehind",
        "Sums of large tenants that lack what has just happened",
        {"tenant": [{"exists": True}]},
    ),
}
"""Events after which the sweep looks at the nodes of a cluster, or counts what the sums of a tenant lack, as above."""


def admission(config: StageConfig, partition: str, bus: str) -> dict[str, Any] | None:
    """The one statement of the bus's policy: who else may put requests on it. None without anybody.

    Whose requests they are says the table; an account that is nobody's is refused there.
    """
    conditions = {"events:source": REQUEST_SOURCE}
    # Only requests: what a tenant may put on the bus must not look like an event of ours.
    principal: Any = {"AWS": [f"arn:{partition}:iam::{account}:root" for account in config.event_accounts]}
    if config.event_organization:
        principal, conditions = "*", {**conditions, "aws:PrincipalOrgID": config.event_organization}
    elif not config.event_accounts:
        return None
    return {
        "Sid": "Requests",
        "Effect": "Allow",
        "Principal": principal,
        "Action": "events:PutEvents",
        "Resource": bus,
        "Condition": {"StringEquals": conditions},
    }


class Triggers(Construct):
    """Connects ``functions`` with their event sources. ``failures`` are the queues for undelivered events."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        config: StageConfig,
        stream_arn: str,
        functions: Mapping[str, lambda_.Function],
        failures: Mapping[str, sqs.Queue],
    ) -> None:
        super().__init__(scope, id)
        self._config = config
        self._names = Names(config.stage)
        self._functions = functions
        self._failures = failures
        self._stream(stream_arn)
        for name, (minutes, meaning) in SCHEDULES.items():
            events.Rule(
                self,
                f"{name.capitalize()}Schedule",
                rule_name=f"{self._names.function(name)}-schedule",
                description=meaning,
                schedule=events.Schedule.rate(Duration.minutes(minutes)),
                targets=[self._target(name)],
            )
        self.bus = self._bus()

    def _stream(self, stream_arn: str) -> None:
        table = dynamodb.Table.from_table_attributes(
            self, "Table", table_name=self._names.table, table_stream_arn=stream_arn
        )
        equal, exists, begins = (
            lambda_.FilterRule.is_equal,
            lambda_.FilterRule.exists(),
            lambda_.FilterRule.begins_with,
        )
        outbox = {"eventName": equal("INSERT"), "dynamodb": {"NewImage": {"kind": {"S": equal("Outbox")}}}}
        self._read(table, "relay", [outbox], batch=25, by_item=True, age=Duration.hours(1))
        # Claims that wait, and what makes room for them; see operations/scheduler/wake.py.
        wakes: list[dict[str, Any]] = [
            {"kind": {"S": equal("NodeClaim")}, "due_at": {"S": exists}},
            {"kind": {"S": equal("NodeProvider")}},
            {"kind": {"S": equal("Counter")}, "sk": {"S": begins("capacity/")}, "moved": {"S": equal("down")}},
            {"kind": {"S": equal("Cluster")}, "status": {"S": equal("ready")}},
            {"kind": {"S": equal("Fact")}, "sk": {"S": lambda_.FilterRule.or_(ALLOWED_TYPES, BUDGETS)}},
        ]
        patterns = [{"dynamodb": {"NewImage": image}} for image in wakes]
        # Many claims are placed at once: what comes while a batch is placed is read together afterwards, so that a
        # single claim waits for nobody. The schedule looks at all that wait, so what fails need not hold up the others.
        # Batches are read at once by partition key, which begins with the tenant: what one tenant writes hardly ever
        # waits behind what another does.
        self._read(table, "scheduler", patterns, batch=1000, age=Duration.minutes(10), parallel=10)

    def _read(
        self,
        table: dynamodb.ITable,
        name: str,
        patterns: Sequence[Mapping[str, Any]],
        *,
        batch: int,
        age: Duration,
        by_item: bool = False,
        parallel: int | None = None,
    ) -> None:
        """One of the stream's two readers. What fails is tried again until it is of this age: a count is used up within
        seconds, an outage takes minutes. What fails longer stands in the index of due items, read each minute."""
        if len(patterns) > MOST_FILTERS:
            raise ConfigError(f"{name}: {len(patterns)} filters of the table's stream, and AWS takes {MOST_FILTERS}")
        self._functions[name].add_event_source(
            sources.DynamoEventSource(
                table,
                starting_position=lambda_.StartingPosition.LATEST,
                batch_size=batch,
                parallelization_factor=parallel,
                bisect_batch_on_error=True,
                report_batch_item_failures=by_item,
                retry_attempts=-1,
                max_record_age=age,
                on_failure=sources.SqsDlq(self._failures[name]),
                filters=[lambda_.FilterCriteria.filter(dict(pattern)) for pattern in patterns],
            )
        )

    def _bus(self) -> events.EventBus:
        bus = events.EventBus(self, "Bus", event_bus_name=self._names.bus)
        events.Rule(
            self,
            "Requests",
            rule_name=self._names.function("requests"),
            description="Requests that come as events",
            event_bus=bus,
            # Whatever it is called: one that there is not is answered, too.
            event_pattern=events.EventPattern(source=[REQUEST_SOURCE]),
            targets=[self._target("requests")],
        )
        for function, rules in (
            ("autoscaler", POOL_EVENTS),
            ("catalog", CATALOG_EVENTS),
            ("reaper", NODE_EVENTS),
        ):
            for name, (detail_type, meaning, detail) in rules.items():
                events.Rule(
                    self,
                    name,
                    rule_name=self._names.function(f"{function}-{detail_type.lower()}"),
                    description=meaning,
                    event_bus=bus,
                    event_pattern=events.EventPattern(source=[OWN_SOURCE], detail_type=[detail_type], detail=detail),
                    targets=[self._target(function)],
                )
        statement = admission(self._config, Stack.of(self).partition, bus.event_bus_arn)
        if statement:
            events.CfnEventBusPolicy(
                self, "Admit", event_bus_name=bus.event_bus_name, statement_id="Requests", statement=statement
            )
        return bus

    def _target(self, name: str) -> targets.LambdaFunction:
        return targets.LambdaFunction(
            self._functions[name],
            dead_letter_queue=self._failures[name],
            retry_attempts=2,
            max_event_age=Duration.hours(1),
        )
