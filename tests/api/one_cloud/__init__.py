"""Tests on one local cloud: a package, so that its fixture ends with it."""
