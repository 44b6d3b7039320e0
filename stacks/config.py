"""The configuration of a stage, from the ``stages`` object of ``cdk.json``. Every mistake names its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from stacks.errors import ConfigError
from stockyard import kubernetes_versions
from stockyard.settings import Choices

NEEDED: Mapping[str, tuple[str, ...]] = {"prod": ("domain", "certificate_arn", "alarm_topic_arn")}
"""By stage: what it may not be without."""
RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653)
MOST_EVENT_ACCOUNTS = 100
"""A policy of a bus may have 10,240 characters, some 60 an account."""
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
EDGE_REGION = "us-east-1"
"""Where CloudFront reads certificates and web ACLs, and where its metrics and logs are."""
OTHER_PARTITIONS = ("cn-", "us-gov-", "us-iso", "eu-isoe-", "eusc-")
"""How the names of regions begin that are not of AWS's commercial partition."""
MOST_ORIGIN_KEYS = 2
"""The one that the distribution sends, and during a change the one before it."""


@dataclass(frozen=True, slots=True)
class Network:
    """A VPC of the operator for the functions that call private services (Keycloak admin, vdeployer)."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CloudFront:
    """CloudFront with a web ACL of AWS WAF in front of the API."""

    certificate_arn: str
    """The domain's certificate in ACM, in us-east-1."""
    origin_key_hashes: tuple[str, ...]
    """SHA-256, in hexadecimal digits, of the secrets that functions take from the distribution. It sends the first."""
    address_limit: int = 3000
    """Requests a minute of one address; further ones are answered 429. The machines of a cluster share an address."""
    alarm_topic_arn: str = ""
    """SNS topic in us-east-1 for the alarms on the distribution. Empty: the stage's, when that is in us-east-1."""
    accept_direct: bool = False
    """Whether the API also serves what does not come through the distribution, and keeps its regional domain: while the
    name moves from one to the other."""


@dataclass(frozen=True, slots=True)
class StageConfig(Choices):
    """One stage. Times are in seconds, retention in days, rates in requests a second."""

    stage: str
    issuer: str
    """Required: the URL of the Keycloak realm that issues the tokens. ``dev`` has a placeholder, which the local cloud
    replaces."""
    account: str = ""
    """Deploy only into this account; empty for the account of the CDK CLI's credentials."""
    region: str = ""
    """Deploy only into this region; empty for the region of the CDK CLI."""
    tenant_role_pattern: str = "*"
    """Pattern of the names (with path) of the tenants' roles that may be assumed. Tenants may choose any name, and the
    external id protects the role. A stage whose tenants all use our template can narrow the pattern."""
    allow_own_account: bool = False
    """Whether a role of Stockyard's own account may be registered as a tenant's."""
    log_level: str = "INFO"
    """The least level of the lines that functions log."""
    log_retention_days: int = 30
    """For how many days logs are kept."""
    rate_limit: int = 100
    """Requests a second of people's routes, together."""
    burst_limit: int = 200
    """Requests at once of people's routes, together."""
    machine_rate_limit: int = 100
    """Requests a second of each route that agents and control planes call with their token. One of them calls each 10
    seconds."""
    machine_burst_limit: int = 200
    """Requests at once of each route that agents and control planes call."""
    open_rate_limit: int = 20
    """Requests a second of each route that takes no token: health, the contract, bootstrap, join, reports of members
    and of boots, interruptions, and what is unknown. What is refused there costs nothing, and keeps nobody else out."""
    open_burst_limit: int = 40
    """Requests at once of each route that takes no token."""
    concurrency_quota: int = 0
    """How many functions may run at once in the account and region, where parts of it are to be kept for what must go
    on: from 500 on ([how](operations.md#concurrency)). 0: nothing is kept."""
    account_concurrency: int = 0
    """How many functions may run at once in the account and region: at most a fifth of it waits for news (``waits``).
    0: ``cdk deploy`` reads it from the account; where it cannot, it is the ten that a new account has."""
    domain: str = ""
    """The API's name, which everything that is made keeps for ever: user data, launch templates, agents. Without one it
    is the gateway's own, and ends with the stack. Point the name at the output ``DomainTarget``. ``prod`` needs one."""
    certificate_arn: str = ""
    """The domain's certificate in ACM, in the stage's region. Not needed where the name is CloudFront's alone."""
    event_organization: str = ""
    """Organization of AWS whose accounts may put ``stockyard.request`` events on the bus. Whose requests they are says
    ``/v1/event-accounts`` (see [operations](operations.md#requests-by-event))."""
    event_accounts: tuple[str, ...] = ()
    """Single accounts that may put request events on the bus; not together with ``event_organization``."""
    alarm_topic_arn: str = ""
    """SNS topic that alarms notify; empty for no notification."""
    network: Network | None = None
    """``subnet_ids`` and ``security_group_ids`` of a VPC for the functions that call Keycloak, vdeployer or tenants'
    [Vaults](vault.md)."""
    cloudfront: CloudFront | None = None
    """CloudFront with a web ACL of AWS WAF in front of the API; needs ``domain`` and ``region``. Its keys are below.
    None: clients reach API Gateway directly. [How](operations.md#cloudfront-and-aws-waf)"""

    @property
    def concurrency(self) -> int:
        """Number of functions that may run at once, as a setting or the account says; 0 where nobody knows it."""
        return self.concurrency_quota or self.account_concurrency

    @property
    def regional_domain(self) -> str:
        """The domain where API Gateway itself answers to it, else empty."""
        return self.domain if self.cloudfront is None or self.cloudfront.accept_direct else ""

    @property
    def origin_key_hashes(self) -> tuple[str, ...]:
        """The hashes of which functions demand one; none where requests may come from everywhere."""
        return () if self.cloudfront is None or self.cloudfront.accept_direct else self.cloudfront.origin_key_hashes

    @property
    def edge_topic_arn(self) -> str:
        """The topic of the alarms on the distribution. CloudWatch notifies topics of its own region only."""
        if self.cloudfront is None or self.cloudfront.alarm_topic_arn:
            return self.cloudfront.alarm_topic_arn if self.cloudfront else ""
        return self.alarm_topic_arn if self.alarm_topic_arn.split(":")[3:4] == [EDGE_REGION] else ""


