"""What can be seen on a drawn figure."""

from matplotlib.figure import Figure
from matplotlib.text import Text


def words(figure: Figure) -> str:
    """All visible text, in one line."""
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    return " ".join(text.get_text() for text in texts if text.get_visible())


def outside(figure: Figure) -> list[str]:
    """Texts that leave the page."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    found = []
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip():
            box = text.get_window_extent()
            if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height:
                found.append(text.get_text())
    return found
