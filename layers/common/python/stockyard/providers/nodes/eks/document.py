"""Documents of nodes of managed node groups."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stockyard.domain.models.nodes.node_fields import Camel
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clouds.aws import fields as aws_fields


class EksBlock(Camel):
    """The managed node groups of the clusters on EKS in one region, in the account of a cloud account."""

    cloud_account: Annotated[int, Field(ge=1, le=2**31 - 1)]
    region: aws_fields.Region = DEFAULT_REGION