def load(stage: str, stages: Any, overrides: Mapping[str, Any] | None = None) -> StageConfig:
    """The configuration of ``stage``. ``overrides`` (from ``-c key=value``) win. Raises ``ConfigError``."""
    if not isinstance(stages, Mapping) or not stages:
        raise ConfigError("stages: cdk.json has no context.stages object")
    if stage not in stages:
        raise ConfigError(f"stage: {stage!r} is not one of {', '.join(sorted(stages))} in context.stages of cdk.json")
    values = stages[stage]
    if not isinstance(values, Mapping):
        raise ConfigError(f"stages.{stage}: must be an object")
    merged = {**values, **(overrides or {})}
    names = {f.name for f in fields(StageConfig)} - {"stage"}
    for key in merged:
        if key not in names:
            raise ConfigError(f"stages.{stage}.{key}: unknown key; known are {', '.join(sorted(names))}")
    if "issuer" not in merged:
        raise ConfigError(f"stages.{stage}.issuer: missing; the URL of the Keycloak realm that issues the tokens")
    checked = {"stage": _STAGE("stage", stage)}
    for key, value in merged.items():
        checked[key] = CHECKS[key](f"stages.{stage}.{key}", value)
    config = StageConfig(**checked)
    check_region(config.region)
    _check_names(config)
    if config.event_organization and config.event_accounts:
        raise ConfigError(f"stages.{stage}.event_accounts: either event_organization or event_accounts")
    if config.allow_private_addresses and config.network is None:
        raise ConfigError(f"stages.{stage}.allow_private_addresses: needs network, which reaches private addresses")
    return config


def check_region(region: str) -> None:
    """``ConfigError`` for a region of GovCloud, China or another partition than AWS's commercial one."""
    if region.startswith(OTHER_PARTITIONS):
        raise ConfigError(
            f"region: {region} is refused: Stockyard runs in AWS's commercial regions alone, since its workflows, the"
            " signatures of machines and the images are of that partition"
        )


def _check_names(config: StageConfig) -> None:
    """The name of the API, its certificates and topics: what a stage needs of them, and what goes together."""
    stage, needed = config.stage, NEEDED.get(config.stage, ())
    unused = () if config.regional_domain == config.domain else ("certificate_arn",)
    lacking = [name for name in needed if name not in unused and not getattr(config, name)]
    if lacking:
        raise ConfigError(f"stages.{stage}.{lacking[0]}: missing; the stage {stage} needs {', '.join(lacking)}")
    if config.cloudfront is not None:
        for name in ("domain", "region"):
            if not getattr(config, name):
                raise ConfigError(f"stages.{stage}.{name}: missing; cloudfront needs it")
        if needed and not config.edge_topic_arn:
            raise ConfigError(
                f"stages.{stage}.cloudfront.alarm_topic_arn: missing; alarm_topic_arn is not in {EDGE_REGION}"
            )
    if not unused and bool(config.domain) != bool(config.certificate_arn):
        raise ConfigError(f"stages.{stage}.domain: domain and certificate_arn go together")


