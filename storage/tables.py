"""The tables and nothing else.

Times are seconds since the epoch by the database's clock; JSON columns hold plain JSON. Nothing here is
particular to one database. Changes go through `storage/migrations`, expand first, contract later.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Seq = BigInteger().with_variant(Integer(), "sqlite")  # SQLite numbers rows only in an INTEGER primary key

conversations = Table(
    "conversations",
    metadata,
    Column("id", String(300), primary_key=True),
    Column("platform", String(40), nullable=False),
    Column("workspace", String(80), nullable=False),
    Column("channel", String(80), nullable=False),
    Column("thread", String(80), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("initiator", String(80)),
    # the fence
    Column("token", BigInteger, nullable=False, server_default="0"),
    Column("lease_owner", String(120)),
    Column("lease_expires", Double, nullable=False, server_default="0"),
    Column("signal_seq", BigInteger, nullable=False, server_default="0"),
    # what it does and waits for
    Column("active_turn", String(40)),
    Column("resume_turn", String(40)),
    Column("resume_since", Double),
    Column("not_before", Double, nullable=False, server_default="0"),
    Column("gathering_since", Double),
    Column("gather_s", Double, nullable=False, server_default="0"),
    # counts that decide
    Column("lost_in_a_row", Integer, nullable=False, server_default="0"),
    Column("discarded_in_a_row", Integer, nullable=False, server_default="0"),
    Column("next_position", Integer, nullable=False, server_default="0"),
    Column("next_call", Integer, nullable=False, server_default="1"),
    Column("history", String(12), nullable=False, server_default="none"),  # none, wanted, read, missing
)
Index(
    "ix_conversations_active",
    conversations.c.active_turn,
    sqlite_where=conversations.c.active_turn.is_not(None),
    postgresql_where=conversations.c.active_turn.is_not(None),
)
Index(
    "ix_conversations_resumable",
    conversations.c.resume_turn,
    sqlite_where=conversations.c.resume_turn.is_not(None),
    postgresql_where=conversations.c.resume_turn.is_not(None),
)

inbox = Table(
    "inbox",
    metadata,
    Column("seq", Seq, primary_key=True, autoincrement=True),
    Column("conversation_id", String(300), ForeignKey("conversations.id"), nullable=False),
    Column("key", String(300), nullable=False),
    Column("origin", String(300), nullable=False),  # the key of the message as first written
    Column("source", String(30), nullable=False),
    Column("author_id", String(80), nullable=False),
    Column("author_name", String(200)),
    Column("author_is_bot", Boolean, nullable=False, default=False),
    Column("role", String(20)),
    Column("marker", String(10), nullable=False),
    Column("addressed", String(10), nullable=False),
    Column("text", Text, nullable=False),
    Column("message_ref", String(80)),
    Column("stops_turn", String(80)),
    Column("inside_thread", Boolean, nullable=False, default=False),
    Column("sent_at", Double, nullable=False),
    Column("received_at", Double, nullable=False),
    Column("decided_at", Double),
    Column("effect", String(10)),
    Column("rule", String(60)),
    Column("fate", String(12), nullable=False),
    Column("turn_id", String(40)),
    Column("receipt", String(40)),
    Column("receipt_shown", String(40)),
    Column("receipt_not_before", Double, nullable=False, server_default="0"),
    Column("receipt_tries", Integer, nullable=False, server_default="0"),
    UniqueConstraint("key"),
)
Index("ix_inbox_conversation", inbox.c.conversation_id, inbox.c.seq)
Index("ix_inbox_origin", inbox.c.origin)
Index(
    "ix_inbox_waiting",
    inbox.c.conversation_id,
    sqlite_where=inbox.c.fate == "waiting",
    postgresql_where=inbox.c.fate == "waiting",
)
Index(
    "ix_inbox_undecided",
    inbox.c.seq,
    sqlite_where=inbox.c.effect.is_(None),
    postgresql_where=inbox.c.effect.is_(None),
)
Index(
    "ix_inbox_receipts",
    inbox.c.seq,
    sqlite_where=inbox.c.receipt.is_distinct_from(inbox.c.receipt_shown),
    postgresql_where=inbox.c.receipt.is_distinct_from(inbox.c.receipt_shown),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("inbox_seq", Seq, ForeignKey("inbox.seq"), primary_key=True, autoincrement=False),
    Column("conversation_id", String(300), ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", String(40)),
    Column("by", String(200), nullable=False),
    Column("at", Double, nullable=False),
)
Index("ix_tombstones_conversation", tombstones.c.conversation_id)

turns = Table(
    "turns",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("conversation_id", String(300), ForeignKey("conversations.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("worker", String(120), nullable=False),
    Column("resumes_turn", String(40)),
    Column("analysis", String(40), nullable=False),  # the first turn since the conversation was last idle
    Column("goal", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("active_at", Double, nullable=False),
    Column("read_up_to", BigInteger, nullable=False),
    Column("seen", BigInteger, nullable=False),
    Column("steps", Integer, nullable=False, server_default="0"),
    Column("activity", String(400), nullable=False, server_default=""),
    Column("stamp", String(20)),
    Column("stamp_by", String(400)),
    Column("stamped_at", Double),
    Column("card_id", String(40)),
    UniqueConstraint("conversation_id", "number"),
)

transcript = Table(
    "transcript",
    metadata,
    Column("conversation_id", String(300), ForeignKey("conversations.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("id", String(40), nullable=False),
    Column("turn_id", String(40), ForeignKey("turns.id"), nullable=False),
    Column("role", String(10), nullable=False),
    Column("blocks", JSON, nullable=False),
    Column("at", Double, nullable=False),
    UniqueConstraint("id"),
)

calls = Table(
    "calls",
    metadata,
    Column("conversation_id", String(300), ForeignKey("conversations.id"), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("number", Integer, nullable=False),  # "c7" in evidence
    Column("turn_id", String(40), ForeignKey("turns.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("tool", String(200), nullable=False),
    Column("tool_class", String(20), nullable=False),
    Column("input", JSON, nullable=False),
    Column("state", String(10), nullable=False),
    Column("closed", Boolean, nullable=False, default=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("limit_s", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("outcome", String(20)),
    Column("result", Text),
    Column("query", Text, nullable=False, server_default=""),
    Column("time_range", Text, nullable=False, server_default=""),
    CheckConstraint("state in ('issued', 'started', 'done')", name="state"),
)
Index("ix_calls_turn", calls.c.turn_id)

requests = Table(
    "requests",
    metadata,
    Column("id", Seq, primary_key=True, autoincrement=True),
    Column("conversation_id", String(300), ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", String(40), ForeignKey("turns.id"), nullable=False),
    Column("at", Double, nullable=False),
    Column("model", String(120), nullable=False),
    Column("purpose", String(40), nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cache_read_tokens", Integer, nullable=False),
    Column("cache_write_tokens", Integer, nullable=False),
    Column("cost_usd", Double),
    Column("exact", Boolean, nullable=False),
)
Index("ix_requests_turn", requests.c.turn_id)

settlements = Table(
    "settlements",
    metadata,
    Column("turn_id", String(40), ForeignKey("turns.id"), primary_key=True),
    Column("conversation_id", String(300), ForeignKey("conversations.id"), nullable=False),
    Column("reason", String(20), nullable=False),
    Column("cause", Text),
    Column("final_event_id", String(40)),
    Column("cut_by", String(400)),
    Column("settled_at", Double, nullable=False),
    Column("card_released_at", Double),
    Column("answer_posted_at", Double),
    Column("worker", String(120), nullable=False),
    CheckConstraint("(reason = 'completed') = (final_event_id is not null)", name="final_event"),
)
Index("ix_settlements_conversation", settlements.c.conversation_id)
Index(
    "ix_settlements_unreleased",
    settlements.c.turn_id,
    sqlite_where=settlements.c.card_released_at.is_(None),
    postgresql_where=settlements.c.card_released_at.is_(None),
)

cards = Table(
    "cards",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("conversation_id", String(300), ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", String(40), ForeignKey("turns.id"), nullable=False),
    Column("message_ref", String(80)),
    Column("posting_since", Double),  # a post whose outcome is not known yet
    Column("wanted", Integer, nullable=False, server_default="1"),
    Column("shown", Integer, nullable=False, server_default="0"),
    Column("shown_digest", String(64)),
    Column("shown_at", Double, nullable=False, server_default="0"),
    Column("urgent", Boolean, nullable=False, default=False),
    Column("not_before", Double, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("posted_anew", Integer, nullable=False, server_default="0"),
    Column("given_up", String(200)),
)
Index("ix_cards_turn", cards.c.turn_id)
Index(
    "ix_cards_due",
    cards.c.id,
    sqlite_where=and_(cards.c.wanted > cards.c.shown, cards.c.given_up.is_(None)),
    postgresql_where=and_(cards.c.wanted > cards.c.shown, cards.c.given_up.is_(None)),
)

outbox = Table(
    "outbox",
    metadata,
    Column("number", Seq, primary_key=True, autoincrement=True),
    Column("id", String(40), nullable=False),
    Column("conversation_id", String(300), ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", String(40)),
    Column("kind", String(20), nullable=False),  # "answer", a note's kind, "private", "chart"
    Column("once", String(300), nullable=False),
    Column("to_user", String(80)),
    Column("text", Text, nullable=False),
    Column("picture", LargeBinary),
    Column("final_event_id", String(40)),
    Column("queued_at", Double, nullable=False),
    Column("parts_done", Integer, nullable=False, server_default="0"),
    Column("posting_since", Double),
    Column("not_before", Double, nullable=False, server_default="0"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("done_at", Double),
    Column("given_up", String(200)),
    UniqueConstraint("id"),
    UniqueConstraint("once"),
)
Index("ix_outbox_conversation", outbox.c.conversation_id)
Index(
    "ix_outbox_open",
    outbox.c.number,
    sqlite_where=outbox.c.done_at.is_(None),
    postgresql_where=outbox.c.done_at.is_(None),
)

claims = Table(  # who may speak to the platform about one thing (a card, a thread, a message), and until when
    "claims",
    metadata,
    Column("thing", String(340), primary_key=True),
    Column("owner", String(120), nullable=False),
    Column("until", Double, nullable=False),
)

schema_floor = Table(  # the oldest schema that a program must know to work with this one
    "schema_floor",
    metadata,
    Column("revision", String(32), primary_key=True),
)
