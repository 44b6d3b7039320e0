"""The quotas of accounts: moto knows those of VPCs alone, and enforces none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.models import ServiceQuotasBackend
from moto.servicequotas.responses import ServiceQuotasResponse

RAISED = 100_000.0
"""What a quota allows that no plan names: the local cloud's account has had all of them raised."""


@contextmanager
def account_quotas(quotas: Mapping[str, float]) -> Iterator[None]:
    """While it is open, quotas have these values by their codes."""

    def get_service_quota(_backend: Any, service_code: str, quota_code: str) -> dict[str, Any]:
        value = float(quotas.get(quota_code, RAISED))
        return {"ServiceCode": service_code, "QuotaCode": quota_code, "QuotaName": quota_code, "Value": value}

    with patch.object(ServiceQuotasBackend, "get_service_quota", get_service_quota), usual_quotas():
        yield


@contextmanager
def usual_quotas() -> Iterator[None]:
    """While it is open, moto answers what every account has of a quota: it knows those of VPCs."""

    def get_aws_default_service_quota(response: ServiceQuotasResponse) -> str:
        body = json.loads(response.body)
        listed = response.backend.list_aws_default_service_quotas(str(body.get("ServiceCode")))
        quota = next((quota for quota in listed if quota["QuotaCode"] == body.get("QuotaCode")), None)
        if quota is None:
            raise NoSuchResource
        return json.dumps({"Quota": quota})

    name = "get_aws_default_service_quota"
    with patch.object(ServiceQuotasResponse, name, get_aws_default_service_quota, create=True):
        yield
