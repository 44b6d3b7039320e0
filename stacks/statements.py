"""Statements of policies as values, and the reasons for what they cannot say narrower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WIDE: Mapping[str, str] = {
    "Prices": "pricing:GetProducts knows no resource; it reads public prices",
    "Offers": "The ec2:Describe actions on types know no resource; they read public facts",
    "Versions": "eks:DescribeClusterVersions knows no resource; it reads public facts",
    "SpotPrices": "Prices and zones of a region are no resources",
    "Traces": "The X-Ray write actions know no resource",
    "LogDelivery": "The log delivery actions, by which Step Functions writes its logs, know no resource",
    "Interfaces": "The ec2 actions by which Lambda joins a VPC are checked against * when the function is created",
}
"""The reason for resource ``*`` by statement. Only these statements may have it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a policy. ``reason`` explains a wildcard, and actions that not every run needs."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    reason: str = ""
    effect: str = "Allow"
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


BY_THE_PLATFORM: Mapping[str, str] = {
    "Logs": "Lambda writes what the function prints",
    "Traces": "Lambda and Step Functions write the traces",
    "LogDelivery": "Step Functions sets up and uses the delivery of its logs",
    "Failures": "Lambda sends what the function could not handle",
    "Stream": "Lambda reads the table's stream for the function",
    "Streams": "Lambda looks for the table's stream when it sets up the reading",
    "Interfaces": "Lambda joins the function to the stage's network",
}
"""The AWS service that uses a statement with the role's credentials. Our own code does not make these calls."""
