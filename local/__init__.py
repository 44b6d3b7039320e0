"""The local cloud: the whole product on one machine, for development and for tests. Its state is disposable."""
