"""``stockyard pool edit``: a pool in the person's editor."""

from __future__ import annotations

from stockyard_client.cli.context import Context
from stockyard_client.cli.output import plans
from stockyard_client.cli.output.output import Form, show_one
from stockyard_client.cli.output.pool_tables import POOLS

FIXED = frozenset(
    {
        "id",
        "cluster_id",
        "name",
        "kind",
        "form",
        "provider",
        "nodes",
        "deleting",
        "conditions",
        "generation",
        "warnings",
    }
    | {"warnings", "created_by", "created_at", "updated_at", "version"}
)
"""What of a pool does not change by an edit."""


def edit(context: Context, cluster: str, pool: str, *, yes: bool, output: Form) -> None:
    """Opens the editor on a pool and sends what was changed. Raises as ``editing.edit``."""
    from stockyard_client.cli.input.editing import Editable, edit

    with context.client() as client:
        target = Editable(
            "pool",
            pool,
            (),
            lambda: client.pools.get(cluster, pool),
            lambda record, patch: client.pools.update(cluster, record, patch),
            fixed=FIXED,
        )
        if (pair := edit(context, target, yes=yes)) is not None:
            after = pair[1]
            plans.warn(context, after.warnings)
            if after.started_operation:
                context.say(f"Pool {pool} of cluster {cluster} is changed by operation {after.started_operation}.")
            show_one(context, output, POOLS, after)
