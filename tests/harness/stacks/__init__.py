"""Stacks of CloudFormation against the product's own API in one process."""
