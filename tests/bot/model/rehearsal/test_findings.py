"""Result texts become facts; what does not read as one is left out."""

import pytest

from bot.model.rehearsal.deploys import deploys
from bot.model.rehearsal.findings import alerts, changes, diff, number, patterns
from tests.bot.model.rehearsal.room import recorded


def test_a_series_tells_what_it_was_what_it_is_and_when_it_jumped() -> None:
    checkout = next(
        each for each in changes(recorded("queries")["latency"]) if each.labels["service"] == "checkout"
    )
    assert (checkout.before, checkout.now) == (0.861136, 4.41767)
    assert checkout.at == "2026-11-30T13:47:27Z"
    assert checkout.grew(1.5, 1)
    assert not checkout.grew(6, 1)


def test_a_constant_series_and_one_that_is_only_nan_are_told_apart() -> None:
    text = '{a="1"}: constant 0.5 (9 points, x to y)\n{a="2"}: only NaN'
    assert [(each.labels["a"], each.now) for each in changes(text)] == [("1", 0.5)]


def test_labels_may_hold_brackets_and_escaped_quotes() -> None:
    (found,) = changes('m{path="/a{b}\\"c", x="y"} 3')
    assert found.labels["x"] == "y"
    assert found.now == 3
    assert found.before is None


def test_a_subquery_tells_what_was_before() -> None:
    (found,) = changes(
        '{a="b"} 1 at 2026-11-30T13:00:00Z, 9 at 2026-11-30T13:05:00Z, 8 at 2026-11-30T13:10:00Z'
    )
    assert (found.before, found.now, found.at) == (1, 8, "2026-11-30T13:05:00Z")


@pytest.mark.parametrize(
    "text, value", [("1.5M", 1.5e6), ("-3e-05", -3e-5), ("2G", 2e9), ("inf", float("inf"))]
)
def test_numbers_may_have_units(text: str, value: float) -> None:
    assert number(text) == value


def test_a_log_pattern_keeps_its_count_and_the_fields_of_an_example() -> None:
    found = patterns(recorded("handshakes")["logs__checkout"])
    failed = next(each for each in found if each.level == "error")
    assert failed.count > 3
    assert "certificate has expired" in f"{failed.words} {failed.example.get('error')}"


def test_a_deploy_that_is_told_as_tag_and_as_commit_is_one() -> None:
    found = deploys(recorded("queries")["deploys"])
    assert [(each.name, each.time) for each in found] == [
        ("checkout 2.31.0", "2026-11-30T13:43:57Z"),
        ("stock 3.7.2", "2026-11-30T13:13:57Z"),
    ]


def test_a_deploy_without_a_tag_is_of_the_service_whose_folder_it_touched() -> None:
    (found,) = deploys("2026-11-30T13:43:57Z commit 76bedd40b086 Ana: faster\n    M checkout/orders.py")
    assert (found.service, found.version, found.name) == ("checkout", "", "checkout 76bedd40b086")


def test_how_long_a_service_runs_tells_when_it_was_deployed() -> None:
    (found,) = deploys('at 2026-11-30T14:00:00Z:\n{service="checkout"} 600')
    assert (found.service, found.time) == ("checkout", "2026-11-30T13:50:00Z")


def test_an_alert_tells_since_when_it_fires() -> None:
    (alert,) = alerts(recorded("queries")["alerts"])
    assert (alert.name, alert.state) == ("CheckoutLatencyHigh", "firing")


def test_a_diff_tells_the_subject_and_what_was_added() -> None:
    key = next(key for key in recorded("queries") if key.startswith("deploy__"))
    subject, added = diff(recorded("queries")[key])
    assert "price of every line" in subject
    assert any("pricing.current" in line for line in added)


@pytest.mark.parametrize("text", ["", "no data for x", "stopped after 3.2 s", "{", "{}: ", "at x:\nup 1"])
def test_what_is_no_finding_is_left_out(text: str) -> None:
    assert changes(text) == []
    assert patterns(text) == []
    assert deploys(text) == []
    assert alerts(text) == []
