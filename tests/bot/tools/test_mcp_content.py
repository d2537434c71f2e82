"""Whatever a tool answers becomes text that the model can read, and pictures that people can see."""

import base64

import mcp_types as types

from bot.tools.mcp_content import PNG_SIGNATURE, output

PNG = PNG_SIGNATURE + b"rest"


def test_every_kind_of_content_becomes_text_or_a_picture() -> None:
    coded = base64.b64encode(PNG).decode()
    result = types.CallToolResult(
        content=[
            types.TextContent(text="words"),
            types.ImageContent(data=coded, mime_type="image/png"),
            types.ImageContent(data="not base64!", mime_type="image/gif"),
            types.AudioContent(data="", mime_type="audio/wav"),
            types.ResourceLink(name="runbook", uri="https://wiki/run", description="how to"),
            types.EmbeddedResource(resource=types.TextResourceContents(uri="file:///a", text="inside")),
            types.EmbeddedResource(resource=types.BlobResourceContents(uri="file:///b", blob="AAAA")),
        ]
    )
    said = output("probe__x", result)
    assert said.text == (
        "words\n[a picture for the people in the thread: probe__x]\n"
        "[a picture of type image/gif, which cannot be shown]\n"
        "[a sound of type audio/wav, which cannot be played]\n"
        "[resource runbook: https://wiki/run] how to\n[resource file:///a]\ninside\n"
        "[resource file:///b: about 3 bytes of type unknown]"
    )
    assert [chart.png for chart in said.charts] == [PNG]
    assert not said.is_error


def test_structure_is_told_once() -> None:
    same = types.CallToolResult(content=[types.TextContent(text='{"a":1}')], structured_content={"a": 1})
    assert output("t", same).text == '{"a":1}'
    only = types.CallToolResult(content=[], structured_content={"a": 1})
    assert output("t", only).text == '{"a": 1}'


def test_an_error_stays_one_and_nothing_is_said_to_be_nothing() -> None:
    said = output("t", types.CallToolResult(content=[], is_error=True))
    assert said.is_error
    assert said.text == "(the tool answered with nothing)"
