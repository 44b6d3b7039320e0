"""Machines for the programs of runs, in memory."""
