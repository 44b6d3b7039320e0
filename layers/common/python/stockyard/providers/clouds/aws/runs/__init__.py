"""Runs of providers' programs in a tenant's account: each is a build of a project of CodeBuild there."""
