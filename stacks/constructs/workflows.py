"""The state machines, made from the documents in ``stacks/workflows``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.config import StageConfig
from stacks.constructs.log_groups import log_group
from stacks.constructs.roles import role
from stacks.names import RUNNERS, Names
from stacks.permissions import Permissions

DOCUMENTS = Path(__file__).resolve().parents[1] / "workflows"


class Workflows(Construct):
    """``by_name``: the workflows of clusters and of nodes, with logs that hold no data of executions."""

    def __init__(
        self, scope: Construct, id: str, *, config: StageConfig, functions: Mapping[str, lambda_.Function]
    ) -> None:
        super().__init__(scope, id)
        names = Names(config.stage)
        shared = role(
            self,
            "Role",
            service="states.amazonaws.com",
            description=f"Stockyard {config.stage}: workflows",
            statements=Permissions(config).of_workflows(),
        )
        self.by_name: dict[str, sfn.StateMachine] = {}
        for name, runner in RUNNERS.items():
            title = "".join(part.capitalize() for part in name.split("-"))
            document = DOCUMENTS / f"{name.replace('-', '_')}.asl.json"
            self.by_name[name] = sfn.StateMachine(
                self,
                title,
                state_machine_name=names.workflow(name),
                definition_body=sfn.DefinitionBody.from_file(str(document)),
                definition_substitutions={runner: functions[runner].function_arn},
                role=shared,
                tracing_enabled=True,
                logs=sfn.LogOptions(
                    destination=log_group(self, f"{title}Logs", names.workflow_log_group(name), config),
                    level=sfn.LogLevel.ALL,
                    include_execution_data=False,
                ),
            )
