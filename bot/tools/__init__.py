"""Tools behind the `Tools` port: a registry, a runner, and the providers."""
