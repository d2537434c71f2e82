"""${message}"""

from alembic import op
import sqlalchemy as sa
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this step."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Undo this step."""
    ${downgrades if downgrades else "pass"}
