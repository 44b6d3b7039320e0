"""Program that carries out one run of OpenTofu. It needs Python's standard library alone, and is started by itself."""
