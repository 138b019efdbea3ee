import pytest
from publisher import publishing
from service_process import free_port

from flashcards.client import fetch as fetching
from flashcards.client.fetch import fetch
from flashcards.client.official import OFFICIAL, OfficialFile
from flashcards.errors import DownloadFailed

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def publisher():
    with publishing() as server:
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(fetching, "PAUSES", (0.0, 0.0))


def test_a_file_is_fetched_once_and_leaves_nothing_beside_it(publisher, tmp_path):
    file = publisher.publish("train.bin", CONTENT)
    told = []
    path = fetch(file, tmp_path / "new", lambda done, total: told.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert fetch(file, tmp_path / "new") == path
    assert publisher.asked == [None]
    assert [each.name for each in path.parent.iterdir()] == ["train.bin"]


def test_it_goes_on_where_it_broke_off(publisher, tmp_path):
    publisher.cuts = [1000, 5000]
    path = fetch(publisher.publish("train.bin", CONTENT), tmp_path)
    assert path.read_bytes() == CONTENT
    assert publisher.asked == [None, "bytes=1000-", "bytes=6000-"]


def test_it_goes_on_in_the_next_run(publisher, tmp_path):
    (tmp_path / "train.bin.part").write_bytes(CONTENT[:7000])
    assert fetch(publisher.publish("train.bin", CONTENT), tmp_path).read_bytes() == CONTENT
    assert publisher.asked == ["bytes=7000-"]


def test_a_server_without_ranges_sends_it_all_again(publisher, tmp_path):
    publisher.ranges, publisher.cuts = False, [1000]
    assert fetch(publisher.publish("train.bin", CONTENT), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("came", [CONTENT[:-1] + b"x", CONTENT + b"more", b"x" * len(CONTENT)])
def test_another_file_than_the_published_one_is_refused_and_removed(publisher, tmp_path, came):
    published = publisher.publish("train.bin", CONTENT)
    publisher.publish("train.bin", came)
    with pytest.raises(DownloadFailed, match="not the published file"):
        fetch(published, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_something_else_is_found_out_and_the_next_run_is_right(publisher, tmp_path):
    (tmp_path / "train.bin.part").write_bytes(b"something else")
    file = publisher.publish("train.bin", CONTENT)
    with pytest.raises(DownloadFailed):
        fetch(file, tmp_path)
    assert fetch(file, tmp_path).read_bytes() == CONTENT


def test_a_file_that_was_changed_is_fetched_again(publisher, tmp_path):
    (tmp_path / "train.bin").write_bytes(b"changed")
    assert fetch(publisher.publish("train.bin", CONTENT), tmp_path).read_bytes() == CONTENT


def test_a_file_that_became_shorter_ends_in_words(publisher, tmp_path):
    file = publisher.publish("train.bin", CONTENT, size=len(CONTENT) + 5)
    with pytest.raises(DownloadFailed, match="does not give"):
        fetch(file, tmp_path)


def test_passing_trouble_is_waited_out_and_a_refusal_is_not(publisher, tmp_path):
    file = publisher.publish("train.bin", CONTENT)
    publisher.statuses = [503, 502]
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    publisher.statuses = [404]
    with pytest.raises(DownloadFailed, match="HTTP 404"):
        fetch(file, tmp_path / "other")


def test_a_server_that_is_away_is_named_and_what_came_is_kept(tmp_path):
    file = OfficialFile(f"http://127.0.0.1:{free_port()}/train.bin", 10, "0" * 64)
    (tmp_path / "train.bin.part").write_bytes(b"half")
    with pytest.raises(DownloadFailed) as caught:
        fetch(file, tmp_path)
    assert "127.0.0.1 does not give train.bin" in str(caught.value)
    assert "goes on from there" in str(caught.value)
    assert "FLASHCARDS_DATA" in str(caught.value)
    assert (tmp_path / "train.bin.part").read_bytes() == b"half"


def test_the_table_is_whole():
    assert sorted(OFFICIAL) == ["cifar10", "cifar100", "fashion_mnist", "mnist", "omniglot", "svhn"]
    files = [file for files in OFFICIAL.values() for file in files]
    assert all(len(file.sha256) == 64 and int(file.sha256, 16) and file.size > 1000 for file in files)
    assert len({file.sha256 for file in files}) == len({file.url for file in files}) == len(files) == 14
