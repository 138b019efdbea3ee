"""A real Chromium without a window, driven over WebDriver. Nothing is fetched: both programs are the system's own."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
MISSING = "no Chromium with chromedriver on this machine: `apt install chromium chromium-driver`"
QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
WIDE, NARROW = (1280, 900), (390, 844)


def is_here() -> bool:
    return CHROMIUM is not None and DRIVER is not None


@contextmanager
def running_browser(folder: Path) -> Iterator[Chrome]:
    assert CHROMIUM is not None
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*QUIET, f"--user-data-dir={folder}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(executable_path=DRIVER))
    try:
        driver.set_page_load_timeout(30)
        resize(driver, WIDE)
        yield driver
    finally:
        driver.quit()


def resize(driver: Chrome, size: tuple[int, int], scale: float = 1) -> None:
    """The page itself, and not the window: a window may have a smallest width."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(driver: Chrome, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
