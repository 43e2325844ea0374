"""What a process does that draws Markdown for the server (`chat.rendering.markdown`)."""

from collections.abc import Iterator

from chat.rendering import pictures
from chat.rendering.markdown_blocks import draw_all


def draw(picture_key: str, source: str) -> Iterator[str]:
    """Yield the HTML of each block. The key signs addresses of pictures and nothing else."""
    pictures.use_key(picture_key)
    yield from draw_all(source)
