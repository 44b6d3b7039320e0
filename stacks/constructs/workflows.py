"""The state machines, made from the documents of ``stacks.workflows``, which ``cdk.out/workflows`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from aws_cdk import Stage
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.config import NEEDED, StageConfig
from stacks.constructs.log_groups import log_group
from stacks.constructs.roles import acknowledge, role
from stacks.names import RUNNERS, Names
from stacks.permissions import Permissions
from stacks.workflows import documents, text


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
        folder = Path(cast(Stage, Stage.of(self)).outdir) / "workflows"
        folder.mkdir(parents=True, exist_ok=True)
        self.by_name: dict[str, sfn.StateMachine] = {}
        for name, content in documents().items():
            runner = RUNNERS[name]
            title = "".join(part.capitalize() for part in name.split("-"))
            path = folder / f"{name}.asl.json"
            path.write_text(text(content), encoding="utf-8")
            machine = self.by_name[name] = sfn.StateMachine(
                self,
                title,
                state_machine_name=names.workflow(name),
                definition_body=sfn.DefinitionBody.from_file(str(path)),
                definition_substitutions={runner: functions[runner].function_arn},
                role=shared,
                tracing_enabled=True,
                logs=sfn.LogOptions(
                    destination=log_group(self, f"{title}Logs", names.workflow_log_group(name), config),
                    level=sfn.LogLevel.ERROR if config.stage in NEEDED else sfn.LogLevel.ALL,
                    include_execution_data=False,
                ),
            )
            if config.stage in NEEDED:
                acknowledge(machine, "AwsSolutions-SF1", "What fails is logged; each step would cost more than its run")
