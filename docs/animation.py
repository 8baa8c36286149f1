"""Compose the animated tour of the pictures that the browser tests have taken: `python docs/animation.py`.

Each frame is one of `docs/images/tour-*.png`, in the order of their names, scaled to one width and laid on one height.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent / "images"
WIDTH = 960
SECONDS = 2.5


def compose(frames: list[Path], target: Path) -> None:
    """Write the frames as one animated WebP that repeats for ever."""
    pictures = [_scale(Image.open(frame).convert("RGB")) for frame in frames]
    height = max(picture.height for picture in pictures)
    canvases = [Image.new("RGB", (WIDTH, height), "white") for _ in pictures]
    for canvas, picture in zip(canvases, pictures, strict=True):
        canvas.paste(picture, (0, 0))
    first, *others = canvases
    first.save(target, save_all=True, append_images=others, duration=round(SECONDS * 1000), loop=0, quality=80)


def _scale(picture: Image.Image) -> Image.Image:
    return picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)


if __name__ == "__main__":
    compose(sorted(IMAGES.glob("tour-*.png")), IMAGES / "tour.webp")
