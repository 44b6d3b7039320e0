"""The instruments of the tests: crash worlds, recorders, stores in memory."""
