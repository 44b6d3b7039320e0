"""Sessions of callers: the role of a session, and what its policies let it do."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moto.iam.models import get_account_id_from, iam_backends
from moto.sts.models import sts_backends

from local.aws.conditions import many
from local.aws.permissions.policies import Ask, Statement, allowed_by, denied_by

SESSION_KEYS = "ASIA"
"""The prefix of a session's access keys."""
_MOST_SESSIONS = 4096


class Document:
    """One policy, or several that allow and deny together, with their statements by action."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = tuple(statements)
        self._by_action: dict[str, list[Statement]] = defaultdict(list)
        self._wild: list[Statement] = []
        for statement in statements:
            actions = [str(action).lower() for action in many(statement.get("Action"))]
            if "NotAction" in statement or any("*" in action or "?" in action for action in actions):
                self._wild.append(statement)
                continue
            for action in actions:
                self._by_action[action].append(statement)

    def allows(self, ask: Ask) -> bool:
        """Whether it allows the check, and does not deny it."""
        return bool(allowed_by(self._of(ask), ask))

    def names(self, action: str) -> bool:
        """Whether a statement may be about the action."""
        return bool(self._wild) or action.lower() in self._by_action

    def denies(self, ask: Ask) -> bool:
        """Whether it denies the check."""
        return denied_by(self._of(ask), ask)

    def _of(self, ask: Ask) -> list[Statement]:
        return [*self._by_action.get(ask.action.lower(), ()), *self._wild]


@dataclass(frozen=True)
class Session:
    """A session of a role. ``arn`` is that of the session, ``role`` that of its role."""

    account: str
    arn: str
    role: str
    policy: str = ""
    """What the session was narrowed to; empty: it was not."""
    is_of_service: bool = False
    """Whether a service has taken the role, as for a machine or a pod: no person nor another account may."""

    def refuses(self, ask: Ask) -> str:
        """Reason why the role's policies do not allow the check, as AWS says it; empty where they do."""
        role = next((role for role in list(self._iam.roles.values()) if role.arn == self.role), None)
        if role is None:
            return f"because no identity-based policy allows the {ask.action} action"
        attached = [_text(policy) for policy in list(role.managed_policies.values())]
        own = _document((*attached, *role.policies.values()))
        limits = [("a session policy", self.policy)] if self.policy else []
        boundary = self._iam.managed_policies.get(role.permissions_boundary_arn or "")
        if boundary is not None:
            limits.append(("a permissions boundary", _text(boundary)))
        if own.denies(ask) or any(_document((text,)).denies(ask) for _, text in limits):
            return "with an explicit deny in an identity-based policy"
        if not own.allows(ask):
            return f"because no identity-based policy allows the {ask.action} action"
        for name, text in limits:
            if not _document((text,)).allows(ask):
                return f"because no {name.removeprefix('a ')} allows the {ask.action} action"
        return ""

    @property
    def _iam(self) -> Any:
        return iam_backends[self.account]["aws"]


class Sessions:
    """Finds the session of an access key."""

    def __init__(self) -> None:
        self._known: dict[str, Session | None] = {}

    def of(self, access_key: str) -> Session | None:
        """The session of a role; None for keys of users."""
        if not access_key.startswith(SESSION_KEYS):
            return None
        if access_key not in self._known:
            if len(self._known) >= _MOST_SESSIONS:
                self._known.clear()
            self._known[access_key] = _session(access_key)
        return self._known[access_key]


def _session(access_key: str) -> Session | None:
    account = get_account_id_from(access_key)
    session = sts_backends[account]["aws"].get_assumed_role_from_access_key(access_key)
    if session is None:
        return None
    roles = list(iam_backends[account]["aws"].roles.values())
    role = next((role for role in roles if role.arn == session.role_arn), None)
    if role is None:
        return None
    is_of_service = not _is_of_people(json.loads(role.assume_role_policy_document))
    return Session(account, str(session.arn), str(session.role_arn), str(session.policy or ""), is_of_service)


def _is_of_people(trust: Mapping[str, Any]) -> bool:
    principals = [statement.get("Principal") for statement in many(trust.get("Statement"))]
    return any(principal == "*" or "AWS" in (principal or {}) for principal in principals)


def _text(policy: Any) -> str:
    """The document of a managed policy, in its default version."""
    return next(str(version.document) for version in policy.versions if version.version_id == policy.default_version_id)


@lru_cache(64)
def _document(texts: tuple[str, ...]) -> Document:
    return Document([statement for text in texts for statement in many(json.loads(text)["Statement"])])
