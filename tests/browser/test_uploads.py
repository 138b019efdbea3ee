"""Files by hand and by drop, and names that strangers write."""

from making import npz, weights

NASTY = [
    "<script>document.title='owned'</script><img src=x onerror=alert(1)>",
    "🦊" * 50,
    "שלום עולם ‮ مرحبا",
    "a" * 200,
]


def send(page, path) -> None:
    page.one("input[type=file]").send_keys(str(path))


def test_a_model_comes_in_and_a_bad_file_says_why(page, tmp_path):
    page.open("/models", "Drop an autoencoder here")
    good, bad = tmp_path / "brought along.safetensors", tmp_path / "broken.safetensors"
    good.write_bytes(weights())
    bad.write_bytes(b"not a network at all")
    page.one("#architecture").send_keys("blk_2_fil_4")
    page.one("#input").send_keys("16x16x1")
    send(page, good)
    page.see("ready: brought along")
    assert page.errors() == []
    send(page, bad)
    page.see("safetensors", 30)
    page.wait(lambda: page.all(".uploads [role=alert] .why"), "the file was not refused")
    assert all("422" in message for message in page.errors())


def test_two_hundred_files_are_refused_in_words(page, tmp_path):
    page.open("/datasets", "Drop images here")
    page.run(
        """
        const files = new DataTransfer();
        for (let n = 0; n < 200; n += 1) files.items.add(new File(["x"], `${n}.png`));
        const drop = new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true });
        document.querySelector(".drop").dispatchEvent(drop);
        """
    )
    page.see("Those are 200 files").see("Nothing was sent")
    assert page.errors() == []


def test_names_from_strangers_stay_text(page, api, digits):
    ids = []
    for name in NASTY:
        answer = api.post("/v1/datasets", params={"name": name}, content=npz(x=digits["x_test"][:4]))
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["id"])
    page.open("/datasets", "<script>document.title=")
    page.check()
    for id, name in zip(ids, NASTY, strict=True):
        page.open(f"/datasets/{id}", name[:20])
        page.check()
        assert page.run("return document.title") != "owned"
    page.run("return document.body.scrollWidth")
    api.post("/v1/jobs", json={"kind": "noop", "labels": {"note": NASTY[0][:200]}})
    page.open("/jobs", "note: <script>")
    page.check()
