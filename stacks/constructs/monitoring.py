"""Alarms and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.config import StageConfig
from stacks.names import DELETE_NODE, DELETIONS, Names
from stockyard import metrics
from stockyard.lifecycle.phases import CREATE_CLUSTER
from stockyard.metrics import Metric

_ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
_BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
_MISSING = cloudwatch.TreatMissingData
USUAL_CONCURRENCY = 1000
"""The concurrency that AWS gives an account that asked for nothing, once it is no new one."""
INDEXES = ("due", "everything")
_FIVE, _QUARTER = Duration.minutes(5), Duration.minutes(15)


class Monitoring(Construct):
    """Alarms on what needs a person, and one dashboard."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        config: StageConfig,
        api: apigw.HttpApi,
        functions: Mapping[str, lambda_.Function],
        failures: Mapping[str, sqs.Queue],
        workflows: Mapping[str, sfn.StateMachine],
    ) -> None:
        super().__init__(scope, id)
        self._names = Names(config.stage)
        self._action = None
        if config.alarm_topic_arn:
            topic = sns.Topic.from_topic_arn(self, "AlarmTopic", config.alarm_topic_arn)
            self._action = actions.SnsAction(topic)
        for name, queue in failures.items():
            waiting = queue.metric_approximate_number_of_messages_visible(period=_FIVE, statistic="Maximum")
            self._alarm(f"{name}-failures", waiting, 0, f"{name}: the failure queue holds work that nobody did")
        self._watch_background(functions)
        self._watch_operations(workflows)
        self._watch_limits(config.concurrency or USUAL_CONCURRENCY)
        self._alarm("api-errors", api.metric_server_error(period=_FIVE), 0, "The API answered 5xx")
        self._dashboard(api, functions, failures, workflows)

    def _watch_background(self, functions: Mapping[str, lambda_.Function]) -> None:
        """The sweep, the relay and the scheduler: what stops, does not run, is late or is refused."""
        self._alarm(
            "sweep-stopped",
            self._own(metrics.SWEEP_STOPPED),
            0,
            "The sweep would remove more than it is allowed to, and stopped; a person must look",
        )
        self._alarm(
            "certificates-expire",
            self._own(metrics.CERTIFICATE_DAYS, statistic="Minimum"),
            30,
            "The certificates of a cluster's control plane end within 30 days; its machine should have renewed them",
            below=True,
        )
        self._alarm(
            "sweep-missing",
            functions["reaper"].metric_invocations(period=_QUARTER),
            1,
            "The sweep did not run for 15 minutes",
            silence=True,
        )
        self._alarm(
            "relay-late",
            functions["relay"].metric("IteratorAge", period=_FIVE, statistic="Maximum"),
            300_000,
            "The relay is more than five minutes behind the table's stream",
        )
        self._alarm(
            "scheduler-late",
            functions["scheduler"].metric("IteratorAge", period=_FIVE, statistic="Maximum"),
            300_000,
            "The scheduler is more than five minutes behind the table's stream",
        )
        self._alarm(
            "outbox-refused",
            self._own(metrics.OUTBOX_REFUSED),
            0,
            "Items of the outbox are refused for good; they are tried again with growing pauses",
        )
        self._alarm(
            "outbox-late",
            self._own(metrics.RELAY_LAG, statistic="Maximum"),
            300,
            "The relay sent something that had waited for more than five minutes",
        )
        self._alarm(
            "scheduler-missing",
            self._own(metrics.CLAIMS_WAITING, statistic="SampleCount", period=_QUARTER),
            1,
            "No pass of the scheduler's schedule ended for 15 minutes",
            silence=True,
        )

    def _watch_limits(self, concurrency: int) -> None:
        """Alarms for what AWS or the realm refuses us. ``concurrency`` is how many functions may run at once."""
        self._alarm(
            "functions-throttled",
            lambda_.Function.metric_all_throttles(period=_FIVE, statistic="Sum"),
            0,
            "Lambda throttled functions of this account and region: its concurrency is used up",
        )
        most = concurrency * 4 // 5
        self._alarm(
            "functions-concurrency",
            lambda_.Function.metric_all_concurrent_executions(period=_FIVE, statistic="Maximum"),
            most,
            f"More than {most:,} functions ran at once in this account and region, in which {concurrency:,} may",
        )
        index_dimensions = [{}, *({"GlobalSecondaryIndexName": index} for index in INDEXES)]
        throttles = {
            f"{kind[0].lower()}{number}": cloudwatch.Metric(
                namespace="AWS/DynamoDB",
                metric_name=f"{kind}ThrottleEvents",
                dimensions_map={"TableName": self._names.table, **index_dimension},
                statistic="Sum",
                period=_FIVE,
            )
            for number, index_dimension in enumerate(index_dimensions)
            for kind in (("Read", "Write") if not index_dimension else ("Write",))
        }
        expression = " + ".join(f"FILL({name}, 0)" for name in throttles)
        self._alarm(
            "table-throttled",
            cloudwatch.MathExpression(expression=expression, using_metrics=dict(throttles), period=_FIVE),
            0,
            "DynamoDB throttled the table or one of its indexes",
        )
        self._alarm(
            "identity-unreachable",
            self._own(metrics.IDENTITY_UNREACHABLE),
            0,
            "The sweep could not look at the realm: Keycloak does not answer, or refuses Stockyard's admin client",
        )

    def _watch_operations(self, workflows: Mapping[str, sfn.StateMachine]) -> None:
        """Operations that fail, and claims that wait too long."""
        failed = {f"m{i}": workflows[name].metric_failed(period=_FIVE) for i, name in enumerate(DELETIONS)}
        any_failed = " + ".join(f"FILL({name}, 0)" for name in failed)
        self._alarm(
            "delete-failed",
            cloudwatch.MathExpression(expression=any_failed, using_metrics=dict(failed), period=_FIVE),
            0,
            "The deletion of a cluster ended without an end; something may be left in a cloud",
        )
        self._alarm(
            "node-delete-failed",
            workflows[DELETE_NODE].metric_failed(period=_FIVE),
            0,
            "A node could not be given back for now; its claim says what is left and why",
        )
        self._alarm(
            "operations-failed",
            self._own(metrics.OPERATIONS_FAILED),
            5,
            "More than five operations failed within five minutes; something that many use may be broken",
        )
        self._alarm(
            "cluster-failed",
            self._own(metrics.OPERATIONS_FAILED, operation_kind=CREATE_CLUSTER),
            0,
            "A cluster could not be made; its operation says in which phase, and why",
        )
        self._alarm(
            "binding-slow",
            self._own(metrics.TIME_TO_BIND, statistic="p50"),
            300,
            "Half of the claims that were bound had waited for more than five minutes",
        )

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        threshold: int,
        description: str,
        *,
        below: bool = False,
        silence: bool = False,
    ) -> None:
        """Alarm on a metric above the threshold; with ``below`` on one below it; with ``silence`` also on none."""
        alarm = cloudwatch.Alarm(
            self,
            "".join(part.capitalize() for part in name.replace("_", "-").split("-")),
            alarm_name=self._names.alarm(name.replace("_", "-")),
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=1,
            comparison_operator=_BELOW if below or silence else _ABOVE,
            treat_missing_data=_MISSING.BREACHING if silence else _MISSING.NOT_BREACHING,
        )
        if self._action is not None:
            alarm.add_alarm_action(self._action)

    def _own(
        self, metric: Metric, statistic: str = "Sum", period: Duration = _FIVE, **dimensions: str
    ) -> cloudwatch.Metric:
        """One of our own metrics: of these values of its dimensions, without any over all of them."""
        return cloudwatch.Metric(
            namespace=self._names.metrics,
            metric_name=metric.name,
            dimensions_map=dimensions or None,
            statistic=statistic,
            period=period,
        )

    def _by_dimension(self, metric: Metric, statistic: str) -> cloudwatch.MathExpression:
        """One of our own metrics, a line for each value of its dimensions."""
        schema = ",".join((self._names.metrics, *metric.dimensions[-1]))
        search = f'{{{schema}}} MetricName="{metric.name}"'
        return cloudwatch.MathExpression(
            expression=f"SEARCH('{search}', '{statistic}', 300)", label="", using_metrics={}, period=_FIVE
        )

    def _dashboard(
        self,
        api: apigw.HttpApi,
        functions: Mapping[str, lambda_.Function],
        failures: Mapping[str, sqs.Queue],
        workflows: Mapping[str, sfn.StateMachine],
    ) -> None:
        per_function = list(functions.values())
        machines = list(workflows.values())
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=self._names.prefix,
            widgets=[
                [
                    _graph("API", api.metric_count(), api.metric_client_error(), api.metric_server_error()),
                    _graph("API latency", api.metric_latency(statistic="p50"), api.metric_latency(statistic="p99")),
                ],
                *self._own_rows(),
                [
                    _graph("Function errors", *(source.metric_errors() for source in per_function)),
                    _graph("Function duration, p99", *(f.metric_duration(statistic="p99") for f in per_function)),
                ],
                [
                    _graph(
                        "Workflows started and failed",
                        *(machine.metric_started() for machine in machines),
                        *(machine.metric_failed() for machine in machines),
                    ),
                    _graph(
                        "Failure queues",
                        *(source.metric_approximate_number_of_messages_visible() for source in failures.values()),
                    ),
                ],
            ],
        )

    def _own_rows(self) -> list[list[cloudwatch.IWidget]]:
        """Graphs of our own metrics, row by row."""
        return [
            [
                _graph(
                    "Seconds until a claim is bound",
                    *(self._own(metrics.TIME_TO_BIND, statistic) for statistic in ("p50", "p99")),
                ),
                _graph("Claims waiting", self._own(metrics.CLAIMS_WAITING, "Maximum")),
            ],
            [
                _graph("Seconds of a phase, p90", self._by_dimension(metrics.PHASE_SECONDS, "p90")),
                _graph("Operations failed", self._by_dimension(metrics.OPERATIONS_FAILED, "Sum")),
            ],
            [
                _graph("Relay lag, seconds", self._own(metrics.RELAY_LAG, "Maximum")),
                _graph(
                    "Stopped",
                    *map(self._own, (metrics.OUTBOX_REFUSED, metrics.SWEEP_STOPPED, metrics.IDENTITY_UNREACHABLE)),
                ),
            ],
            [_graph("Days until certificates end", self._own(metrics.CERTIFICATE_DAYS, "Minimum"))],
            [
                _graph(
                    "Decisions of disruption",
                    self._by_dimension(metrics.DECISIONS, "Sum"),
                    self._own(metrics.DECISIONS_ABANDONED),
                ),
                _graph("Nodes disrupted", self._by_dimension(metrics.NODES_DISRUPTED, "Sum")),
            ],
            [_graph("USD an hour saved by decisions", self._own(metrics.USD_HOUR_SAVED, "Sum"))],
        ]


def _graph(title: str, *lines: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(lines), width=12)
