"""moto's server, with corrections where AWS behaves differently."""
