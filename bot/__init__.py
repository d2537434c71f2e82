"""Everything that touches the world: platforms, models, tools, HTTP, commands, and the loops around them."""
