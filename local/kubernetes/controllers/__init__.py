"""The controllers of a simulated cluster: what they make of what is stored."""
