"""Git's objects, made without Git: the same files and dates give the same commit, which the metrics name."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path


@dataclass
class Objects:
    """Objects by name, as they will lie in `.git/objects`."""

    found: dict[str, bytes] = field(default_factory=dict)

    def add(self, kind: str, content: bytes) -> str:
        """Keep one object; returns its name."""
        whole = f"{kind} {len(content)}\0".encode() + content
        name = sha1(whole, usedforsecurity=False).hexdigest()
        self.found[name] = whole
        return name

    def tree(self, files: Mapping[str, str]) -> str:
        """A tree of files and folders, given as paths and texts."""
        folders: dict[str, dict[str, str]] = {}
        entries: list[tuple[str, str, str]] = []
        for path, text in files.items():
            head, _, rest = path.partition("/")
            if rest:
                folders.setdefault(head, {})[rest] = text
            else:
                entries.append((head, "100644", self.add("blob", text.encode())))
        entries += [(head, "40000", self.tree(inner)) for head, inner in folders.items()]
        entries.sort(key=lambda entry: entry[0] + ("/" if entry[1] == "40000" else ""))
        return self.add(
            "tree",
            b"".join(f"{mode} {head}\0".encode() + bytes.fromhex(name) for head, mode, name in entries),
        )

    def commit(self, tree: str, parent: str | None, *, author: str, dates: tuple[int, int], text: str) -> str:
        """A commit; the dates are those of author and committer, the committer is the deployer."""
        address = author.lower().encode("ascii", "ignore").decode().replace(" ", ".") + "@shop.example"
        lines = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
        lines += [
            f"author {author} <{address}> {dates[0]} +0000",
            f"committer Deployer <deploy@shop.example> {dates[1]} +0000",
        ]
        return self.add("commit", ("\n".join(lines) + "\n\n" + text).encode())

    def write(self, git: Path) -> None:
        """Into a `.git` folder."""
        for name, whole in self.found.items():
            path = git / "objects" / name[:2] / name[2:]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(zlib.compress(whole))
