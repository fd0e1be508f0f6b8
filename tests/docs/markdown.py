"""What tests read of a Markdown file: fenced blocks, links, and the anchors of headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<mark>`{3,}|~{3,})(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=mark)\s*$", re.M | re.S
)
LINK = re.compile(r"(?<!\\)\[[^\]\n]*\]\(<?([^)>\s]+)>?(?: \"[^\"]*\")?\)|^\[[^\]]+\]: (\S+)", re.M)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)
GENERATED = ("site", "_build", "generated", ".ipynb_checkpoints")


def pages() -> list[Path]:
    """Every Markdown file that readers see."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(p for p in found if not set(GENERATED) & set(p.relative_to(ROOT).parts))


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block and the line it begins at."""

    language: str
    body: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("body"))
        yield Block(found["language"].strip(), found["body"], line)


def prose(text: str) -> str:
    """The text without code, of blocks and of lines."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", FENCE.sub("", text))


def links(text: str) -> list[str]:
    """Where links and pictures lead, other than to the web."""
    found = [a or b for a, b in LINK.findall(prose(text))]
    return [to for to in found if not re.match(r"[a-z]+:", to)]


def anchors(text: str) -> set[str]:
    """The anchors of headings, as GitHub and MyST name them; a second of a name ends in -1."""
    seen: dict[str, int] = {}
    for title in HEADING.findall(FENCE.sub("", text)):
        slug = slugged(title)
        seen[slug] = seen.get(slug, -1) + 1
    return {f"{slug}-{i}" if i else slug for slug, most in seen.items() for i in range(most + 1)}


def slugged(title: str) -> str:
    """As GitHub names it.

    >>> slugged("Gaussian processes, in `C++`")
    'gaussian-processes-in-c'
    """
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", shown.lower()).strip().replace(" ", "-")
