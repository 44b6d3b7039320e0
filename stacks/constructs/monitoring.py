"""Alarms and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.config import StageConfig
from stacks.names import DELETE, DELETE_NODE, OUTBOX_REFUSED, SWEEP_STOPPED, Names

_ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
_BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
_FIVE = Duration.minutes(5)


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
        self._alarm(
            "sweep-stopped",
            self._lines(SWEEP_STOPPED, functions["reaper"].log_group),
            0,
            "The sweep would remove more than it is allowed to, and stopped; a person must look",
        )
        self._alarm(
            "sweep-missing",
            functions["reaper"].metric_invocations(period=Duration.minutes(15)),
            1,
            "The sweep did not run for 15 minutes",
            comparison=_BELOW,
            missing=cloudwatch.TreatMissingData.BREACHING,
        )
        self._alarm(
            "relay-late",
            functions["relay"].metric("IteratorAge", period=_FIVE, statistic="Maximum"),
            300_000,
            "The relay is more than five minutes behind the table's stream",
        )
        self._alarm(
            "outbox-refused",
            self._lines(OUTBOX_REFUSED, functions["relay"].log_group),
            0,
            "Items of the outbox are refused for good; they are tried again with growing pauses",
        )
        self._alarm(
            "delete-failed",
            workflows[DELETE].metric_failed(period=_FIVE),
            0,
            "The deletion of a cluster ended without an end; something may be left in a cloud",
        )
        self._alarm(
            "node-delete-failed",
            workflows[DELETE_NODE].metric_failed(period=_FIVE),
            0,
            "A node could not be given back for now; its claim says what is left and why",
        )
        self._alarm("api-errors", api.metric_server_error(period=_FIVE), 0, "The API answered 5xx")
        self._dashboard(api, functions, failures, workflows)

    def _alarm(
        self,
        what: str,
        metric: cloudwatch.IMetric,
        threshold: int,
        description: str,
        *,
        comparison: cloudwatch.ComparisonOperator = _ABOVE,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            "".join(part.capitalize() for part in what.replace("_", "-").split("-")),
            alarm_name=self._names.alarm(what.replace("_", "-")),
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=1,
            comparison_operator=comparison,
            treat_missing_data=missing,
        )
        if self._action is not None:
            alarm.add_alarm_action(self._action)

    def _lines(self, message: str, group: logs.ILogGroup) -> cloudwatch.Metric:
        """How many lines of the log are this message."""
        counted = logs.MetricFilter(
            self,
            f"{message}Lines",
            log_group=group,
            filter_pattern=logs.FilterPattern.string_value("$.message", "=", message),
            metric_namespace=self._names.metrics,
            metric_name=message,
            metric_value="1",
        )
        return counted.metric(period=_FIVE, statistic="Sum")

    def _dashboard(
        self,
        api: apigw.HttpApi,
        functions: Mapping[str, lambda_.Function],
        failures: Mapping[str, sqs.Queue],
        workflows: Mapping[str, sfn.StateMachine],
    ) -> None:
        def graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
            return cloudwatch.GraphWidget(title=title, left=list(metrics), width=12)

        per_function = list(functions.values())
        machines = list(workflows.values())
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=self._names.prefix,
            widgets=[
                [
                    graph("API", [api.metric_count(), api.metric_client_error(), api.metric_server_error()]),
                    graph("API latency", [api.metric_latency(statistic="p50"), api.metric_latency(statistic="p99")]),
                ],
                [
                    graph("Function errors", [one.metric_errors() for one in per_function]),
                    graph("Function duration, p99", [one.metric_duration(statistic="p99") for one in per_function]),
                ],
                [
                    graph(
                        "Workflows started and failed",
                        [m.metric_started() for m in machines] + [m.metric_failed() for m in machines],
                    ),
                    graph(
                        "Failure queues",
                        [one.metric_approximate_number_of_messages_visible() for one in failures.values()],
                    ),
                ],
            ],
        )
