"""Measures of the code itself: imports across packages, and the walk of a request (``python -m tests.measure``)."""
