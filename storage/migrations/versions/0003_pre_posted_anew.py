"""How often a card was posted anew because its message was gone or could not be changed."""

import sqlalchemy as sa
from alembic import op

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this step."""
    op.add_column('cards', sa.Column('posted_anew', sa.Integer(), server_default='0', nullable=False))


def downgrade() -> None:
    """Undo this step."""
    op.drop_column('cards', 'posted_anew')
