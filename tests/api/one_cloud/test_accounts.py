"""A cloud account cannot be deleted while a node provider uses it."""

from __future__ import annotations

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")


def test_an_account_that_a_node_provider_uses_cannot_be_deleted(api):
    headers = {"Authorization": f"Bearer {api.token('landlord', *ROLES)}"}
    attributes = {"role_arn": "arn:aws:iam::222222222222:role/nobody"}
    created = api.send(
        "POST", "/v1/cloud-accounts", headers, {"provider": "aws", "name": "a", "attributes": attributes}
    )
    assert created.status_code == 201, created.text
    account = f"/v1/cloud-accounts/{created.json()['id']}"
    block = {"cloudAccount": created.json()["id"], "instanceTypes": ["t3.medium"]}
    provider = api.send("POST", "/v1/node-providers", headers, {"name": "aws", "kind": "ec2", "spec": block})
    assert provider.status_code == 201, provider.text
    refused = api.send("DELETE", account, headers)
    assert (refused.status_code, refused.json()["error_type"]) == (409, "InUse")
    assert "node provider aws" in refused.json()["detail"]
    assert api.send("DELETE", "/v1/node-providers/aws", headers).status_code < 300
    assert api.send("DELETE", account, headers).status_code < 300
