"""The accounts and the region of the local AWS."""

OWN_ACCOUNT, ACME_ACCOUNT, GLOBEX_ACCOUNT = "111111111111", "222222222222", "333333333333"
REGION = "us-east-1"
