"""`make screenshots`: every view, wide and narrow, light and dark, of a live service that has one of everything.

It is filled from nothing on the way, and the pictures that its jobs made are kept for the guides. With an address, only
the views of the service that runs there.
"""

import base64
import io
import sys
import tempfile
import time
from pathlib import Path

import httpx
from PIL import Image
from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

import gallery  # noqa: E402
from browser import NARROW, WIDE, prefer, resize, running_browser  # noqa: E402
from service_process import running_service  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
PICTURES = ROOT / "docs" / "pictures"
TALLEST = {WIDE: 1150, NARROW: 1250}
SCALE = {WIDE: 0.6, NARROW: 0.7}
OFTEN, SELDOM = 24, 36  # colours of the palette: grounds and inks as they are, and of the rest those furthest apart


def views(api: httpx.Client) -> dict[str, str]:
    def newest(path: str, name: str | None = None) -> str:
        items = api.get(f"/v1/{path}").json()["items"]
        return next((item["id"] for item in items if name is None or item.get("name") == name), items[0]["id"])

    train = newest("jobs?kind=train&state=succeeded")
    return {
        "overview": "/",
        "jobs": "/jobs",
        "job": f"/jobs/{train}",
        "job-running": f"/jobs/{newest('jobs?kind=train')}",
        "job-failed": f"/jobs/{newest('jobs?state=failed')}",
        "models": "/models",
        "model": f"/models/{newest('models', 'digits network')}",
        "datasets": "/datasets",
        "dataset": f"/datasets/{newest('datasets', 'handwritten digits')}",
        "flashcards": "/flashcards",
        "cards": f"/flashcards/{newest('flashcards', 'digits from mazes')}",
        "learners": "/learners",
        "learner": f"/learners/{newest('learners')}",
        "compare": "/compare",
        "comparison": f"/compare/{newest('jobs?kind=compare')}",
        "api": "/api",
    }


def shoot(driver: Chrome, url: str, size: tuple[int, int], scheme: str) -> Image.Image:
    resize(driver, size)
    prefer(driver, scheme)
    driver.get(url)
    deadline = time.monotonic() + 20
    busy = "return document.querySelectorAll('[aria-busy=true]').length"
    while driver.execute_script(busy) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.8)  # what is drawn in a second step makes a view longer
    tall = driver.execute_script("return document.documentElement.scrollHeight")
    resize(driver, (size[0], min(max(tall, size[1]), TALLEST[size])))
    time.sleep(0.7)  # pictures come after the words
    return Image.open(io.BytesIO(base64.b64decode(driver.get_screenshot_as_base64()))).convert("RGB")


def save(picture: Image.Image, name: str, scale: float) -> None:
    width, height = (round(side * scale) for side in picture.size)
    small = picture.resize((width, height), Image.Resampling.LANCZOS)
    small.quantize(palette=palette(small), dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)


def palette(picture: Image.Image) -> Image.Image:
    """By frequency alone accents would go grey, by distance alone the ground would change its colour."""
    counted = sorted(picture.getcolors(picture.width * picture.height) or [], reverse=True)
    often = [channel for _, colour in counted[:OFTEN] for channel in colour]
    seldom = picture.quantize(SELDOM, Image.Quantize.MAXCOVERAGE).getpalette() or []
    found = Image.new("P", (1, 1))
    found.putpalette((often + seldom)[: 3 * (OFTEN + SELDOM)])
    return found


def take(url: str, folder: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    with httpx.Client(base_url=url, timeout=60) as api, running_browser(folder) as driver:
        job = gallery.start_long_job(api, api.get("/v1/datasets?limit=1").json()["items"][0]["id"])
        for name, path in views(api).items():
            for word, size in (("wide", WIDE), ("narrow", NARROW)):
                for scheme in ("light", "dark"):
                    save(shoot(driver, url + path, size, scheme), f"{name}-{word}-{scheme}", SCALE[size])
        api.post(f"/v1/jobs/{job}/cancel")
    total = sum(path.stat().st_size for path in FOLDER.glob("*.png"))
    print(f"{len(list(FOLDER.glob('*.png')))} pictures, {total / 1e6:.1f} MB, in {FOLDER}")


def keep_pictures(api: httpx.Client, ids: dict[str, str]) -> None:
    """What the jobs themselves drew, for the guides."""
    PICTURES.mkdir(exist_ok=True)
    captured = {name: api.get(f"/v1/flashcards/{ids[name]}").json()["job"] for name in ("mazes", "cards")}
    wanted = {
        "mazes.png": (captured["mazes"], "source.png"),
        "cards-from-mazes.png": (captured["mazes"], "sheet.png"),
        "cards-from-capsule.png": (captured["cards"], "sheet.png"),
        "passes.png": (ids["analyze"], "strip.png"),
        "curves.png": (ids["analyze"], "curves.png"),
        "comparison.png": (ids["compare"], "comparison.png"),
        "comparison.csv": (ids["compare"], "table.csv"),
    }
    for name, (job, artifact) in wanted.items():
        answer = api.get(f"/v1/jobs/{job}/artifacts/{artifact}").raise_for_status()
        (PICTURES / name).write_bytes(answer.content)
    print((PICTURES / "comparison.csv").read_text())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if len(sys.argv) > 1:
            take(sys.argv[1], folder / "chromium")
            return
        with running_service(folder / "home", threads=1) as service:
            with httpx.Client(base_url=service.url, timeout=120) as api:
                keep_pictures(api, gallery.fill(api))
            take(service.url, folder / "chromium")


if __name__ == "__main__":
    main()
