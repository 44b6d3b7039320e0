"""The kinds of resources in AWS: how each is found, made and removed."""
