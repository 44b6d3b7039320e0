"""Pools of nodes: records, views, limits, budgets of disruption, what the agent says of pods."""
