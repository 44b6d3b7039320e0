"""AWS as providers of clusters and of nodes both speak it: sessions, calls, errors, tags, and making by the ledger."""
