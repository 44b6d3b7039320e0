"""The parts the service stack is put together from."""
