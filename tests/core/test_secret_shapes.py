"""Each shape is recognised where it stands in ordinary text, and what merely looks long is left alone."""

import time

import pytest

from core.redaction import Redactor
from core.secret_shapes import MARKS, SHAPES

REDACTOR = Redactor([])

# In pieces, so that nothing that looks for leaked secrets finds any in this file.
FOUND = [
    ("id AKIA" + "IOSFODNN7EXAMPLE,", "id [redacted:aws_key],"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = [redacted:aws_secret]",
    ),
    ("(ghp" + "_0123456789abcdefghijABCDEFGHIJ012345)", "([redacted:github_token])"),
    ("github" + "_pat_11ABCDEFG0123456789_abcdefghij", "[redacted:github_token]"),
    ("glpat" + "-abcdefghij0123456789", "[redacted:gitlab_token]"),
    ("xoxb" + "-123456789012-210987654321-AbCdEfGh", "[redacted:slack_token]"),
    ("xapp" + "-1-A012345-6789-abcdef", "[redacted:slack_token]"),
    (
        "https://hooks.slack.com/services/T000/B000/" + "XXXXXXXXXXXXXXXX",
        "https://hooks.slack.com/services/[redacted:slack_token]",
    ),
    ("sk" + "-ant-api03-abcdefghijklmnop", "[redacted:anthropic_key]"),
    ("sk" + "-proj-abcdefghij0123456789", "[redacted:openai_key]"),
    ("AIza" + "SyA0123456789abcdefghijklmnopqrstuv", "[redacted:google_key]"),
    ("sk" + "_live_0123456789abcdef", "[redacted:stripe_key]"),
    ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[redacted:jwt]"),
    ("password=hunter2&user=ana", "password=[redacted:password]&user=ana"),
    ('{"dbPassword": "a b\\"c", "x": 1}', '{"dbPassword": "[redacted:password]", "x": 1}'),
    ('{\\"api_key\\":\\"hunter\\"}', '{\\"api_key\\":\\"[redacted:secret]\\"}'),
    ("Server=db;User Id=sa;Pwd=s3cr3t;", "Server=db;User Id=sa;Pwd=[redacted:password];"),
    ("AccountKey=abcdef0123456789==;Endpoint", "AccountKey=[redacted:secret];Endpoint"),
    ("token: abcdef123456", "token: [redacted:secret]"),
    ("SLACK_BOT_TOKEN=whatever-it-is", "SLACK_BOT_TOKEN=[redacted:secret]"),
    ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted:authorization]"),
    ("-H 'authorization: basic dXNlcjpwYXNz'", "-H 'authorization: basic [redacted:authorization]'"),
    ("sent bearer abcdef0123456789xyz to", "sent bearer [redacted:bearer] to"),
    ("postgresql://app:p@ss@db:5432/x", "postgresql://app:[redacted:url_password]@db:5432/x"),
    ("redis://:hunter2@cache:6379", "redis://:[redacted:url_password]@cache:6379"),
]

LEFT_ALONE = [
    "2026-01-31T14:05:00Z INFO checkout status=200 took=12ms user=ana path=/api/v1/orders?page=2",
    "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7",
    "commit 2c26b46b68ffc68ff99b453c1d30413413422d70 by Ana",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "request 9f8e7d6c-1234-4bcd-8ef0-123456789abc done",
    "SyntaxError: Unexpected token: identifier",
    "max_tokens: 4096, tokens used: 812",
    "the password was reset; passwords expire after 90 days",
    "secret rotation is due",
    "pod checkout-7f9c6d5b8-x2k2p restarted on ip-10-0-12-7.eu-west-1.compute.internal:9090",
    "http://prometheus:9090/graph?g0.expr=up and ssh://git@github.com/acme/shop.git",
    "task-force-one-two-three-four and disk-usage-of-the-whole-machine",
    "java.lang.NullPointerException at com.acme.Auth.bearer(Auth.java:42)",
    "aGVsbG8gd29ybGQgdGhpcyBpcyBhIHRlc3Q=",
]


@pytest.mark.parametrize("text,shown", FOUND)
def test_a_secret_is_replaced_and_what_stands_around_it_stays(text: str, shown: str) -> None:
    assert REDACTOR.redact(text) == shown
    assert REDACTOR.redact(f"before {text}\nafter") == f"before {shown}\nafter"
    assert REDACTOR.redact(shown) == shown


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert REDACTOR.redact(text) == text


def test_every_shape_has_an_example_here() -> None:
    shown = " ".join(shown for _, shown in FOUND)
    missing = {shape.kind for shape in SHAPES if f"[redacted:{shape.kind}]" not in shown}
    assert missing == {"service_token"}
    assert REDACTOR.redact("npm" + "_" + "a1B2" * 9) in MARKS


HOSTILE = [
    "eyJ",
    "eyJaaaaaaaa.",
    'password="',
    'password="\\"',
    "pwd='\\'",
    "://a:",
    "://",
    "sk-",
    "sk-a",
    "a",
    "token:\t",
    "authorization:\t",
    "key=",
    "bearer\t",
    "secret=",
    "xoxb-",
    "xoxb.xoxb.",
    "glpat-",
    "aws_secret_access_key=",
    "hooks.slack.com/services/",
    "\\",
    "SG.a.",
    "pwd\\\\",
    "-----BEGIN",
]
HOSTILE += ["-----BEGIN PRIVATE KEY-----", "authorization: bearer", "token: ", "token: a "]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text_and_not_with_its_square(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        REDACTOR.redact(text)
        return time.process_time() - began

    small = min(seconds(10_000) for _ in range(3))
    large = min(seconds(40_000) for _ in range(2))
    assert large < 0.02 + 10 * small  # four times the text; its square would be sixteen times the time
