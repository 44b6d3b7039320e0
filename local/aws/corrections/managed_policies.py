"""AWS's own policies may be attached to roles. moto has the text of all, and loads none of them or, slowly, each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend

_PREFIX = "arn:aws:iam::aws:policy/"


@cache
def _texts() -> dict[str, Any]:
    texts: dict[str, Any] = json.loads(aws_managed_policies_data)
    return texts


@contextmanager
def attachable_policies() -> Iterator[None]:
    """Inside this context a policy of AWS is there as soon as somebody attaches it."""
    original = IAMBackend.attach_role_policy

    def attach(backend: Any, policy_arn: str, role_name: str) -> None:
        name = policy_arn.removeprefix(_PREFIX).rpartition("/")[2]
        text = _texts().get(name) if policy_arn.startswith(_PREFIX) else None
        if text is not None and policy_arn not in backend.managed_policies:
            policy = AWSManagedPolicy.from_data(name, backend.account_id, backend.region_name, text)
            backend.managed_policies[policy.arn] = policy
        original(backend, policy_arn, role_name)

    with patch.object(IAMBackend, "attach_role_policy", attach):
        yield
