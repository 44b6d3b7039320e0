"""The one table, in DynamoDB: ``DynamoStore`` for a tenant, ``DynamoRegistry`` for what spans tenants."""
