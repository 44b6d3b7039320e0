"""AWS accounts: ``ports.Cloud`` through the role that a tenant lets us assume, or by an access key of the tenant's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import CredentialsRevoked, InvalidInput, PermissionDenied
from stockyard.ports import Cloud, LedgerThings, Skipped, Tagged, Verification
from stockyard.providers.clouds.aws import regions
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.default_region import DEFAULT_REGION
from stockyard.providers.clouds.aws.kinds.registry import INNER
from stockyard.providers.clouds.aws.policies import template_parts, template_versions, tenant_template
from stockyard.providers.clouds.aws.resources import sweep
from stockyard.providers.clouds.aws.resources.child_names import role_name
from stockyard.providers.clouds.aws.runs import template as run_template
from stockyard.providers.clouds.aws.sessions import (
    OpenSecrets,
    SessionFactory,
    Sessions,
    account_number,
    has_access_key,
    is_root,
    principal_arn,
    principal_id,
    role_arn,
)

VERIFY_SESSION = "stockyard-verify"
SWEEP_SESSION = "stockyard-sweep"
LASTING_KEY = (
    "An access key does not end by itself, and opens the account to whoever has it. Register a role instead, or change"
    " the key regularly."
)
"""What each verification of an account with an access key warns of."""
ROOT_KEY = (
    "The access key is of the AWS account's root user: nothing can limit it, and root can take no role, so tokens of"
    " clusters on EKS would never work. Register a role, or the key of a user with the account's template, and delete"
    " the root user's key."
)
"""Why a verification refuses it."""
ANOTHER_PRINCIPAL = (
    "It is not the role or the user that was verified before: that one was deleted, and another has its name. Clusters"
    " on EKS let the former one in alone. Change or resume each of them once: that admits the new one."
)
"""What a verification warns of, once."""


class AwsCloud(Cloud):
    """Things with our tags in tenants' AWS accounts, and proof that their roles work.

    ``stage`` names what of ours a tenant's account has to know.
    """

    lists_by_ledger = True

    def __init__(
        self, stage: tenant_template.Stage, session_factory: SessionFactory, secrets: OpenSecrets | None = None
    ) -> None:
        self._stage = stage
        self._sessions = Sessions(session_factory, secrets=secrets)

    def verify(self, account: CloudAccount, tenant: str) -> Verification:
        """Whether the role works, and only with the external id (the confused deputy); or whether the access key is
        that of the user who is named.

        Raises retryable ``VendorError`` leaves when AWS cannot be asked.
        """
        return self._verify_key(account, tenant) if has_access_key(account) else self._verify_role(account, tenant)

    def _verify_key(self, account: CloudAccount, tenant: str) -> Verification:
        if is_root(account):
            return Verification(False, ROOT_KEY)
        (region,) = self.regions(account)
        try:
            clients = self._sessions.of(account, VERIFY_SESSION, tenant)
            identity = Calls(clients, region).call("sts", "get_caller_identity")
            arn = str(identity["Arn"])
        except (CredentialsRevoked, PermissionDenied) as error:
            return Verification(False, f"The access key does not work: {error.detail}")
        if arn != principal_arn(account):
            return Verification(False, f"The access key is of {arn}, not of {principal_arn(account)}.")
        known_as = principal_id(identity)
        text = f"The access key is of {arn}. {self._runs(account, tenant)}"
        return Verification(True, text, (LASTING_KEY, *_other_principal(account, known_as)), known_as)

    def _verify_role(self, account: CloudAccount, tenant: str) -> Verification:
        try:
            arn = role_arn(account)
            keys = self._sessions.assume(arn, VERIFY_SESSION, account.external_id)
        except CredentialsRevoked as error:
            return Verification(False, error.detail)
        except PermissionDenied as error:
            # AWS's own text names our account and our functions' roles.
            reason = f" ({error.code})" if error.code else ""
            return Verification(
                False,
                f"The role cannot be assumed with the external id of this account{reason}. Check that it exists and"
                " that the account's current template is deployed.",
            )
        if not keys.get("AccessKeyId"):
            return Verification(False, f"AWS gave no keys for {arn}.")
        if not account_number(account).isdigit():
            return Verification(False, f"{arn} names no AWS account.")
        try:
            self._sessions.assume(arn, VERIFY_SESSION, None)
        except PermissionDenied:
            template = self._template(account, tenant)
            text = f"The role can be assumed, and only with the external id.{_parts(template)}"
            text += f" {self._runs(account, tenant)}"
            shortage = template_versions.shortage(template)
            known_as = principal_id(self._calls(account, tenant).call("sts", "get_caller_identity"))
            warnings = (*([shortage.text] if shortage is not None else []), *_other_principal(account, known_as))
            return Verification(True, text, warnings, known_as)
        return Verification(
            False,
            f"{arn} can be assumed without the external id, so others could use it through us. "
            "Deploy the account's current template again.",
        )

    def _template(self, account: CloudAccount, tenant: str) -> template_versions.Deployed:
        return template_versions.deployed(self._calls(account, tenant), account)

    def _runs(self, account: CloudAccount, tenant: str) -> str:
        """Sentence about programs of node providers in the account's own region."""
        calls = self._calls(account, tenant)
        absent = run_template.missing(calls, account, self._stage.name_prefix)
        return absent or f"Programs of node providers can run in {calls.region}."

    def _calls(self, account: CloudAccount, tenant: str) -> Calls:
        (region,) = self.regions(account)
        return Calls(self._sessions.of(account, VERIFY_SESSION, tenant), region)

    def principal(self, attributes: Mapping[str, Any]) -> str:
        """See ``ports.Cloud.principal``: the role, or the user of the access key."""
        return str(attributes.get("role_arn") or attributes.get("user_arn") or "")

    def check_attributes(self, attributes: Mapping[str, Any]) -> None:
        """See ``ports.Cloud.check_attributes``."""
        region = str(attributes.get("region") or DEFAULT_REGION)
        if region not in regions.every():
            raise InvalidInput.at("/attributes/region", f"AWS has no region {region}")
        if attributes.get("access_key_id") and not self._stage.allow_access_keys:
            text = "this stage takes no access keys: give role_arn, or have its operator set allow_access_keys"
            raise InvalidInput.at("/attributes/access_key_id", text)

    def machine_roles(self, account: CloudAccount, cluster: Cluster) -> tuple[str, Sequence[str]]:
        """See ``ports.Cloud.machine_roles``: the number of the AWS account, and the roles of its instances."""
        prefix = self._stage.name_prefix
        stem = f"{prefix}-{cluster.client_id}"
        # On EKS the readable part of a long client id is cut.
        of_eks = role_name(prefix, cluster.client_id, "node-role")
        return account_number(account), tuple(dict.fromkeys((f"{stem}-node-role", f"{stem}-ctrl-role", of_eks)))

    def regions(self, account: CloudAccount) -> Sequence[str]:
        """See ``ports.Cloud.regions``."""
        return (str(account.attributes.get("region") or DEFAULT_REGION),)

    def template(self, account: CloudAccount, installation: str) -> dict[str, Any]:
        """See ``ports.Cloud.template``: a CloudFormation template."""
        document: dict[str, Any] = json.loads(json.dumps(tenant_template.render(account, installation, self._stage)))
        return document

    def run_template(self, account: CloudAccount) -> dict[str, Any]:
        """See ``ports.clouds.RunsPrograms``: a CloudFormation template."""
        document: dict[str, Any] = json.loads(json.dumps(run_template.render(account, self._stage.name_prefix)))
        return document

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        """See ``ports.Cloud.tagged``."""
        return sweep.tagged(self._sessions.of(account, SWEEP_SESSION, tenant), installation, tenant, regions, skipped)

    @property
    def inner_kinds(self) -> Set[str]:
        """See ``ports.clouds.ListsByLedger.inner_kinds``."""
        return INNER

    def tagged_beside(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],
        ledger: LedgerThings,
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        """See ``ports.clouds.ListsByLedger.tagged_beside``."""
        clients = self._sessions.of(account, SWEEP_SESSION, tenant)
        return sweep.tagged(clients, installation, tenant, regions, skipped, ledger)

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        """See ``ports.Cloud.discard``."""
        if thing.tenant != tenant:
            return False
        return sweep.discard(Calls(self._sessions.of(account, SWEEP_SESSION, tenant), thing.region), thing)


def _other_principal(account: CloudAccount, known_as: str) -> tuple[str, ...]:
    """Warning that the role or the user was deleted and made again since the last verification."""
    return (ANOTHER_PRINCIPAL,) if account.principal_id not in ("", known_as) else ()


def _parts(template: template_versions.Deployed) -> str:
    """Words for the parts of the template that are deployed, where the role tells."""
    if not template.features:
        return ""
    return f" Its template has the parts {', '.join(template_parts.listed(template.features))}."
