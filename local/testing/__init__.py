"""Parts that tests and benchmarks share: stores in memory, a served local cloud, checkers of plans."""
