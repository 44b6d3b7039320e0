"""The door of Step Functions: one phase of a claim's workflow, once."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge import phases
from stockyard.edge.logs import logged
from stockyard.operations.engine.act import act
from stockyard.operations.node_claims.phases import RUNNER

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """See ``stockyard.operations.engine.act`` for what the event asks; the answer is ``{done, wait}``."""
    services = wiring.services(event["tenant"])
    return phases.answer(logger, lambda: act(RUNNER, services, event))
