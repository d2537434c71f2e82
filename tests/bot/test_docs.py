"""The pages under docs/ say what the program does: tables are drawn from it, examples are read by it."""

import re
import tomllib
from pathlib import Path

import pytest

from bot.settings import environment, load
from bot.settings.sections import Configuration
from docs.draw import DRAWINGS, DRAWN, SECTIONS, pages, redrawn

PAGES = {page.name: page.read_text(encoding="utf-8") for page in pages()}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_as_the_program_would_draw_it(page: str) -> None:
    assert redrawn(PAGES[page]) == PAGES[page], "stale; run python -m docs.draw"


def test_every_drawing_stands_in_a_page() -> None:
    assert {found[2] for text in PAGES.values() for found in DRAWN.finditer(text)} == set(DRAWINGS)


def test_every_section_of_the_file_is_documented() -> None:
    heads = {head.strip("[]").split(".")[0] for head, _ in SECTIONS}
    assert heads == set(Configuration.model_fields)


def test_every_variable_that_is_read_is_documented() -> None:
    source = Path(environment.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r'get\("(\w+)"', source)) == {variable.name for variable in environment.VARIABLES}


@pytest.mark.parametrize(
    "example",
    [found for text in PAGES.values() for found in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)],
)
def test_an_example_in_the_pages_is_a_configuration_that_works(tmp_path: Path, example: str) -> None:
    (tmp_path / "watchkeeper.toml").write_text(example, encoding="utf-8")
    assert tomllib.loads(example)
    load({}, tmp_path)
