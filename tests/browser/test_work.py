"""Work that is watched, stopped and begun again; a line that is cut; a service that goes away and comes back."""

import base64

import httpx
import pytest
from making import push_dataset, submit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from service_process import running_service

pytestmark = pytest.mark.slow


def fraction(page) -> float:
    return float(page.run("return document.querySelector('#progress progress')?.value ?? 0"))


def seqs(page) -> list[int]:
    return [
        int(seq) for seq in page.run("return [...document.querySelectorAll('[data-seq]')].map((e) => e.dataset.seq)")
    ]


def test_progress_moves_and_cancel_and_retry_do_what_they_say(page, api, long_job):
    page.open(f"/jobs/{long_job}", "live")
    page.wait(lambda: fraction(page) > 0, "no progress")
    before, events = fraction(page), len(seqs(page))
    page.wait(lambda: fraction(page) > before, "it stands still")
    page.wait(lambda: len(seqs(page)) > events, "no events")
    page.wait(lambda: page.all("path.curve"), "no loss curve")
    page.check()
    page.press("Cancel")
    page.see("cancelled")
    assert api.get(f"/v1/jobs/{long_job}").json()["state"] == "cancelled"
    page.press("Retry")
    page.see("attempt 2")
    page.wait(lambda: api.get(f"/v1/jobs/{long_job}").json()["state"] == "running", "it does not run again")
    assert page.errors() == []


def test_a_job_that_fails_at_once_is_told_of(page, api, dataset):
    short = {"architecture": "blk_1_fil_4", "epochs": 1, "learning_rate": 10, "max_attempts": 1}
    job = submit(api, kind="train", dataset=dataset["id"], **short)["id"]
    page.open(f"/jobs/{job}", "failed")
    page.wait(lambda: page.all(".note[data-tone=bad] strong"), "it does not say why")
    page.check()
    error = api.get(f"/v1/jobs/{job}").json()["error"]
    assert error["title"] in page.text
    page.open("/", "Failed lately").see(error["title"])


def test_a_report_opens_prints_and_says_nothing_wrong(page, things):
    page.open(f"/jobs/{things['capture']}", "Report")
    page.one(".verbs a.button").click()
    page.see("What was asked for").see("Cards, as the job left them")
    page.wait(lambda: page.run("return [...document.images].every((image) => image.naturalWidth > 0)"), "no pictures")
    assert page.run("return getComputedStyle(document.querySelector('.figures, .facts')).display") in ("flex", "grid")
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0
    printed = page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert base64.b64decode(printed).startswith(b"%PDF")
    assert page.errors() == []


def test_jobs_are_filtered_and_the_address_says_how(page, things):
    page.open("/jobs", "succeeded")
    page.wait(lambda: len(page.all("#kind option")) > 5, "no kinds")
    page.one("#state").send_keys("failed")
    page.see("ran out of its time")
    page.wait(lambda: {each.text for each in page.all(".rows .badge")} == {"failed"}, "others are there too")
    assert "state=failed" in page.driver.current_url
    page.driver.refresh()
    page.see("ran out of its time")
    assert page.errors() == []


def test_the_keyboard_alone_goes_everywhere(page, things):
    page.open("/jobs", "succeeded")

    def key(*keys):
        page.driver.switch_to.active_element.send_keys(*keys)
        return page.driver.switch_to.active_element

    page.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert page.driver.switch_to.active_element.text == "Skip to the content"
    reached = []
    for _ in range(20):
        reached.append(key(Keys.TAB))
        ring = page.run(
            "const e = document.activeElement, s = getComputedStyle(e), a = getComputedStyle(e, '::after');"
            "return [s, a].some((each) => each.outlineStyle !== 'none' && parseFloat(each.outlineWidth) >= 2)"
        )
        assert ring, reached[-1].get_attribute("outerHTML")
    link = next(each for each in reached if each.get_attribute("class") == "open")
    place = link.get_attribute("href")
    page.run("arguments[0].focus()", link)
    key(Keys.ENTER)
    page.wait(lambda: page.driver.current_url == place, "Enter did not open it")
    page.see("What was asked for")


def test_work_is_asked_for_by_keyboard_alone(page, api, things):
    page.open(f"/models/{things['model']}", "Capture its knowledge")
    for _ in range(80):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        if page.driver.switch_to.active_element.text == "Capture":
            break
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait(lambda: "/jobs/job_" in page.driver.current_url, "nothing was queued")
    page.see("succeeded")


