"""Equipment of served local clouds: a capacity block that begins long after every test, a scarce type, and managed
services that are quick."""

from __future__ import annotations

from pathlib import Path

from local.fault_plan import AccountPlan, Block, FaultPlan

BLOCK = Block(id="cr-0123456789abcdef0", instance_type="p5.48xlarge", zone="us-east-1a", count=1, begins_in=864_000)


SCARCE = "m7i.2xlarge"
"""The instance type that this cloud has none of."""


MANAGED = 0.2
"""A cluster of EKS comes in two seconds and not in eleven: who waits for it asks each third of a second, and each time
a function runs. A wait still looks some times before it ends."""


def plan_file(folder: Path) -> Path:
    """A plan for a local cloud with that block, without that type and at that pace. The tenant's account has used
    nothing before, and encrypts its volumes by a key of its own."""
    path = folder / "plan.json"
    plan = FaultPlan(blocks=[BLOCK], capacity={SCARCE: 0}, managed=MANAGED, account=AccountPlan(volume_key="own"))
    path.write_text(plan.model_dump_json(), encoding="utf-8")
    return path
