"""Functions as processes, and the parts that call them."""
