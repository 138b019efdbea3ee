import pytest
from making import finished, push_model, weights

from service.downloads import parse_range
from service.errors import OutOfRange


@pytest.fixture(scope="module")
def path(api) -> str:
    return f"/v1/models/{push_model(api)['id']}/weights"


@pytest.fixture(scope="module")
def sent() -> bytes:
    return weights()


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=2-5", (2, 6)),
        ("bytes=2-500", (2, 10)),
        ("bytes=7-", (7, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=0-1,4-5", None),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("items=0-1", None),
        ("bytes=a-b", None),
        ("bytes=\u0661-\u0662", None),
        ("", None),
    ],
)
def test_one_range_is_understood_and_others_are_left_aside(text, span):
    assert parse_range(text, 10) == span


@pytest.mark.parametrize("text", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_past_the_end(text):
    with pytest.raises(OutOfRange):
        parse_range(text, 10)


def test_a_part_of_a_file(api, path, sent):
    answer = api.get(path, headers={"Range": "bytes=10-19"})
    assert (answer.status_code, answer.content) == (206, sent[10:20])
    assert answer.headers["content-range"] == f"bytes 10-19/{len(sent)}"
    assert answer.headers["content-length"] == "10"
    whole = b"".join(
        api.get(path, headers={"Range": f"bytes={start}-{start + 999}"}).content for start in range(0, len(sent), 1000)
    )
    assert whole == sent


def test_past_the_end_is_said_in_words(api, path, sent):
    answer = api.get(path, headers={"Range": f"bytes={len(sent)}-"})
    assert (answer.status_code, answer.json()["type"]) == (416, "/problems/out-of-range")
    assert answer.headers["content-range"] == f"bytes */{len(sent)}"


def test_a_part_of_another_file_than_you_know_is_the_whole(api, path, sent):
    etag = api.head(path).headers["etag"]
    for known, status in ((etag, 206), ('"another"', 200)):
        answer = api.get(path, headers={"Range": "bytes=0-9", "If-Range": known})
        assert answer.status_code == status
    assert answer.content == sent


def test_what_you_have_is_not_sent_again(api, path):
    etag = api.get(path).headers["etag"]
    for tags in (etag, f'"other", {etag}', f"W/{etag}", "*"):
        answer = api.get(path, headers={"If-None-Match": tags})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
    assert api.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_head_is_a_download_without_the_file(api, path, sent):
    head, got = api.head(path), api.get(path)
    assert (head.status_code, head.content) == (200, b"")
    names = ("content-length", "content-type", "content-disposition", "etag", "accept-ranges")
    assert [head.headers[name] for name in names] == [got.headers[name] for name in names]
    assert int(head.headers["content-length"]) == len(sent)


def test_a_store_without_links_sends_the_file(api, path, sent):
    answer = api.get(path, params={"presign": "true"})
    assert (answer.status_code, answer.content) == (200, sent)


def test_every_download_takes_all_of_this(api, dataset, digits_npz):
    job = finished(api, kind="capture", model=push_model(api)["id"], count=3, r=1)
    for path in (
        f"/v1/datasets/{dataset['id']}/file",
        f"/v1/jobs/{job['id']}/artifacts/cards.npy",
        f"/v1/flashcards/{job['result']['flashcards']}/sheet.png",
    ):
        whole = api.get(path, params={"presign": "true"})
        assert whole.status_code == 200
        assert api.head(path).headers["content-length"] == str(len(whole.content))
        assert api.get(path, headers={"Range": "bytes=-5"}).content == whole.content[-5:]
        assert api.get(path, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304
        assert api.head(path + "x").status_code in (404, 422)
