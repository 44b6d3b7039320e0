"""The capacity block that the tenant of served local clouds has: it begins long after every test has ended."""

from __future__ import annotations

from pathlib import Path

from local.fault_plan import Block, FaultPlan

BLOCK = Block(id="cr-0123456789abcdef0", instance_type="p5.48xlarge", zone="us-east-1a", count=1, begins_in=864_000)


def plan_file(folder: Path) -> Path:
    """A plan for a local cloud with that block, and no fault."""
    path = folder / "plan.json"
    path.write_text(FaultPlan(blocks=[BLOCK]).model_dump_json(), encoding="utf-8")
    return path
