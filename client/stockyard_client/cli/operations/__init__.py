"""Commands of operations and of what has happened, and changes that are followed."""
