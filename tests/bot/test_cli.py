"""The real command, as people and scripts meet it: what it prints, and what it says when something fails."""

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bot.terminal import Command, bare_environment, refused

COMMANDS = ["local", "serve", "doctor", "manifest", "migrate", "policy", "policy explain", "settles", "show"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(watchkeeper: Command, command: str) -> None:
    ran = watchkeeper(f"{command} --help")
    assert ran.returncode == 0
    assert "Example:\n" in ran.stdout
    assert f"watchkeeper {command}" in ran.stdout


@pytest.mark.parametrize(
    "line, words",
    [
        ("nothing", "No such command 'nothing'"),
        ("serve --prot 1", "No such option"),
        ("show one two", "unexpected extra argument (two)"),
        ("settles --limit 0", "0 is not in the range"),
        ("policy explain", "Missing option '--source'"),
        ("policy explain --source mention --role boss", "'boss' is not one of"),
        ("manifest --http localhost", "only to https:// addresses"),
    ],
)
def test_wrong_use_is_told_in_two_lines(watchkeeper: Command, line: str, words: str) -> None:
    told = refused(watchkeeper(line))
    assert words in told
    assert "--help" in told


@pytest.mark.parametrize(
    "environ, words",
    [
        ({}, "SLACK_BOT_TOKEN is not set"),
        ({"SLACK_BOT_TOKEN": "hunter2"}, "SLACK_BOT_TOKEN: does not start with xoxb-"),
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "SLACK_APP_TOKEN is not set"),
        ({"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}, "ANTHROPIC_API_KEY is not set"),
        ({"WATCHKEEPER_PORT": "many"}, "WATCHKEEPER_PORT: 'many' is no port"),
        ({"DATABASE_URL": "mysql://hunter2@x/y"}, "DATABASE_URL: has the scheme"),
        ({"WATCHKEEPER_CONFIG": "gone.toml"}, "WATCHKEEPER_CONFIG: there is no file gone.toml"),
    ],
)
def test_a_start_with_an_unusable_setting_ends_with_its_name(
    watchkeeper: Command, environ: dict[str, str], words: str
) -> None:
    told = refused(watchkeeper("serve", **environ))
    assert words in told
    assert "hunter2" not in told


@pytest.mark.parametrize("command", ["serve", "doctor", "migrate", "policy", "settles", "show x"])
def test_every_command_refuses_a_wrong_configuration(
    watchkeeper: Command, tmp_path: Path, command: str
) -> None:
    (tmp_path / "watchkeeper.toml").write_text("[worker]\npol_s = 1\n")
    told = refused(watchkeeper(command))
    assert told == ('watchkeeper: watchkeeper.toml, [worker]: unknown key "pol_s"; did you mean "poll_s"?\n')


# --- policy ---


def test_the_policy_in_force_is_printed_as_an_aligned_table(watchkeeper: Command, tmp_path: Path) -> None:
    (tmp_path / "watchkeeper.toml").write_text(
        '[[policy]]\nrole = "guest"\nchannel = "inc-*"\neffect = "start"\nrunning = false\n'
    )
    lines = watchkeeper("policy").stdout.splitlines()
    assert " ".join(lines[0].split()) == "rule source role marker addressed state channel effect"
    assert " ".join(lines[1].split()) == "configured[1] any guest any any idle inc-* start"
    assert " ".join(lines[-1].split()) == "default any any any any any any deny"
    assert lines[0].index("effect") == lines[1].index("start")


def test_a_configured_rule_that_can_never_decide_is_named(watchkeeper: Command, tmp_path: Path) -> None:
    (tmp_path / "watchkeeper.toml").write_text(
        '[[policy]]\nrole = "guest"\neffect = "deny"\n'
        '[[policy]]\nrole = "guest"\nsource = "mention"\neffect = "start"\n'
    )
    told = watchkeeper("policy").stdout.splitlines()[-1]
    assert told == "configured[2] never decides: configured[1] stands before it"


@pytest.mark.parametrize(
    "options, effect, rule",
    [
        ("--source mention --role member", "start", "people_idle"),
        ("--source mention --role member --running", "steer", "people"),
        ("--source mention --role member --running --marker later", "queue", "later"),
        ("--source thread_reply --role responder --addressed person", "context", "side_talk"),
        ("--source mention --role guest", "start", "configured[1]"),
        ("--source mention --role guest --channel general --running", "deny", "outsiders"),
        ("--source alert --role member", "deny", "default"),
    ],
)
def test_a_decision_is_explained_by_its_rule(
    watchkeeper: Command, tmp_path: Path, options: str, effect: str, rule: str
) -> None:
    (tmp_path / "watchkeeper.toml").write_text(
        '[[policy]]\nsource = "mention"\nrole = "guest"\nrunning = false\n'
        'effect = "start"\nreason = "Come in."\n'
    )
    ran = watchkeeper(f"policy explain {options} --json")
    said = json.loads(ran.stdout)
    assert (said["effect"], said["rule"], set(said)) == (effect, rule, {"effect", "rule", "reason"})
    plainly = watchkeeper(f"policy explain {options}").stdout
    assert plainly == f"{effect}, by the rule {rule}\n{said['reason']}\n"


# --- manifest ---


def test_the_manifest_is_json_for_socket_mode_or_for_http(watchkeeper: Command) -> None:
    made = json.loads(watchkeeper("manifest").stdout)
    assert made["settings"]["socket_mode_enabled"] is True
    assert "app_mentions:read" in made["oauth_config"]["scopes"]["bot"]
    address = "https://w.example.com/slack/events"
    over_http = json.loads(watchkeeper(f"manifest --http {address}").stdout)
    assert over_http["settings"]["event_subscriptions"]["request_url"] == address


# --- records ---


def test_reading_before_there_is_a_database_says_where_it_was_looked_for(
    watchkeeper: Command, tmp_path: Path
) -> None:
    told = refused(watchkeeper("settles"))
    assert str(tmp_path / ".watchkeeper" / "watchkeeper.db") in told
    assert "DATABASE_URL" in told


def test_a_fresh_database_has_no_records(watchkeeper: Command) -> None:
    assert watchkeeper("migrate").returncode == 0
    assert watchkeeper("settles").stdout == "no turn has ended yet\n"
    assert watchkeeper("settles --json").stdout == ""
    assert "there is no conversation nowhere" in refused(watchkeeper("show nowhere"), 1)


def test_migrating_twice_is_harmless(watchkeeper: Command) -> None:
    first, second = watchkeeper("migrate"), watchkeeper("migrate")
    assert first.stdout == second.stdout != ""


def test_a_database_without_our_tables_is_told_apart(watchkeeper: Command, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "other.db").close()
    told = refused(watchkeeper("settles", DATABASE_URL="sqlite:///other.db"))
    assert "watchkeeper migrate" in told


def test_a_file_that_is_no_database_is_told(watchkeeper: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database at all, but long enough to have a header" * 20)
    for command in ("settles", "migrate"):
        assert "not a database" in refused(watchkeeper(command, DATABASE_URL="sqlite:///notes.txt"))


def test_records_can_be_read_while_another_process_writes(watchkeeper: Command, tmp_path: Path) -> None:
    watchkeeper("migrate")
    writer = sqlite3.connect(tmp_path / ".watchkeeper" / "watchkeeper.db", isolation_level=None)
    writer.execute("begin immediate")
    assert watchkeeper("settles").returncode == 0
    writer.close()


@pytest.mark.parametrize(
    "url, words",
    [
        ("sqlite:///no/such/folder/w.db", "there is no folder"),
        ("sqlite:///blocked/w.db", "blocked"),
        ("sqlite:///.", "is a folder"),
    ],
)
def test_a_place_where_no_database_can_be_made_is_told(
    watchkeeper: Command, tmp_path: Path, url: str, words: str
) -> None:
    (tmp_path / "blocked").write_text("a file, not a folder")
    assert words in refused(watchkeeper("migrate", DATABASE_URL=url))


# --- doctor ---


def test_the_doctor_finds_no_fault_where_nothing_is_configured(watchkeeper: Command) -> None:
    ran = watchkeeper("doctor")
    assert ran.returncode == 0, ran.stdout
    settings, database, *others = [line.split()[0] for line in ran.stdout.splitlines()[1:]]
    assert (settings, database, set(others)) == ("ok", "ok", {"off"})


def test_the_doctor_names_each_thing_that_does_not_work_and_its_mend(
    watchkeeper: Command, tmp_path: Path
) -> None:
    (tmp_path / "watchkeeper.toml").write_text(
        '[tools.prometheus]\nurl = "http://127.0.0.1:9"\n'
        '[tools.logs]\nurl = "http://127.0.0.1:9"\n'
        '[tools.http]\nhosts = ["localhost:9"]\n'
        '[tools.runbooks]\nfolder = "none"\n[tools.deploys]\nrepository = "none"\n'
        '[[mcp]]\nname = "gone"\ncommand = ["no-such-program"]\n'
    )
    ran = watchkeeper(
        "doctor",
        SLACK_API_URL="http://127.0.0.1:9/api/",
        SLACK_BOT_TOKEN="xoxb-hunter22",
        SLACK_APP_TOKEN="xapp-hunter22",
        ANTHROPIC_API_KEY="hunter22",
        ANTHROPIC_BASE_URL="http://127.0.0.1:9",
    )
    assert ran.returncode == 1
    settings, database, *others = [line.split()[0] for line in ran.stdout.splitlines()[1:]]
    assert (settings, database, set(others)) == ("ok", "ok", {"FAILED"})
    assert all("; " in line for line in ran.stdout.splitlines() if line.startswith("FAILED"))
    assert "hunter22" not in ran.stdout + ran.stderr


# --- pipes and signals ---


def test_a_reader_that_goes_away_is_no_failure_to_speak_of(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "bot", "policy"],
        cwd=tmp_path,
        env=bare_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=30) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    program = (
        "import bot.commands.policy as p, os, signal, sys\n"
        "p.load = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "from bot.cli import run\n"
        "sys.exit(run(['policy']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=bare_environment(),
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_a_bot_that_has_not_begun_ends_it_quietly(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import bot.commands.serve as s, os, sys\n"
        f"s.load = lambda *_: os.kill(os.getpid(), {int(number)})\n"
        "from bot.cli import run\n"
        "sys.exit(run(['serve']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=bare_environment(),
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
