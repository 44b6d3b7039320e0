"""What Stockyard may do to the processes of the auto scaling groups behind our node groups."""

from __future__ import annotations

from stockyard.providers.clouds.aws.statements import Place, Statement, allow, on_thing


def processes(here: Place, installation: str) -> list[Statement]:
    """Suspend them: a group that spreads its machines over zones ends those of claims. AWS offers no condition that
    names the process."""
    group = [here.arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")]
    return [allow("KeepMachinesOfClaims", ["autoscaling:SuspendProcesses"], group, on_thing(installation))]
