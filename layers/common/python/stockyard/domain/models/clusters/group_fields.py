"""Fields that the node groups of several kinds of clusters have."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, check, repeated


class Taint(Input):
    """A Kubernetes node taint."""

    key: fields.LabelKey
    """The key of the taint."""
    value: fields.LabelValue = ""
    """The value of the taint; empty for none."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What the taint does to pods that do not tolerate it."""


def _distinct(taints: list[Taint]) -> list[Taint]:
    check(repeated([(taint.key, taint.effect) for taint in taints], "same key and effect as another"))
    return taints


GroupTaints = Annotated[list[Taint], Field(max_length=50), AfterValidator(_distinct)]
"""The taints of a group's nodes: each key and effect once."""
