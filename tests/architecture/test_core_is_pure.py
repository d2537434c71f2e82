"""The core only decides: nothing in it waits, asks for the time, or needs anything but the standard library.

Which parts of the standard library it may use is in the import contracts in pyproject.toml.
"""

import ast
import sys

from tests.architecture.sources import imported_modules, python_files, tree

CLOCKS = frozenset({"now", "utcnow", "today", "time_ns", "monotonic", "monotonic_ns", "perf_counter"})
WAITING = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def test_nothing_in_the_core_waits() -> None:
    found = [
        f"{path}:{getattr(node, 'lineno', 0)}"
        for path in python_files("core")
        for node in ast.walk(tree(path))
        if isinstance(node, WAITING)
    ]
    assert found == []


def test_nothing_in_the_core_asks_for_the_time() -> None:
    found = [
        f"{path}:{node.lineno} {node.func.attr}()"
        for path in python_files("core")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS
    ]
    assert found == []


def test_the_core_needs_only_the_standard_library() -> None:
    allowed = sys.stdlib_module_names | {"core"}
    found = [
        f"{path} imports {name}"
        for path in python_files("core")
        for name in sorted(imported_modules(tree(path)))
        if name.split(".")[0] not in allowed
    ]
    assert found == []
