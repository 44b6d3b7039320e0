"""The door of Step Functions: one phase of a cluster's workflow, once. ``act`` says what the event asks."""

from __future__ import annotations

from functools import partial

from stockyard import wiring
from stockyard.edge import phases
from stockyard.operations.clusters.phases import RUNNER
from stockyard.operations.engine.act import act

lambda_handler = phases.handler(wiring.services, partial(act, RUNNER))
