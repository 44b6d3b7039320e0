"""Accounts and regions of another partition are refused with one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.errors import InvalidInput
from stockyard.providers.clouds.aws.attributes import AttributesPatch, AwsAttributes
from stockyard.providers.clouds.aws.fields import ONLY_COMMERCIAL

ROLE = "arn:aws:iam::111111111111:role/stockyard"


@pytest.mark.parametrize(
    "values",
    [
        {"role_arn": "arn:aws-us-gov:iam::111111111111:role/stockyard"},
        {"role_arn": "arn:aws-cn:iam::111111111111:role/stockyard"},
        {"role_arn": ROLE, "region": "us-gov-west-1"},
        {"role_arn": ROLE, "region": "cn-north-1"},
    ],
)
def test_accounts_and_regions_of_another_partition_are_refused_at_registration(values: dict[str, Any]) -> None:
    for model in (AwsAttributes, AttributesPatch):
        with pytest.raises(InvalidInput) as caught:
            read(model, values)
        (fault,) = caught.value.errors
        assert (fault.pointer.removeprefix("/"), fault.detail) == (list(values)[-1], ONLY_COMMERCIAL)


def test_commercial_accounts_and_regions_are_taken() -> None:
    for region in ("eu-central-2", "ap-southeast-5", "il-central-1", "mx-central-1"):
        assert read(AwsAttributes, {"role_arn": ROLE, "region": region}).region == region
