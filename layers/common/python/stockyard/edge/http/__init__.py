"""Parts of HTTP: bodies, content types, entity tags, pages and queries."""
