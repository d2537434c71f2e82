"""The files of the project as the architecture tests see them: what git tracks or would track."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("bot", "core", "storage")


@cache
def project_files() -> tuple[Path, ...]:
    """Tracked files and new ones that are not ignored; every file below the root where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not any(part.startswith(".venv") for part in path.parts)]
    return tuple(sorted(path for path in found if path.is_file()))


def python_files(*folders: str, migrations: bool = True) -> list[Path]:
    """Python files below the folders, as paths from the root."""
    paths = [path.relative_to(ROOT) for path in project_files() if path.suffix == ".py"]
    return [
        path
        for path in paths
        if path.parts[0] in folders and (migrations or path.parts[:2] != ("storage", "migrations"))
    ]


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of one file, given from the root."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def imported_modules(module: ast.Module) -> set[str]:
    """Full names of everything that a module imports, wherever the import stands."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names
