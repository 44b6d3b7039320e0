"""The periodic search for what nobody works on and what nobody owns."""
