"""Files and functions stay small, say what they are, and rhyme: core/x.py has tests/core/test_x.py."""

import ast
from pathlib import Path

from tests.architecture.sources import OURS, ROOT, python_files, tree

LONGEST_FUNCTION = 60
LONGEST_FILE = 400


def test_no_function_is_longer_than_sixty_lines() -> None:
    found = [
        f"{path}:{node.lineno} {node.name} has {length} lines"
        for path in python_files(*OURS, migrations=False)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert found == []


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    found = [
        f"{path} has {length} lines"
        for path in python_files(*OURS, migrations=False)
        if (length := len((ROOT / path).read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    ]
    assert found == []


def test_every_module_says_what_it_is() -> None:
    found = [
        str(path)
        for path in python_files(*OURS, "tests")
        if ast.get_docstring(tree(path)) is None and (path.name != "__init__.py" or tree(path).body)
    ]
    assert found == []


def test_every_rule_in_the_core_has_its_tests_under_the_same_name() -> None:
    tests = set(python_files("tests"))
    wanted = {
        path: Path("tests", *path.parts[:-1], f"test_{path.name}")
        for path in python_files("core")
        if path.name != "__init__.py"
    }
    assert [f"{path} needs {test}" for path, test in wanted.items() if test not in tests] == []


def test_every_folder_with_code_is_a_package() -> None:
    """A folder without `__init__.py` would be left out of the installed program."""
    files = set(python_files(*OURS, migrations=False))
    found = sorted({str(path.parent) for path in files if path.parent / "__init__.py" not in files})
    assert found == []
