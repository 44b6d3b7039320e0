"""The environment, read once into a frozen object. A missing name is an error that says the name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from stockyard import kubernetes_versions

ORIGIN_KEY_HEADER = "x-stockyard-origin-key"
"""The field by which a distribution of CloudFront in front of the API proves itself."""


# Nobody shows or compares these alone: what inherits has its own methods.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Choices:
    """Choices of a stage's operator that functions are told."""

    audience: str = "stockyard"
    """Audience of access tokens, which the API takes. Clusters take ID tokens, each for a client of its own."""
    name_prefix: str = "vantage"
    """The beginning of every name in a tenant's account."""
    kubernetes_version: str = kubernetes_versions.DEFAULT
    """Minor version of new clusters that name none."""
    ended_minors: bool = False
    """Whether new clusters may have a minor of Kubernetes that its project has stopped to mend."""
    vdeployer_url_template: str = ""
    """URL with ``{client_id}`` that takes over a ready cluster; empty: the phase ``deploy`` is skipped."""
    tenant_rate_limit: int = 20
    """Requests a second of one tenant's people that one process of a function serves; what is above is answered 429.
    0: all."""
    tenant_burst_limit: int = 60
    """Requests at once of one tenant's people that one process of a function serves."""
    tenant_waits: int = 20
    """Requests of one tenant that wait for news (``?wait=``) at a time; each holds a function. One more is answered at
    once. 0: none waits."""
    waits: int = 200
    """Requests of all tenants that wait for news at a time."""
    tenant_questions: int = 8
    """Questions of one tenant that are answered at a time (placements, simulations, previews); each holds a function
    for up to 24 seconds. One more is answered 429."""
    questions: int = 40
    """Questions of all tenants that are answered at a time."""
    visibility_seconds: int = 60
    """How long a cloud may hide what it just made."""
    sweep_grace_seconds: int = 3600
    """The age at which something that belongs to nothing may be removed."""
    operator_runner: str = ""
    """Cloud account of the operator's own, as `TENANT/NUMBER`, in which templates of shared node providers are applied
    that say so; empty: none, see [Terraform](terraform.md)."""
    report_only: bool = False
    """Whether the sweep only reports: see [restore](restore.md)."""
    launch_seconds: int = 300
    """How long a node's machine may take to be made."""
    image_days: int = 7
    """After how many days a cluster's new nodes start from the publisher's then current image. Nodes that run stay as
    they are."""
    register_seconds: int = 900
    """How long a machine that was made may take to join its cluster as a node."""
    agent_busy_seconds: int = 10
    """How soon a cluster's agent comes again while it has something to do for a claim. Pods that wait call it at
    once."""
    agent_quiet_seconds: int = 60
    """How soon a cluster's agent comes again in the hour after it had something to do."""
    agent_idle_seconds: int = 300
    """How soon a cluster's agent comes again later. What somebody asks for in an idle cluster begins so much later at
    most. With 60 a cluster costs 0.10 USD a month more (``make cost``)."""
    site_idle_seconds: int = 60
    """How soon a [site](sites.md)'s connector comes again while nothing is done there. The first request waits so long
    at most; with 60 a site costs 0.10 USD a month (``make cost``)."""
    packages_url: str = "https://pkgs.k8s.io"
    """Where machines fetch Kubernetes' packages at their first boot:
    [mirrors](operations.md#mirrors-and-baked-images)."""
    archive_url: str = ""
    """Where machines fetch Ubuntu's packages; empty: from Ubuntu."""
    image_mirror: str = ""
    """Where machines fetch images of registries; empty: from the registries."""
    manifests_url: str = "https://raw.githubusercontent.com"
    """Where machines fetch manifests at their first boot; see ``stockyard.machines.sources``."""
    cudo_url: str = "https://rest.compute.cudo.org"
    """Where [Cudo Compute](cudo.md)'s API is: the vendor's texts name a second host for it."""
    cudo_dns_suffix: str = ""
    """The domain of the names of clusters on Cudo, ``{client_id}.{suffix}``, which their certificates have; empty for
    names below ``stockyard.internal``, which only a cluster's own machines know."""
    allow_access_keys: bool = False
    """Whether accounts in AWS may be registered by an access key instead of a role."""
    egress_addresses: str = ""
    """Addresses by which the functions of the stage's `network` go out, those of its NAT gateways, with commas between
    them. [Clusters on EKS](eks.md) whose API is not open to everybody need them."""
    allow_private_addresses: bool = False
    """Whether what an account names, a [Vault](vault.md) or the API of a Kubernetes host, may stand at a private
    address. Only with `network`: the stage's functions reach what is in it, and a tenant's address lets them look
    around there."""
    force_deletion_seconds: int = 900
    """How long a deletion has been running or blocked before somebody may have the cluster forgotten."""
    refusal_seconds: int = 180
    """How long nobody asks a cloud again for what it had none of a moment ago."""
    zone_wait_seconds: int = 300
    """How long a node waits for room in the zone that it is bound to before another one will do; longer than a refusal
    is remembered, or a zone that is back would not be tried."""
    unhealthy_member_seconds: int = 600
    """How long a member of a control plane may be unhealthy before it is
    [replaced](decisions/0076-unhealthy-members-are-replaced.md)."""
    agent_image: str = ""
    """The image that clusters' agents run in: Python 3.11 or newer; empty for the agent's own choice."""
    tofu_url: str = "https://github.com/opentofu/opentofu/releases/download"
    """Where the [programs of node providers](decisions/0477-opentofu-comes-from-its-release.md) find OpenTofu's
    releases, or a mirror of them: below it is `v1.12.6/tofu_1.12.6_linux_arm64.zip`, with the list of checksums."""
    tofu_digest: str = ""
    """SHA-256 of that archive, which nothing else is accepted for; empty: the release's own list of checksums says
    it."""


