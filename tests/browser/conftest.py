import base64
import time
from functools import partial
from pathlib import Path

import browser
import pytest
from making import finished, npz, push_dataset, submit, wait_for
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

#: As short as a training can be that learns more than the best constant image.
LESSON = {"epochs": 2, "batch_size": 8, "learning_rate": 0.01}
DROP = """
    const files = new DataTransfer();
    for (const [name, content] of arguments[0]) {
      const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
      files.items.add(new File([bytes], name));
    }
    const drop = new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true });
    document.querySelector(".drop").dispatchEvent(drop);
"""
CHECKS = Path(__file__).with_name("accessibility.js").read_text()


def pytest_collection_modifyitems(items):
    if browser.is_here():
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=browser.MISSING))


class Page:
    """What a person at the browser does and sees."""

    def __init__(self, driver, url: str) -> None:
        self.driver, self.url = driver, url

    def open(self, path: str, until: str | None = None):
        """Until nothing is loading any more, and this can be read."""
        self.driver.get(self.url + path)
        self.wait(lambda: not self.all("[aria-busy=true]") or self.is_seen("#sign-in"), "loading came to no end")
        return self.see(until) if until else self

    def wait(self, condition, complaint: str, seconds: float = 60):
        patient = WebDriverWait(self.driver, seconds, 0.1, ignored_exceptions=(StaleElementReferenceException,))
        try:
            return patient.until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"{complaint}; the page reads: {self.text[:1500]}") from None

    def see(self, words: str, seconds: float = 60):
        self.wait(lambda: words in self.text, f"{words!r} is not there", seconds)
        return self

    @property
    def text(self) -> str:
        return self.driver.execute_script("return document.body.innerText")

    def all(self, selector: str):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str):
        return self.wait(lambda: next(iter(self.all(selector)), None), f"no {selector}")

    def is_seen(self, selector: str) -> bool:
        return any(element.is_displayed() for element in self.all(selector))

    def press(self, words: str) -> None:
        """The button of this name; it may be drawn anew while we reach for it."""

        def pressed():
            for element in self.all("button"):
                if element.is_displayed() and element.is_enabled() and element.text == words:
                    element.click()
                    return True
            return False

        self.wait(pressed, f"no button {words!r}")

    def choose(self, file: Path) -> None:
        self.one("input[type=file]").send_keys(str(file))

    def drop(self, files: list[tuple[str, bytes]]) -> None:
        self.run(DROP, [(name, base64.b64encode(content).decode()) for name, content in files])

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def check(self) -> None:
        """Names, roles, order, contrast; nothing wider than the window; nothing in the console."""
        assert self.run(CHECKS) == []
        assert self.run("return document.documentElement.scrollWidth - innerWidth") <= 0
        assert self.errors() == []


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    with browser.running_browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def fresh(driver):
    """Wide and light, with no cookie and an empty console."""
    browser.resize(driver, browser.WIDE)
    browser.prefer(driver, "light")
    driver.get("about:blank")
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.get_log("browser")
    return driver


@pytest.fixture
def page_at(fresh):
    return partial(Page, fresh)


@pytest.fixture
def page(page_at, service):
    return page_at(service.url)


@pytest.fixture
def locked_page(page_at, locked):
    return page_at(locked.url)


@pytest.fixture(scope="session")
def things(api, dataset, model):
    """One of everything, as small as it can be."""
    captured = finished(api, kind="capture", model=model["id"], count=16, r=2, source="maze", name="small cards")
    analyzed = finished(api, kind="analyze", model=model["id"], max_r=3, count=16)
    learner = api.post("/v1/learners", json={"name": "pupil", "architecture": "blk_1_fil_4"}).json()
    task = {"dataset": dataset["id"], **LESSON}
    learnt = wait_for(api, api.post(f"/v1/learners/{learner['id']}/tasks", json=task).json()["id"])
    assert learnt["state"] == "succeeded", learnt
    failed = wait_for(api, submit(api, kind="train", dataset=dataset["id"], architecture="blk_1_fil_4", epochs=10**5,
                                  patience=10**5, timeout_seconds=1, max_attempts=1)["id"])  # fmt: skip
    assert failed["state"] == "failed"
    return {
        "model": model["id"], "dataset": dataset["id"],
        "capture": captured["id"], "cards": captured["result"]["flashcards"],
        "analyze": analyzed["id"], "learner": learner["id"], "learn": learnt["id"], "failed": failed["id"],
    }  # fmt: skip


@pytest.fixture(scope="session")
def compared(api, dataset, digits):
    other = push_dataset(api, npz(x_train=255 - digits["x_train"], x_test=255 - digits["x_test"]), name="inverted")
    spec = {"datasets": [dataset["id"], other["id"]], "strategies": [{"kind": "naive"}, {"kind": "joint"}]}
    job = submit(api, kind="compare", seeds=[0, 1], architecture="blk_1_fil_4", **LESSON, **spec)
    return wait_for(api, job["id"], 330)["id"]


@pytest.fixture
def long_job(api, dataset):
    """A training that goes on until somebody stops it."""
    spec = {"architecture": "blk_2_fil_8", "epochs": 10**5, "patience": 10**5}
    job = submit(api, kind="train", dataset=dataset["id"], **spec)
    yield job["id"]
    api.post(f"/v1/jobs/{job['id']}/cancel")
    deadline = time.monotonic() + 60
    while api.get(f"/v1/jobs/{job['id']}").json()["state"] in ("queued", "running") and time.monotonic() < deadline:
        time.sleep(0.2)
