"""Rights of each of our roles, as data: the stack turns it into policies, a test evaluates recorded calls against it.

Resources are templates with ``{partition}``, ``{region}``, ``{account}`` and ``{stream}``, the ARN of the table's
stream, which AWS chooses. An action is always spelt out. A statement whose resource holds a wildcard has a ``reason``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stacks.config import StageConfig
from stacks.functions import FUNCTIONS
from stacks.names import CHANGES, CREATIONS, PROVISION_NODE, RUNNERS, Names
from stacks.statements import WIDE, Statement

TABLE_READ = ("dynamodb:GetItem", "dynamodb:Query")
TABLE_BATCH = ("dynamodb:BatchGetItem",)  # claims of a cluster are listed by their entries and read together
TABLE_CREATE = (*TABLE_READ, "dynamodb:PutItem")
TABLE_CHANGE = (*TABLE_CREATE, "dynamodb:UpdateItem", "dynamodb:DeleteItem")
TABLE_LEDGER = (*TABLE_CHANGE, "dynamodb:ConditionCheckItem")
"""Every line of a cluster's ledger is written under a check that the cluster is still the operation's."""

_SUFFIX = "-??????"  # Secrets Manager ends the ARN of a secret with six random characters


class Permissions:
    """The statements of one stage."""

    def __init__(self, config: StageConfig) -> None:
        self._config = config
        self._names = Names(config.stage)
        self._table_arn = _arn("dynamodb", f"table/{self._names.table}")

    def of_function(self, name: str) -> tuple[Statement, ...]:
        """All statements of the function's role, its logs and traces included. ``KeyError`` for an unknown name."""
        spec = {function.name: function for function in FUNCTIONS}[name]
        own: tuple[Statement, ...] = getattr(self, f"_{name}")()
        failures = (self._failures(name),) if spec.asynchronous else ()
        interfaces = (_INTERFACES,) if spec.private and self._config.network is not None else ()
        traces = (self._traces(),) if spec.traced else ()
        return (*own, *failures, *interfaces, self._function_logs(name), *traces)

    def of_workflows(self) -> tuple[Statement, ...]:
        """The statements of the state machines' role."""
        runners = tuple(self._function(name) for name in sorted(set(RUNNERS.values())))
        delivery = (
            "logs:CreateLogDelivery",
            "logs:DeleteLogDelivery",
            "logs:DescribeLogGroups",
            "logs:DescribeResourcePolicies",
            "logs:GetLogDelivery",
            "logs:ListLogDeliveries",
            "logs:PutResourcePolicy",
            "logs:UpdateLogDelivery",
        )
        return (
            Statement("Phases", ("lambda:InvokeFunction",), runners),
            _wide("LogDelivery", *delivery),
            self._traces(sampling=True),
        )

    # --- one method a function, of its name --------------------------------------------------------------------------

    def _clusters(self) -> tuple[Statement, ...]:
        return self._changes_of_clusters()

    def _requests(self) -> tuple[Statement, ...]:
        # Pools are written under a check of their cluster; templates are tried in their host, or through a site.
        _, *statements = self._changes_of_clusters()
        table = self._table(actions=(*TABLE_LEDGER, *TABLE_BATCH))
        return table, *statements, self._site_seals("kms:GenerateDataKey"), self._publish()

    def _fetch(self) -> Statement:
        """Permission to have the prices of a region fetched that a person names."""
        return Statement("Fetch", ("lambda:InvokeFunction",), (self._function("catalog"),))

    def _changes_of_clusters(self) -> tuple[Statement, ...]:
        secrets = self._own_secrets(self._names.identity_admin, self._names.page_key)
        # The plan of a deletion lists the nodes.
        table = self._table(actions=(*TABLE_CHANGE, *TABLE_BATCH))
        # The checks of a new cluster ask its cloud, by the account's key where that has one.
        return table, secrets, self._cluster_secrets("kms:Decrypt"), *self._tenant_roles(), self._fetch()

    def _cloud_accounts(self) -> tuple[Statement, ...]:
        # Verification proves that the role is refused without the external id, so it must be allowed to leave it out.
        return (
            self._table(),
            self._own_secrets(self._names.page_key),
            self._cluster_secrets("kms:Decrypt", "kms:GenerateDataKey"),
            *self._tenant_roles(external_id=False),
            self._fetch(),
        )

    def _node_providers(self) -> tuple[Statement, ...]:
        # Templates are tried in their host, by the credentials of an account or of a cluster, or through a site.
        return (
            self._table(),
            self._own_secrets(self._names.page_key),
            self._cluster_secrets("kms:Decrypt"),
            self._site_seals("kms:GenerateDataKey"),
            self._fetch(),
        )

    def _node_claims(self) -> tuple[Statement, ...]:
        # A plan looks at budgets: the claims of a cluster are read together.
        return self._table(actions=(*TABLE_CHANGE, *TABLE_BATCH)), self._own_secrets(self._names.page_key)

    def _pools(self) -> tuple[Statement, ...]:
        # A new pool is written under a check that its cluster is not on its way out. One of a node group is changed in
        # the cluster's settings, whose checks ask its cloud, by the account's key where that has one.
        actions = (*TABLE_CREATE, *TABLE_BATCH, "dynamodb:ConditionCheckItem")
        secrets = (self._own_secrets(self._names.page_key), self._cluster_secrets("kms:Decrypt"))
        return self._table(actions=actions), *secrets, *self._tenant_roles(), self._fetch()

    def _cluster_profiles(self) -> tuple[Statement, ...]:
        # A comparison asks the cluster: by the tenant's role, or by the kubeconfig that its control plane has sent.
        # The parts of a version are read together; profiles are counted.
        actions = (*TABLE_CHANGE, *TABLE_BATCH)
        secrets = (self._own_secrets(self._names.page_key), self._cluster_secrets("kms:Decrypt"))
        return self._table(actions=actions), *secrets, *self._tenant_roles()

    def _autoscaler(self) -> tuple[Statement, ...]:
        return self._passes("autoscaler")

    def _disruptor(self) -> tuple[Statement, ...]:
        return self._passes("disruptor")

    def _passes(self, name: str) -> tuple[Statement, ...]:
        # The schedule begins each cluster's pass as an invocation of the function's own.
        passes = Statement("Passes", ("lambda:InvokeFunction",), (self._function(name),))
        return self._table("due", actions=(*TABLE_LEDGER, *TABLE_BATCH)), passes

    def _apply(self) -> tuple[Statement, ...]:
        # Clusters come as manifests too. A new pool is written under a check that its cluster is not on its way out.
        table = self._table(actions=(*TABLE_LEDGER, *TABLE_BATCH))
        own_secrets = self._own_secrets(self._names.identity_admin)
        # Templates of providers are tried through a site.
        seals = self._cluster_secrets("kms:Decrypt"), self._site_seals("kms:GenerateDataKey")
        return table, own_secrets, *seals, *self._tenant_roles(), self._fetch()

    def _records(self) -> tuple[Statement, ...]:
        # The costs of one cluster read its claims together.
        table, page_key = self._table(actions=(*TABLE_CREATE, *TABLE_BATCH)), self._own_secrets(self._names.page_key)
        entries = Statement("SubjectEntries", ("dynamodb:Query",), (f"{self._table_arn}/index/everything",))
        return table, entries, page_key, self._fetch(), self._objects("logs", "s3:GetObject"), self._listing()

    def _machines(self) -> tuple[Statement, ...]:
        # The index says whose a machine's cluster is. Reports of pods check it, and what they wake is sent at once.
        actions = (*TABLE_CREATE, *TABLE_BATCH, "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem")
        table, seals = self._table("due", "everything", actions=actions), self._cluster_secrets("kms:GenerateDataKey")
        own_secrets = self._own_secrets(self._names.identity_admin, self._names.machine_key)
        return table, seals, own_secrets, self._wake(), self._publish()

    def _sites(self) -> tuple[Statement, ...]:
        # Requests are opened and answers sealed, of sites alone.
        return (
            self._table(),
            self._own_secrets(self._names.identity_admin, self._names.page_key),
            self._site_seals("kms:Decrypt", "kms:GenerateDataKey"),
        )

    def _runs(self) -> tuple[Statement, ...]:
        return (
            self._table(actions=("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:ConditionCheckItem")),
            self._own_secrets(self._names.machine_key),
            self._run_seals("kms:Decrypt", "kms:GenerateDataKey"),
            self._objects("runs", "s3:GetObject", "s3:PutObject"),
            self._objects("states", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"),
            self._objects("logs", "s3:PutObject"),
            self._listing(),
        )

    def _cluster_phases(self) -> tuple[Statement, ...]:
        return (
            self._table(actions=(*TABLE_LEDGER, *TABLE_BATCH)),
            self._own_secrets(self._names.identity_admin, self._names.machine_key),
            # Keys of accounts.
            self._cluster_secrets("kms:Decrypt"),
            *self._tenant_roles(),
            # A deletion stops what still works on the cluster.
            *(
                self._executions(name, "states:DescribeExecution", "states:StopExecution")
                for name in (*CREATIONS, *CHANGES)
            ),
            self._wake(),
            # The console of a machine that did not come up.
            self._objects("logs", "s3:PutObject"),
            # The environments of a cluster go with it.
            *self._begins_runs(),
        )

    def _node_phases(self) -> tuple[Statement, ...]:
        return (
            self._table(actions=(*TABLE_LEDGER, *TABLE_BATCH)),
            self._own_secrets(self._names.machine_key),
            # Keys of accounts.
            self._cluster_secrets("kms:Decrypt"),
            self._site_seals("kms:GenerateDataKey"),
            *self._tenant_roles(),
            self._executions(PROVISION_NODE, "states:DescribeExecution", "states:StopExecution"),
            self._objects("logs", "s3:PutObject"),
            *self._begins_runs(),
        )

    def _scheduler(self) -> tuple[Statement, ...]:
        # What counts for the budget of a cluster are its claims, which are read together.
        actions = (*TABLE_CREATE, *TABLE_BATCH, "dynamodb:UpdateItem")
        start = Statement("Start", ("states:StartExecution",), (self._workflow(PROVISION_NODE),))
        return self._table("due", actions=actions), *self._reads_stream(), start

    def _relay(self) -> tuple[Statement, ...]:
        # What is sent is removed; what is not taken is written anew with a later moment.
        workflows = tuple(self._workflow(name) for name in RUNNERS)
        return (
            self._table("due", actions=("dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem")),
            *self._reads_stream(),
            Statement("Start", ("states:StartExecution",), workflows),
            self._publish(),
        )

    def _reaper(self) -> tuple[Statement, ...]:
        return (
            Statement("Places", ("lambda:InvokeFunction",), (self._function("reaper"),)),
            # A queued change that it begins reads the cluster's claims and the parts of profiles together.
            self._table("due", "everything", actions=(*TABLE_CHANGE, *TABLE_BATCH)),
            Statement("TableIdentity", ("dynamodb:DescribeTable",), (self._table_arn,)),
            self._own_secrets(self._names.identity_admin, self._names.machine_key),
            self._cluster_secrets("kms:Decrypt"),
            self._site_seals("kms:GenerateDataKey"),
            *self._tenant_roles(),
            *(self._executions(name, "states:DescribeExecution") for name in RUNNERS),
            # Plans of machines are compared, and environments that nobody needs are removed.
            *self._begins_runs(),
        )

    def _catalog(self) -> tuple[Statement, ...]:
        # The index tells which regions have clusters, and which accounts there are. What an account is offered is
        # written under a check that it is as it was.
        actions = ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:ConditionCheckItem")
        return (
            self._table("everything", actions=actions),
            self._cluster_secrets("kms:Decrypt"),
            self._site_seals("kms:GenerateDataKey"),
            _wide("Prices", "pricing:GetProducts"),
            _wide("Offers", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes"),
            _wide("Versions", "eks:DescribeClusterVersions"),
            _wide("SpotPrices", "ec2:DescribeAvailabilityZones", "ec2:DescribeSpotPriceHistory"),
        )

    def _wake(self) -> Statement:
        """Permissions for the machine's report and for the waiting phase: the later of the two ends the phase."""
        return Statement("Wake", ("states:SendTaskSuccess",), tuple(self._workflow(name) for name in CREATIONS))

    # --- what they are made of ---------------------------------------------------------------------------------------

    def _table(self, *indexes: str, actions: tuple[str, ...] = TABLE_CHANGE) -> Statement:
        return Statement(
            "Table",
            actions,
            (self._table_arn, *(f"{self._table_arn}/index/{index}" for index in indexes)),
            reason="A commit mixes writes; which ones depends on what has changed",
        )

    def _reads_stream(self) -> tuple[Statement, ...]:
        actions = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
        reason = "Lambda lists the table's streams, of which AWS chooses the names"
        listing = Statement("Streams", ("dynamodb:ListStreams",), (f"{self._table_arn}/stream/*",), reason=reason)
        return Statement("Stream", actions, ("{stream}",)), listing

    def _function(self, name: str) -> str:
        return _arn("lambda", f"function:{self._names.function(name)}")

    def _cluster_secrets(self, *actions: str) -> Statement:
        return self._secrets_key("ClusterSecrets", actions, {})

    def _site_seals(self, *actions: str) -> Statement:
        """Rights on the key of secrets for what goes to sites and comes from there, and for nothing else."""
        sites = {"StringLike": {"kms:EncryptionContext:stockyard:resource": "sit_*"}}
        return self._secrets_key("SiteSeals", actions, sites)

    def _begins_runs(self) -> tuple[Statement, ...]:
        """Permissions to say what programs of runs are to do, and to read what they have told."""
        return (
            self._run_seals("kms:GenerateDataKey"),
            self._objects("runs", "s3:GetObject", "s3:PutObject"),
            self._objects("states", "s3:DeleteObject", "s3:GetObject"),
            self._listing(),
        )

    def _run_seals(self, *actions: str) -> Statement:
        """The same for tasks and results of runs."""
        runs = {"StringLike": {"kms:EncryptionContext:stockyard:resource": "run_*"}}
        return self._secrets_key("RunSeals", actions, runs)

    def _secrets_key(
        self, sid: str, actions: tuple[str, ...], conditions: Mapping[str, Mapping[str, Any]]
    ) -> Statement:
        alias = {"StringEquals": {"kms:RequestAlias": self._names.secrets_key}}
        reason = "AWS chooses the id of the key; the condition names it by its alias"
        return Statement(sid, actions, (_arn("kms", "key/*"),), reason=reason, conditions={**alias, **conditions})

    def _objects(self, kind: str, *actions: str) -> Statement:
        reason = "The names of objects are those of tenants and of what belongs to them"
        return Statement(
            f"{kind.capitalize()}Objects",
            actions,
            (f"arn:{{partition}}:s3:::{self._names.bucket}/{kind}/*",),
            reason=reason,
        )

    def _listing(self) -> Statement:
        """Permission by which S3 answers that an object is not there; without it the answer is that of a refusal."""
        reason = "S3 asks for it only where an object is not there"
        return Statement(
            "Listing", ("s3:ListBucket",), (f"arn:{{partition}}:s3:::{self._names.bucket}",), reason=reason
        )

    def _own_secrets(self, *names: str) -> Statement:
        return Statement(
            "OwnSecrets",
            ("secretsmanager:GetSecretValue",),
            tuple(_secret(name + _SUFFIX) for name in names),
            reason="Secrets Manager ends each ARN with six random characters",
        )

    def _tenant_roles(self, *, external_id: bool = True) -> tuple[Statement, ...]:
        pattern = self._config.tenant_role_pattern
        allow = Statement(
            "TenantRoles",
            ("sts:AssumeRole",),
            (f"arn:{{partition}}:iam::*:role/{pattern}",),
            reason="A tenant brings a role of its own account under its own name; its trust policy demands our external"
            " id. The stage's tenant_role_pattern narrows the names",
            conditions={"Null": {"sts:ExternalId": "false"}} if external_id else {},
        )
        if self._config.allow_own_account:
            return (allow,)
        # Roles of our own account may trust the whole account; without this a tenant could name one of them.
        deny = Statement(
            "NotOurOwn",
            ("sts:AssumeRole",),
            ("arn:{partition}:iam::{account}:role/*",),
            reason="Denies every role of Stockyard's own account",
            effect="Deny",
        )
        return allow, deny

    def _workflow(self, name: str) -> str:
        return _arn("states", f"stateMachine:{self._names.workflow(name)}")

    def _executions(self, workflow: str, *actions: str) -> Statement:
        return Statement(
            "".join(part.capitalize() for part in workflow.split("-")),
            actions,
            (_arn("states", f"execution:{self._names.workflow(workflow)}:*"),),
            reason="Executions are named at run time after the operation they carry out",
        )

    def _publish(self) -> Statement:
        return Statement("Bus", ("events:PutEvents",), (_arn("events", f"event-bus/{self._names.bus}"),))

    def _failures(self, name: str) -> Statement:
        return Statement("Failures", ("sqs:SendMessage",), (_arn("sqs", self._names.failures(name)),))

    def _function_logs(self, name: str) -> Statement:
        return Statement(
            "Logs",
            ("logs:CreateLogStream", "logs:PutLogEvents"),
            (_arn("logs", f"log-group:{self._names.function_log_group(name)}:*"),),
            reason="Lambda names the streams of the function's own log group",
        )

    def _traces(self, *, sampling: bool = False) -> Statement:
        sample = ("xray:GetSamplingRules", "xray:GetSamplingTargets") if sampling else ()
        return _wide("Traces", *sample, "xray:PutTelemetryRecords", "xray:PutTraceSegments")


def _arn(service: str, resource: str) -> str:
    return f"arn:{{partition}}:{service}:{{region}}:{{account}}:{resource}"


def _secret(pattern: str) -> str:
    return _arn("secretsmanager", f"secret:{pattern}")


def _wide(sid: str, *actions: str) -> Statement:
    return Statement(sid, actions, ("*",), reason=WIDE[sid])


_INTERFACES = _wide(
    "Interfaces",
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
