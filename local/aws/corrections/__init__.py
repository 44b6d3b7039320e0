"""Corrections of moto where it differs from AWS in a way that matters here. Each correction is a context manager that
patches moto, with a test that fails when moto no longer needs it."""
