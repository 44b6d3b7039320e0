"""What served local clouds have and lack: a capacity block that begins long after every test, and a scarce type."""

from __future__ import annotations

from pathlib import Path

from local.fault_plan import Block, FaultPlan

BLOCK = Block(id="cr-0123456789abcdef0", instance_type="p5.48xlarge", zone="us-east-1a", count=1, begins_in=864_000)


SCARCE = "m7i.2xlarge"
"""The instance type that this cloud has none of."""


def plan_file(folder: Path) -> Path:
    """A plan for a local cloud with that block, and without that type."""
    path = folder / "plan.json"
    path.write_text(FaultPlan(blocks=[BLOCK], capacity={SCARCE: 0}).model_dump_json(), encoding="utf-8")
    return path
