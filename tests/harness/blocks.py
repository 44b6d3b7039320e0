"""What the tenant of served local clouds has: a capacity block, which begins long after every test has ended, and none
of an instance type that no other test of them asks for."""

from __future__ import annotations

from pathlib import Path

from local.fault_plan import Block, FaultPlan

BLOCK = Block(id="cr-0123456789abcdef0", instance_type="p5.48xlarge", zone="us-east-1a", count=1, begins_in=864_000)
SCARCE = "m6i.4xlarge"
"""Of this instance type the cloud has none, as the SDK's page needs it."""


def plan_file(folder: Path) -> Path:
    """A plan for a local cloud with that block, and without that instance type."""
    path = folder / "plan.json"
    path.write_text(FaultPlan(blocks=[BLOCK], capacity={SCARCE: 0}).model_dump_json(), encoding="utf-8")
    return path
