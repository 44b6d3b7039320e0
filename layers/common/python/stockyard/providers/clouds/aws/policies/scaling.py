"""Rights of Stockyard to the processes of the auto scaling groups behind our node groups."""

from __future__ import annotations

from stockyard.providers.clouds.aws.policies.statements import ArnScope, Statement, allow, on_thing


def processes(here: ArnScope, installation: str) -> list[Statement]:
    """Suspend and resume them: a group that spreads its machines over zones ends those of claims, and is upgraded by
    just that. AWS offers no condition that names the process."""
    group = [here.arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")]
    actions = ["autoscaling:ResumeProcesses", "autoscaling:SuspendProcesses"]
    return [allow("KeepMachinesOfClaims", actions, group, on_thing(installation))]