def test_what_is_copied_is_what_was_asked_for(page, things):
    page.open(f"/jobs/{things['capture']}", "As Python")
    texts = [each.text for each in page.all(".copy pre")]
    assert texts[0].startswith(f'curl "{page.url}/v1/jobs"')
    assert "job = client.capture(" in texts[1]
    for line in (f'model="{things["model"]}",', "count=16,", "r=2,", 'source="maze",'):
        assert line in texts[1]


@pytest.mark.timeout(300)
def test_a_service_that_comes_back_is_gone_on_with(page_at, digits_npz, tmp_path):
    """Its API is killed while a job runs and is watched: nothing is lost, nothing is there twice."""
    with running_service(tmp_path / "home", threads=1) as service, httpx.Client(base_url=service.url) as api:
        dataset = push_dataset(api, digits_npz)["id"]
        spec = {"architecture": "blk_2_fil_8", "epochs": 10**5, "patience": 10**5}
        job = submit(api, kind="train", dataset=dataset, **spec)["id"]
        page = page_at(service.url)
        page.open(f"/jobs/{job}", "live")
        page.wait(lambda: len(seqs(page)) > 3, "no events")
        keeper = service.tree()[0]
        keeper.suspend()  # else the API may be back before the page has looked again
        try:
            service.part("service.api").kill()
            page.see("does not answer")
        finally:
            keeper.resume()
        service.wait_until_ready()
        count = len(seqs(page))
        page.wait(lambda: len(seqs(page)) > count, "it does not go on")
        page.wait(lambda: not page.is_seen("#banner"), "it still says that the service is away")
        page.press("Cancel")
        page.see("cancelled")
        told = api.get(f"/v1/jobs/{job}/events", params={"follow": False}).json()
        wanted = [event["seq"] for event in told if event["kind"] != "log"]
        page.wait(lambda: seqs(page)[::-1] == wanted[-300:], "events are lost or doubled")


def test_a_learner_is_begun_taught_and_taken_back(page, api, dataset):
    page.open("/learners", "Begin a learner")
    name = page.one("form input[name=name]")
    name.clear()
    name.send_keys("by hand")
    network = page.one("form input[name=architecture]")
    network.clear()
    network.send_keys("blk_1_fil_4")
    page.press("Begin")
    page.see("It knows nothing yet")
    learner = page.driver.current_url.rsplit("/", 1)[-1]
    select = page.one("select[name=dataset]")
    page.run("arguments[0].value = arguments[1]", select, dataset["id"])
    for number in (1, 2):
        page.press("Learn it")
        page.wait(
            lambda number=number: api.get(f"/v1/learners/{learner}").json()["version"] == number,
            "it did not learn",
            120,
        )
    page.see("Forgetting").see("Before and after").see("Roll back").see("Worst change by the last task")
    page.check()
    page.press("Roll back")
    page.driver.switch_to.alert.accept()
    page.see("rolled back from")
    assert api.get(f"/v1/learners/{learner}").json()["version"] == 1


def test_a_learner_of_classes_is_begun_and_taught(page, api, dataset):
    page.open("/learners", "Begin a learner")
    page.run(
        "arguments[0].value = 'task_incremental'; arguments[0].dispatchEvent(new Event('change', { bubbles: true }))",
        page.one("select[name=scenario]"),
    )
    network = page.one("form input[name=architecture]")
    assert network.get_attribute("value") == "tasknet"
    assert not page.one("select[name=model]").is_enabled()
    page.press("Begin")
    page.see("It knows nothing yet").see("Those with labels.")
    assert "agem" in page.text
    learner = page.driver.current_url.rsplit("/", 1)[-1]
    page.run("arguments[0].value = arguments[1]", page.one("select[name=dataset]"), dataset["id"])
    epochs = page.one("input[name=epochs]")
    epochs.clear()
    epochs.send_keys("12")
    page.press("Learn it")
    page.wait(lambda: api.get(f"/v1/learners/{learner}").json()["version"] == 1, "it did not learn", 120)
    page.see("Average accuracy").see("Without task id")
    page.check()


@pytest.mark.timeout(700)
def test_the_sample_runs_by_one_click(page_at, tmp_path):
    with running_service(tmp_path / "home", threads=1) as service:
        page = page_at(service.url)
        page.open("/", "First steps")
        page.check()
        page.press("Run the sample")
        page.see("Look at the cards", 300).see("Watch them pass by pass", 120)
        page.press("Teach it a second task")
        page.see("See what it still knows", 300)
        page.check()
        page.all(".steps a")[-1].click()
        page.see("their negatives (sample)").see("Forgetting")
        assert len(page.all(".heat rect.cell")) == 3
        assert page.errors() == []
