"""The levels on which cases of bug reports are played, a module each."""