@dataclass(frozen=True, slots=True)
class Settings(Choices):
    """Settings of a stage that its functions are told. Every one gets the same names; those it does not need may be
    empty."""

    table: str
    stage: str = "dev"
    bus: str = ""
    api_url: str = ""
    issuer: str = ""
    identity_admin_secret: str = ""
    """Name of our secret with ``{"client_id", "client_secret"}`` of the realm's admin client."""
    page_key_secret: str = ""
    """Name of our secret whose text signs page tokens."""
    machine_key_secret: str = ""
    """Name of our secret that the tokens of machines are derived from."""
    origin_key_hashes: str = ""
    """SHA-256, with commas between them, of the secrets that only our distribution of CloudFront sends: requests with
    none of them did not come through it. Empty: they may come from everywhere."""
    bucket: str = ""
    """Name of the bucket for what is too large for a record; empty: nothing of that kind is kept."""
    secrets_key: str = ""
    """Alias of the KMS key that secrets of clusters are sealed with."""
    workflow_prefix: str = ""
    """What the ARNs of the stage's workflows begin with; the rest is the name in the table of phases."""
    catalog_function: str = ""
    """Name of the function that fetches prices; empty: prices come by its schedule alone."""
    principal_pattern: str = ""
    """ARN pattern of our functions' roles, for the trust policy in a tenant's account."""
    vault_url: str = ""
    """Where every tenant's Vault is asked instead of at its own address: the local cloud's. No stage sets it."""
    stand_in_hosts: str = ""
    """Hosts with ports, with commas between them, that accounts may name though they lead to the calling machine: the
    local cloud's stand-ins. No stage sets it."""
    offers_trials: bool = False
    """Whether kinds of node providers are offered that only try something out: the local cloud's. No stage sets it."""
    worker_seconds: int = 120
    """How long one run of a phase may last; the phases function's time-out ends it then."""

    # What is the same in every stage.
    quotas: ClassVar[Mapping[str, int]] = {
        "clusters": 20,
        "cloud_accounts": 20,
        "cluster_profiles": 50,
        "node_groups": 20,
        "node_providers": 50,
        "nodeclaims": 5000,
        "nodes_per_eks_group": 1000,
        "nodes_per_group": 100,
        "os_images": 100,
        "sites": 20,
    }
    """Limits of a tenant that has none of its own."""
    lease_seconds: ClassVar[int] = 120
    """How long an accepted cluster may wait for the rest of its acceptance before it is undone."""
    drain_seconds: ClassVar[int] = 600
    """How long a drain may take before pods are deleted past their budgets."""
    retry_deletion_seconds: ClassVar[int] = 900
    stuck_seconds: ClassVar[int] = 1800

    @property
    def in_flight_seconds(self) -> int:
        """Seconds after an intent in which the thing may still appear: a worker's longest life and the cloud's
        hiding."""
        return self.worker_seconds + self.visibility_seconds

    @property
    def token_url(self) -> str:
        """Address at which a client of the realm gets its tokens."""
        return f"{self.issuer}/protocol/openid-connect/token"


def read(environment: Mapping[str, str]) -> Settings:
    """The settings of this process. Names are ``STOCKYARD_`` and the field in capitals; an empty one is as none.

    Raises ``KeyError`` for a missing table and ``ValueError`` for a value that cannot be read, with the name.
    """
    values: dict[str, Any] = {}
    for each in fields(Settings):
        name = f"STOCKYARD_{each.name.upper()}"
        if text := environment.get(name):
            values[each.name] = _READERS[str(each.type)](name, text)
    if "table" not in values:
        raise KeyError("STOCKYARD_TABLE is not set")
    settings = Settings(**values)
    _check_minor(settings.kubernetes_version)
    return replace(
        settings,
        api_url=settings.api_url.rstrip("/"),
        issuer=settings.issuer.rstrip("/"),
    )


def _whole_number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} is not a whole number: {text!r}") from None


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "str": lambda _, text: text,
    "int": _whole_number,
    "bool": lambda _, text: text == "true",
}
"""How a field of that type is read from (name, text)."""


def _check_minor(version: str) -> None:
    if version not in kubernetes_versions.TESTED:
        minors = " or ".join(kubernetes_versions.TESTED)
        raise ValueError(f"STOCKYARD_KUBERNETES_VERSION is {version!r}; it must be {minors}")
