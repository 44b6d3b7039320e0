"""What a tenant pays, and the budgets of its months."""
