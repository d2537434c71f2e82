"""The policy table, row by row as the contract draws it, and the laws of any table."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.arrivals import Addressed, AuthorRole, Marker, Source
from core.policy import (
    BUILT_IN,
    Effect,
    Policy,
    Rule,
    Situation,
    Verdict,
    contradiction,
    decide,
    policy,
    situations,
    unreachable,
)

TABLE = policy()
TALK = "mention, thread_reply"
PEOPLE = "initiator, responder, member"
OWN = "subagent_report, subagent_question, answer, job, notice"


def made(
    effect: Effect, *, running: bool | None = None, channels: tuple[str, ...] = (), **parts: str
) -> Rule:
    """A configured rule; parts are words with commas between them."""

    def words(key: str) -> list[str]:
        return [word for word in parts.get(key, "").split(", ") if word]

    return Rule(
        name="configured",
        sources=frozenset(map(Source, words("source"))),
        roles=frozenset(map(AuthorRole, words("role"))),
        markers=frozenset(map(Marker, words("marker"))),
        addressed=frozenset(map(Addressed, words("addressed"))),
        running=running,
        effect=effect,
        reason="Because we say so.",
        channels=channels,
    )


@pytest.mark.parametrize(
    "sources, roles, marker, addressed, running, idle",
    [
        ("mention, thread_reply, stop_request", "guest, external, deactivated", "", "", "deny", "deny"),
        (TALK, "bot", "", "", "deny", "deny"),
        ("thread_reply", f"{PEOPLE}, system", "", "person", "context", "context"),
        (TALK, PEOPLE, "later", "bot, nobody", "queue", "start"),
        (TALK, PEOPLE, "now, none", "bot, nobody", "steer", "start"),
        ("mention", PEOPLE, "now, none", "person", "steer", "start"),
        ("stop_request", PEOPLE, "", "", "stop", "deny"),
        ("alert, schedule", "system, bot", "", "", "queue", "start"),
        (OWN, "system", "", "", "queue", "start"),
    ],
)
def test_the_table_is_the_contracts(  # noqa: PLR0917 - the columns of the contract
    sources: str, roles: str, marker: str, addressed: str, running: str, idle: str
) -> None:
    markers = marker.split(", ") if marker else list(Marker)
    whom = addressed.split(", ") if addressed else list(Addressed)
    for source, role, m, a in product(sources.split(", "), roles.split(", "), markers, whom):
        parts = (Source(source), AuthorRole(role), Marker(m), Addressed(a))
        assert decide(TABLE, Situation(*parts, running=True)).effect == running, parts
        assert decide(TABLE, Situation(*parts, running=False)).effect == idle, parts


def test_every_situation_has_a_verdict_with_a_rule_and_a_sentence() -> None:
    for situation in situations():
        verdict = decide(TABLE, situation)
        assert verdict.rule in {rule.name for rule in BUILT_IN} | {"default"}
        assert verdict.reason.endswith(".")


def test_the_situations_are_all_there_are() -> None:
    assert len(set(situations())) == len(Source) * len(AuthorRole) * len(Marker) * len(Addressed) * 2


def test_what_no_rule_speaks_about_is_denied() -> None:
    verdict = decide(TABLE, Situation(Source.ALERT, AuthorRole.MEMBER))
    assert (verdict.effect, verdict.rule) == (Effect.DENY, "default")


def test_bots_are_refused_silently_and_outsiders_are_told() -> None:
    assert decide(TABLE, Situation(Source.MENTION, AuthorRole.BOT)).silent
    assert not decide(TABLE, Situation(Source.MENTION, AuthorRole.GUEST)).silent


def test_a_stop_of_work_that_has_ended_says_so() -> None:
    verdict = decide(TABLE, Situation(Source.STOP_REQUEST, AuthorRole.MEMBER))
    assert verdict.rule == "stop_ended"
    assert "already ended" in verdict.reason


@pytest.mark.parametrize("effect", [Effect.STEER, Effect.START, Effect.STOP])
def test_no_built_in_rule_asks_for_what_cannot_be(effect: Effect) -> None:
    assert [contradiction(rule) for rule in BUILT_IN if rule.effect is effect] == [None] * len(
        [rule for rule in BUILT_IN if rule.effect is effect]
    )


def test_rule_names_are_unique() -> None:
    assert len({rule.name for rule in BUILT_IN}) == len(BUILT_IN)


@pytest.mark.parametrize(
    "rule",
    [
        made(Effect.STEER, running=False),
        made(Effect.STOP, running=False),
        made(Effect.START, running=True),
    ],
)
def test_a_rule_that_can_never_be_honoured_is_refused_by_its_place(rule: Rule) -> None:
    with pytest.raises(ValueError, match=r"configured\[2\]: effect "):
        policy([made(Effect.DENY, role="guest"), rule])


def test_configured_rules_are_named_by_their_place() -> None:
    table = policy([made(Effect.DENY, role="guest"), made(Effect.START, role="guest", source="mention")])
    assert [rule.name for rule in table.rules[:2]] == ["configured[1]", "configured[2]"]


@pytest.mark.parametrize(
    "pattern, channel, holds",
    [
        ("inc-*", "inc-42", True),
        ("inc-*", "general", False),
        ("inc-*", "", False),
        ("inc-?", "inc-42", False),
        ("[ab]-team", "b-team", True),
        ("C01", "C01", True),
        ("c01", "C01", False),
    ],
)
def test_a_channel_pattern_holds_only_where_it_fits(pattern: str, channel: str, holds: bool) -> None:
    table = policy([made(Effect.CONTEXT, channels=("nowhere", pattern))])
    verdict = decide(table, Situation(Source.MENTION, AuthorRole.MEMBER, channel=channel))
    assert (verdict.rule == "configured[1]") is holds


# --- unreachable rules ---


def shadows(*rules: Rule) -> list[tuple[str, str]]:
    return [
        (rule.name, by.name) for rule, by in unreachable(policy(rules)) if rule.name.startswith("configured")
    ]


def test_every_built_in_rule_can_decide() -> None:
    assert unreachable(TABLE) == []


def test_a_rule_behind_a_wider_one_can_never_decide() -> None:
    assert shadows(
        made(Effect.DENY, role="member"), made(Effect.START, role="member", source="mention", running=False)
    ) == [("configured[2]", "configured[1]")]


def test_a_rule_behind_two_that_share_its_situations_can_never_decide() -> None:
    assert shadows(
        made(Effect.DENY, role="guest", running=True),
        made(Effect.CONTEXT, role="guest", running=False),
        made(Effect.QUEUE, role="guest"),
    ) == [("configured[3]", "configured[1]")]


@pytest.mark.parametrize(
    "first, second, shadowed",
    [
        ((), ("inc-*",), True),
        (("inc-*",), (), False),
        (("inc-*",), ("inc-*",), True),
        (("inc-*",), ("inc-a*",), True),
        (("inc-*",), ("inc-42",), True),
        (("inc-a*",), ("inc-*",), False),
        (("inc-?",), ("inc-*",), False),
        (("*b]",), ("[ab]",), False),
        (("inc-*",), ("inc-1", "ops"), False),
        (("inc-*", "ops"), ("inc-1", "ops"), True),
    ],
)
def test_a_pattern_shadows_only_the_same_or_a_narrower_one(
    first: tuple[str, ...], second: tuple[str, ...], shadowed: bool
) -> None:
    found = shadows(
        made(Effect.DENY, role="guest", channels=first), made(Effect.CONTEXT, role="guest", channels=second)
    )
    assert bool(found) is shadowed


def test_a_configured_rule_may_take_a_built_in_ones_place() -> None:
    found = unreachable(policy([made(Effect.CONTEXT, role="guest, external, deactivated")]))
    assert [(rule.name, by.name) for rule, by in found] == [("outsiders", "configured[1]")]


# --- laws ---

some = st.sampled_from
rules = st.builds(
    Rule,
    name=st.just("configured"),
    sources=st.frozensets(some(Source), max_size=3),
    roles=st.frozensets(some(AuthorRole), max_size=3),
    markers=st.frozensets(some(Marker), max_size=2),
    addressed=st.frozensets(some(Addressed), max_size=2),
    running=some([None, True, False]),
    effect=some(Effect),
    reason=st.just("Because we say so."),
    silent=st.booleans(),
    channels=some([(), ("inc-*",), ("inc-*", "ops"), ("*",)]),
).filter(lambda rule: contradiction(rule) is None)
anywhere = st.builds(
    Situation,
    source=some(Source),
    role=some(AuthorRole),
    marker=some(Marker),
    addressed=some(Addressed),
    running=st.booleans(),
    channel=some(["", "inc-1", "ops", "general"]),
)


@given(rule=rules, situation=anywhere)
def test_a_configured_rule_wins_wherever_it_matches(rule: Rule, situation: Situation) -> None:
    verdict = decide(policy([rule]), situation)
    if rule.matches(situation):
        assert verdict == Verdict(rule.effect, "configured[1]", rule.reason, rule.silent)
    else:
        assert verdict == decide(TABLE, situation)


@given(configured=st.lists(rules, max_size=4), extra=rules, situation=anywhere)
def test_a_further_rule_changes_nothing_that_it_does_not_match(
    configured: list[Rule], extra: Rule, situation: Situation
) -> None:
    before = decide(policy(configured), situation)
    after = decide(policy([*configured, extra]), situation)
    if not extra.matches(situation):
        assert after == before


@given(configured=st.lists(rules, max_size=3), situation=anywhere)
def test_a_rule_named_unreachable_never_decides(configured: list[Rule], situation: Situation) -> None:
    table = policy(configured)
    assert decide(table, situation).rule not in {rule.name for rule, _ in unreachable(table)}


@given(situation=anywhere)
def test_an_empty_table_denies_everything(situation: Situation) -> None:
    assert decide(Policy(()), situation).effect is Effect.DENY