@dataclass(frozen=True, slots=True)
class Check:
    """Reads a value of a setting. ``meaning`` says in words what is allowed.

    Called with the key and the value; raises ``ConfigError``, whose text names the key.
    """

    meaning: str
    read: Callable[[str, Any], Any]

    def __call__(self, key: str, value: Any) -> Any:
        return self.read(key, value)


def _pattern(expression: str, meaning: str) -> Check:
    compiled = re.compile(expression)

    def read(key: str, value: Any) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ConfigError(f"{key}: {value!r} is not {meaning}")
        return value

    return Check(meaning, read)


def _whole(low: int, high: int) -> Check:
    meaning = f"a whole number from {low} to {high}"

    def read(key: str, value: Any) -> int:
        number = int(value) if isinstance(value, str) and value.isdigit() else value
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise ConfigError(f"{key}: {value!r} is not {meaning}")
        return number

    return Check(meaning, read)


def _choice(allowed: tuple[Any, ...]) -> Check:
    by_text = {str(value): value for value in allowed}
    meaning = f"one of {', '.join(by_text)}"

    def read(key: str, value: Any) -> Any:
        if str(value) not in by_text:
            raise ConfigError(f"{key}: {value!r} is not {meaning}")
        return by_text[str(value)]

    return Check(meaning, read)


def _read_truth(key: str, value: Any) -> bool:
    if value in (True, "true"):
        return True
    if value in (False, "false"):
        return False
    raise ConfigError(f"{key}: {value!r} is neither true nor false")


_TRUTH = Check("true or false", _read_truth)


