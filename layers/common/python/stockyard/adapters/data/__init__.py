"""Data files of the adapters; ``docs/data.md`` says where they come from."""
