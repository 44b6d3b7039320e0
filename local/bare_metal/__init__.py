"""Hosts of bare metal of the local cloud: what the operator of Metal3 does to them, without any metal."""

from local.bare_metal.hosts import bare_metal_host, credentials
from local.bare_metal.operator import ROOT, BareMetalOperator, Seconds

__all__ = ["ROOT", "BareMetalOperator", "Seconds", "bare_metal_host", "credentials"]
