"""Packing: which nodes a set of pending pods needs, at what price, and where each pod goes.

Pure functions of the standard library: pods, pools, node types and nodes in, a plan out.
"""
