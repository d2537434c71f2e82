"""Transcripts as a conversation commits them: words of people, steps with calls, results, steers."""

from hypothesis import strategies as st

from core.generation import ModelRequest
from core.history import Call, Json, Message, Opaque, Result, Text, assistant, user
from core.tools import ToolSpec

TOOLS = (
    ToolSpec("metrics", "Query metrics.", {"type": "object", "properties": {"query": {"type": "string"}}}),
    ToolSpec("logs", "Search logs.", {"properties": {"app": {"type": "string"}}}),
    ToolSpec("probe__" + "x" * 80, "", {}),
    ToolSpec("k8s.pods", "List pods.", {"type": "object"}),
)

WORDS = st.sampled_from(
    ["", " \n", "why is checkout slow?", "the 14:05 deploy", "a\ud83d", "\0", "🔥 prod"]
) | st.text(st.characters(codec=None), max_size=20)
NAMES = st.sampled_from(["logs", "metrics", "k8s.pods", "functions.Bash:0", "", "x" * 90])
SCALARS: st.SearchStrategy[Json] = st.none() | st.booleans() | st.integers() | WORDS
INPUTS = st.dictionaries(WORDS, SCALARS | st.lists(SCALARS, max_size=2), max_size=3)
SIDE_BLOCKS = st.one_of(
    st.builds(Text, WORDS),
    st.just(Opaque("openai", {"type": "reasoning", "id": "rs_1"})),
    st.just(Opaque("anthropic", {"type": "citations", "citations": []})),
)
THOUGHTS = st.just(
    Opaque("anthropic", {"type": "thinking", "thinking": "hm", "signature": "sig", "at": "response only"})
)


@st.composite
def steps(draw: st.DrawFn, thinks: bool) -> list[Message]:
    """An assistant message with calls and what answers it, perhaps with a steer behind the results."""
    count = draw(st.integers(1, 3))
    number = draw(st.integers(0, 10**9))
    calls = [Call(f"toolu_{number}_{n}", draw(NAMES), draw(INPUTS)) for n in range(count)]
    before = draw(st.lists(SIDE_BLOCKS, max_size=2))
    after = draw(st.lists(SIDE_BLOCKS, max_size=1))
    thoughts = [draw(THOUGHTS)] if thinks else []
    results = [Result(call.id, draw(WORDS), draw(st.booleans())) for call in draw(st.permutations(calls))]
    steer = draw(st.lists(st.builds(Text, WORDS), max_size=2))
    return [assistant(*thoughts, *before, *calls, *after), user(*results, *steer)]


@st.composite
def transcripts(draw: st.DrawFn) -> list[Message]:
    """A valid transcript; several of its messages may be of one role in a row."""
    messages: list[Message] = []
    ids: set[str] = set()
    thinks = draw(st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        messages.append(user(*draw(st.lists(st.builds(Text, WORDS), min_size=1, max_size=2))))
        for _ in range(draw(st.integers(0, 3))):
            step = draw(steps(thinks))
            new = {call.id for call in step[0].calls}
            if not new & ids:
                ids |= new
                messages.extend(step)
        if draw(st.booleans()):
            messages.append(assistant(*draw(st.lists(SIDE_BLOCKS, max_size=2))))
    return messages


def request(*messages: Message, purpose: str = "step", tools: tuple[ToolSpec, ...] = TOOLS) -> ModelRequest:
    """A request with these messages."""
    return ModelRequest("You are Watchkeeper.", tools, messages, purpose)


ASK = user(Text("why is checkout slow?"))
