"""The agent that runs inside each cluster, and the manifest that installs it."""
