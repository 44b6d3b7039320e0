"""Errors that a person can correct. The command line prints them without a traceback."""

from __future__ import annotations


class ConfigError(ValueError):
    """The stage configuration cannot be used; the text starts with the key."""


class NagError(Exception):
    """cdk-nag found something that nobody explained; one finding a line."""
