"""The instruments of the tests: crash worlds, recorders, stories. What benchmarks need too is in ``local.testing``."""