def _read_accounts(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_EVENT_ACCOUNTS:
        raise ConfigError(f"{key}: must be a list of at most {MOST_EVENT_ACCOUNTS} accounts; more need an organization")
    for account in value:
        if not isinstance(account, str) or not re.fullmatch(r"\d{12}", account):
            raise ConfigError(f"{key}: {account!r} is not an AWS account of 12 digits")
    return tuple(sorted(set(value)))


def _read_network(key: str, value: Any) -> Network | None:
    if value is None:
        return None
    patterns = {"subnet_ids": r"subnet-[0-9a-f]+", "security_group_ids": r"sg-[0-9a-f]+"}
    if not isinstance(value, Mapping) or set(value) != set(patterns):
        raise ConfigError(f"{key}: must be an object with exactly subnet_ids and security_group_ids")
    for name, expression in patterns.items():
        ids = value[name]
        if not isinstance(ids, list) or not ids or not all(re.fullmatch(expression, str(item)) for item in ids):
            raise ConfigError(f"{key}.{name}: must be a list of at least one id such as {expression[:-9]}0a1b")
    return Network(tuple(value["subnet_ids"]), tuple(value["security_group_ids"]))


def _read_hashes(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_ORIGIN_KEYS:
        raise ConfigError(f"{key}: must be a list of 1 to {MOST_ORIGIN_KEYS} hashes")
    for each in value:
        if not isinstance(each, str) or not re.fullmatch(r"[0-9a-f]{64}", each):
            raise ConfigError(f"{key}: {each!r} is not a SHA-256 of 64 hexadecimal digits")
    return tuple(value)


def _read_cloudfront(key: str, value: Any) -> CloudFront | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key}: must be an object")
    for name in value:
        if name not in CLOUDFRONT_CHECKS:
            raise ConfigError(f"{key}.{name}: unknown key; known are {', '.join(sorted(CLOUDFRONT_CHECKS))}")
    for name in ("certificate_arn", "origin_key_hashes"):
        if not value.get(name):
            raise ConfigError(f"{key}.{name}: missing")
    return CloudFront(**{name: CLOUDFRONT_CHECKS[name](f"{key}.{name}", each) for name, each in value.items()})


def _arn(service: str, resource: str, meaning: str, region: str = "") -> Check:
    """Check the ARN of something of ``service``; an empty text passes; with ``region`` only an ARN of that region."""
    region_pattern = region or "[a-z0-9-]+"
    where = f" in {region}" if region else ""
    return _pattern(rf"(arn:[a-z-]+:{service}:{region_pattern}:\d{{12}}:{resource})?", meaning + where)


_STAGE = _pattern(r"[a-z][a-z0-9]{0,11}", "1 to 12 lower-case letters and digits that start with a letter")

_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+"
_ADDRESS = r"((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)"
_BASE = r"https://[A-Za-z0-9.:/_-]*[A-Za-z0-9_-]"
CLOUDFRONT_CHECKS: Mapping[str, Check] = {
    "certificate_arn": _arn("acm", r"certificate/\S+", "the ARN of a certificate", EDGE_REGION),
    "origin_key_hashes": Check("a list of SHA-256 hashes", _read_hashes),
    "address_limit": _whole(100, 2_000_000_000),
    "alarm_topic_arn": _arn("sns", r"\S+", "the ARN of an SNS topic", EDGE_REGION),
    "accept_direct": _TRUTH,
}
CHECKS: Mapping[str, Check] = {
    "issuer": _pattern(r"https://[^\s/]+(/\S*[^\s/])?", "an https URL without a slash at its end"),
    "audience": _pattern(r"[A-Za-z0-9._:/-]+", "an audience"),
    "account": _pattern(r"(\d{12})?", "an AWS account of 12 digits"),
    "region": _pattern(r"([a-z]{2}(-[a-z]+)+-\d)?", "an AWS region"),
    # The node role's name is {prefix}-{client_id}-node-role; IAM allows 64, a client_id has up to 46.
    "name_prefix": _pattern(r"[a-z][a-z0-9]{0,6}", "1 to 7 lower-case letters and digits that start with a letter"),
    "kubernetes_version": _choice(kubernetes_versions.NEW),
    "vdeployer_url_template": _pattern(r"(https://(?=\S*\{client_id\})\S+)?", "an https URL that contains {client_id}"),
    "event_organization": _pattern(r"(o-[a-z0-9]{10,32})?", "the id of an organization of AWS"),
    "event_accounts": Check(f"a list of at most {MOST_EVENT_ACCOUNTS} AWS accounts", _read_accounts),
    "tenant_role_pattern": _pattern(r"[\w+=,.@/*?-]+", "a pattern of role names"),
    "allow_own_account": _TRUTH,
    "allow_access_keys": _TRUTH,
    "allow_private_addresses": _TRUTH,
    "log_level": _choice(LOG_LEVELS),
    "log_retention_days": _choice(RETENTION_DAYS),
    "rate_limit": _whole(1, 10000),
    "burst_limit": _whole(1, 5000),
    "machine_rate_limit": _whole(1, 10000),
    "machine_burst_limit": _whole(1, 5000),
    "open_rate_limit": _whole(1, 10000),
    "open_burst_limit": _whole(1, 5000),
    "concurrency_quota": _whole(0, 1_000_000),
    "account_concurrency": _whole(0, 1_000_000),
    "tenant_rate_limit": _whole(0, 10000),
    "tenant_burst_limit": _whole(1, 10000),
    "tenant_waits": _whole(0, 1000),
    "waits": _whole(0, 1000),
    "tenant_questions": _whole(1, 1000),
    "questions": _whole(1, 1000),
    "visibility_seconds": _whole(0, 3600),
    "sweep_grace_seconds": _whole(0, 604800),
    "operator_runner": _pattern(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[1-9]\d{0,5})?", "a tenant and a number"),
    "report_only": _TRUTH,
    "ended_minors": _TRUTH,
    "launch_seconds": _whole(30, 3600),
    "register_seconds": _whole(60, 7200),
    "image_days": _whole(1, 365),
    "force_deletion_seconds": _whole(60, 86400),
    "refusal_seconds": _whole(1, 3600),
    "zone_wait_seconds": _whole(30, 86400),
    "unhealthy_member_seconds": _whole(60, 86400),
    "agent_busy_seconds": _whole(1, 3600),
    "agent_quiet_seconds": _whole(1, 3600),
    "agent_idle_seconds": _whole(1, 3600),
    "site_idle_seconds": _whole(1, 3600),
    "packages_url": _pattern(_BASE, "an https URL without a slash at its end"),
    "archive_url": _pattern(f"({_BASE})?", "an https URL without a slash at its end"),
    "image_mirror": _pattern(r"([a-z0-9.-]+(:\d+)?(/[a-z0-9._/-]*[a-z0-9])?)?", "the host of a registry, with a path"),
    "manifests_url": _pattern(_BASE, "an https URL without a slash at its end"),
    "cudo_url": _pattern(_BASE, "an https URL without a slash at its end"),
    "cudo_dns_suffix": _pattern(f"({_HOST})?", "the name of a domain"),
    "agent_image": _pattern(r"([a-z0-9][a-z0-9._:/-]*(@sha256:[0-9a-f]{64})?)?", "an image"),
    "tofu_url": _pattern(_BASE, "an https URL without a slash at its end"),
    "tofu_digest": _pattern(r"([0-9a-f]{64})?", "a SHA-256 in hexadecimal"),
    "domain": _pattern(f"({_HOST})?", "the name of a host"),
    "certificate_arn": _arn("acm", r"certificate/\S+", "the ARN of a certificate"),
    "alarm_topic_arn": _arn("sns", r"\S+", "the ARN of an SNS topic"),
    "egress_addresses": _pattern(rf"({_ADDRESS}(,{_ADDRESS})*)?", "IPv4 addresses with commas between them"),
    "network": Check("an object with subnet_ids and security_group_ids", _read_network),
    "cloudfront": Check("an object", _read_cloudfront),
}
