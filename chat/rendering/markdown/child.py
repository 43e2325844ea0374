"""What a process does that draws Markdown for the server (`chat.rendering.markdown`)."""

from collections.abc import Iterator

from chat.rendering.markdown import external_images
from chat.rendering.markdown.blocks import draw_all


def draw(picture_key: str, source: str) -> Iterator[str]:
    """Yield the HTML of each block. The key signs addresses of pictures and nothing else."""
    external_images.use_key(picture_key)
    yield from draw_all(source)
