"""The log as one JSON object a line, and metrics in the embedded metric format: a measurement is a line of the log."""

from __future__ import annotations

import logging
import time

from aws_lambda_powertools import Logger

from stockyard.metrics import Metric


class LoggedTelemetry:
    """Writes to the function's own log, whose lines have Lambda's context. CloudWatch reads metrics out of it."""

    def __init__(self, namespace: str, logger: Logger | None = None) -> None:
        self._namespace, self._logger = namespace, logger or Logger()

    def log(self, message: str, **keys: str | int) -> None:
        """See ``ports.Telemetry``."""
        self._logger.info(message, extra=keys)

    def measure(self, message: str, metric: Metric, value: float, **keys: str | int) -> None:
        """See ``ports.Telemetry``. The line is written at every level of the log: a stage that logs errors only keeps
        its metrics."""
        directive = {
            "Namespace": self._namespace,
            "Dimensions": [list(dimensions) for dimensions in metric.dimensions],
            "Metrics": [{"Name": metric.name, "Unit": metric.unit}],
        }
        embedded = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
        extra = {**keys, metric.name: value, "_aws": embedded}
        logger = logging.getLogger(self._logger.name)
        record = logger.makeRecord(logger.name, logging.INFO, __file__, 0, message, (), None, "measure", extra)
        logger.handle(record)
