"""Stories share one warm interpreter: what loads lazily in production is loaded once here."""

import anthropic  # noqa: F401
