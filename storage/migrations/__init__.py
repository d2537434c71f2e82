"""Alembic migrations.

Names say when each runs: `pre_` before new processes start, `post_` after the old ones are gone.
"""
