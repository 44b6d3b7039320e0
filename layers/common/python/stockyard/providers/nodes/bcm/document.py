"""Documents of the machines of a BCM inventory: names and defaults are the published ones."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models.nodes.block_fields import MAX_TYPES, NamedNodeType, SecretRef, Text, unique_names
from stockyard.domain.models.nodes.node_fields import Camel


class BcmType(NamedNodeType):
    """Machines of a BCM inventory, by name or by group."""

    nodes: Annotated[list[Text], Field(max_length=2000)] | None = None
    node_groups: Annotated[list[Text], Field(max_length=200)] | None = None


class BcmBlock(Camel):
    """Nodes of a BCM inventory."""

    secret_ref: SecretRef
    endpoint: Annotated[str, StringConstraints(max_length=1024, pattern=r"^https?://[!-~]+$")]
    node_types: Annotated[list[BcmType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
