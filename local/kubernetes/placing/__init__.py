"""Placement of pods by the rules of Kubernetes, read from its documentation and its scheduler's behaviour.

The product's own packer is not used here: what both agree on was read twice.
"""
