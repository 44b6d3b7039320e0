"""Changes clusters that exist: compares, plans, approves, queues and begins a change."""
