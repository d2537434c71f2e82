"""Several processes: indexes for what they all look for, claims on what one of them shows, the schema's floor."""

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def _partial(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def upgrade() -> None:
    """Apply this step."""
    op.create_table(
        'claims',
        sa.Column('thing', sa.String(length=340), nullable=False),
        sa.Column('owner', sa.String(length=120), nullable=False),
        sa.Column('until', sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint('thing', name='pk_claims'),
    )
    floor = op.create_table(
        'schema_floor',
        sa.Column('revision', sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint('revision', name='pk_schema_floor'),
    )
    op.bulk_insert(floor, [{'revision': '0001'}])
    postgres = op.get_bind().dialect.name == 'postgresql'
    differs = 'IS DISTINCT FROM' if postgres else 'IS NOT'
    _partial('ix_cards_due', 'cards', ['id'], 'wanted > shown AND given_up IS NULL')
    _partial('ix_conversations_active', 'conversations', ['active_turn'], 'active_turn IS NOT NULL')
    _partial('ix_conversations_resumable', 'conversations', ['resume_turn'], 'resume_turn IS NOT NULL')
    _partial('ix_inbox_receipts', 'inbox', ['seq'], f'receipt {differs} receipt_shown')
    _partial('ix_settlements_unreleased', 'settlements', ['turn_id'], 'card_released_at IS NULL')
    op.create_index('ix_outbox_conversation', 'outbox', ['conversation_id'])
    # Leases are renewed all the time: without an index on them, and with room in the page, in place.
    op.drop_index('ix_conversations_claimable', table_name='conversations')
    if postgres:
        op.execute('ALTER TABLE conversations SET (fillfactor = 70)')


def downgrade() -> None:
    """Undo this step."""
    op.create_index('ix_conversations_claimable', 'conversations', ['lease_expires', 'not_before'])
    op.drop_index('ix_outbox_conversation', table_name='outbox')
    op.drop_index('ix_settlements_unreleased', table_name='settlements')
    op.drop_index('ix_inbox_receipts', table_name='inbox')
    op.drop_index('ix_conversations_resumable', table_name='conversations')
    op.drop_index('ix_conversations_active', table_name='conversations')
    op.drop_index('ix_cards_due', table_name='cards')
    op.drop_table('schema_floor')
    op.drop_table('claims')
