"""Everything that touches the world: platforms, models, tools, HTTP, the command line, and the loops that drive them."""
