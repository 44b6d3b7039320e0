"""Creates clusters: checks, prices and accepts what a caller asks for."""
