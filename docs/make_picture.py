"""The picture in the README, from what `make demo` left: python docs/make_picture.py"""

from pathlib import Path

from PIL import Image

FOLDER = Path("flashcards-demo")
ROWS = 4  # of the sheets' eight
GAP = 24


def main() -> None:
    sheets = [Image.open(FOLDER / name).convert("RGB") for name in ("source.png", "sheet.png")]
    width, height = sheets[0].width, round(sheets[0].height * ROWS / 8)
    picture = Image.new("RGB", (2 * width + GAP, height), "white")
    for place, sheet in enumerate(sheets):
        picture.paste(sheet.crop((0, 0, width, height)), (place * (width + GAP), 0))
    picture.save(Path(__file__).parent / "cards.png", optimize=True)


if __name__ == "__main__":
    main()
