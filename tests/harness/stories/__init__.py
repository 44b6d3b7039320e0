"""Clusters with pods to be told about: for packing, consolidation and pools."""
