"""Borders that no import contract can see: what the tests lean on, and what the repository may name."""

import tomllib

from tests.architecture.sources import OURS, ROOT, imported_modules, project_files, python_files, tree

# In pieces, so that this file does not name them itself.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("deb", "debian", "org"),
        ("proxy", "golang", "org"),
    )
)
LARGEST_TEXT = 5_000_000


def test_the_test_servers_import_nothing_of_ours() -> None:
    """They stand for the world outside; sharing code with the program would hide the program's mistakes."""
    servers = [path for path in python_files("tests") if path.parts[:2] == ("tests", "servers")]
    found = [
        f"{path} imports {name}"
        for path in servers
        if not path.name.startswith(("test_", "conftest"))
        for name in sorted(imported_modules(tree(path)))
        if name.split(".")[0] in OURS
    ]
    assert found == []


def test_nothing_of_the_program_imports_the_tests() -> None:
    found = [
        f"{path} imports {name}"
        for path in python_files(*OURS)
        for name in sorted(imported_modules(tree(path)))
        if name.split(".")[0] == "tests"
    ]
    assert found == []


def test_core_and_storage_are_tested_without_mocks() -> None:
    found = [
        str(path)
        for path in python_files("tests")
        if path.parts[:2] in {("tests", "core"), ("tests", "storage")}
        and any(name.startswith(("unittest.mock", "mock")) for name in imported_modules(tree(path)))
    ]
    assert found == []


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """Where packages come from is a matter of the machine that installs them."""
    found = [
        f"{path.relative_to(ROOT)} names {host}"
        for path in project_files()
        if path.stat().st_size < LARGEST_TEXT
        for text in [path.read_bytes().decode("utf-8", errors="ignore").lower()]
        for host in REGISTRY_HOSTS
        if host in text
    ]
    assert found == []


def test_every_folder_of_bot_has_its_floor_in_the_import_contract() -> None:
    """A folder that no contract names could import whatever it likes."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors = next(
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("floors of bot")
    )
    placed = {name.strip(" ()") for layer in floors for name in layer.split("|")}
    folders = {".".join(path.parts[:2]) for path in python_files("bot") if len(path.parts) > 2}
    assert sorted(folders - placed) == []
