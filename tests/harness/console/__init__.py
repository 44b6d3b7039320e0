"""The console in tests: a person at it, an API of examples behind it, rules of accessibility."""
