"""A cloud account stays as long as anything needs it."""

from __future__ import annotations

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")


def test_an_account_that_a_node_provider_names_is_kept(api):
    headers = {"Authorization": f"Bearer {api.token('landlord', *ROLES)}"}
    attributes = {"role_arn": "arn:aws:iam::222222222222:role/nobody"}
    made = api.send("POST", "/v1/cloud-accounts", headers, {"provider": "aws", "name": "a", "attributes": attributes})
    assert made.status_code == 201, made.text
    account = f"/v1/cloud-accounts/{made.json()['id']}"
    block = {"cloudAccount": made.json()["id"], "instanceTypes": ["t3.medium"]}
    provider = api.send("POST", "/v1/node-providers", headers, {"name": "aws", "kind": "ec2", "spec": block})
    assert provider.status_code == 201, provider.text
    refused = api.send("DELETE", account, headers)
    assert (refused.status_code, refused.json()["error_type"]) == (409, "InUse")
    assert "node provider aws" in refused.json()["detail"]
    assert api.send("DELETE", "/v1/node-providers/aws", headers).status_code < 300
    assert api.send("DELETE", account, headers).status_code < 300
