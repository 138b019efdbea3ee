import asyncio
import errno
import os
import subprocess
import sys
import time
from uuid import uuid4

import httpx
import pytest
from service_process import free_port

from ledger import store as store_module
from ledger.errors import StoreAway
from ledger.store import Store, hash_file

TENANT = "default"


@pytest.fixture
def s3_environment(s3, monkeypatch):
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["folder", "s3"])
def store(request, tmp_path):
    """Of each kind that the service runs on."""
    if request.param == "folder":
        return Store(f"file://{tmp_path / 'a store with spaces'}".replace(" ", "%20"))
    request.getfixturevalue("s3_environment")
    return Store(request.getfixturevalue("s3").new_bucket(uuid4().hex))


@pytest.fixture
def bucket(s3, s3_environment):
    return Store(s3.new_bucket(uuid4().hex))


def put(store, tmp_path, content: bytes) -> str:
    path = tmp_path / uuid4().hex
    path.write_bytes(content)
    digest = hash_file(path).digest
    store.put(TENANT, digest, path)
    assert path.read_bytes() == content
    return digest


def chunks(reading) -> bytes:
    async def read() -> bytes:
        return b"".join([chunk async for chunk in reading.chunks()])

    return asyncio.run(read())


def test_what_is_put_can_be_read_in_parts_and_fetched(store, tmp_path):
    digest = put(store, tmp_path, b"0123456789")
    assert store.read(TENANT, digest, 3, 4) == b"3456"
    assert store.size(TENANT, digest) == 10
    store.fetch(TENANT, digest, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"0123456789"


def test_it_streams_whole_or_in_part(store, tmp_path):
    digest = put(store, tmp_path, b"0123456789")
    whole, part = store.open(TENANT, digest), store.open(TENANT, digest, (3, 7))
    assert (whole.start, whole.end, whole.size, chunks(whole)) == (0, 10, 10, b"0123456789")
    assert (part.start, part.end, part.size, chunks(part)) == (3, 7, 10, b"3456")


def test_the_same_file_twice_leaves_one_object(store, tmp_path):
    path = tmp_path / "made"
    path.write_bytes(b"same")
    digest = hash_file(path).digest
    store.put(TENANT, digest, path)
    store.put(TENANT, digest, path)
    assert [entry.key for entry in store.list()] == [f"{TENANT}/{digest}"]


def test_what_is_deleted_is_gone_and_may_be_deleted_again(store, tmp_path):
    digest = put(store, tmp_path, b"short-lived")
    store.delete(TENANT, digest)
    store.delete(TENANT, digest)
    assert list(store.list()) == []
    with pytest.raises(FileNotFoundError):
        store.size(TENANT, digest)


def test_what_is_not_there_says_so(store, tmp_path):
    for look in (store.size, store.open):
        with pytest.raises(FileNotFoundError):
            look(TENANT, "0" * 64)
    with pytest.raises(FileNotFoundError):
        store.read(TENANT, "0" * 64, 0, 1)
    with pytest.raises(FileNotFoundError):
        store.fetch(TENANT, "0" * 64, tmp_path / "copy")


def test_another_tenant_does_not_see_it(store, tmp_path):
    digest = put(store, tmp_path, b"mine")
    with pytest.raises(FileNotFoundError):
        store.size("somebody", digest)


def test_a_listing_says_how_large_and_how_old(store, tmp_path):
    digest = put(store, tmp_path, b"12345")
    (entry,) = store.list()
    assert (entry.key, entry.size) == (f"{TENANT}/{digest}", 5)
    assert abs(entry.modified_at - time.time()) < 60


def test_what_is_fetched_never_writes_into_a_file_that_is_there(store, tmp_path):
    first, second = put(store, tmp_path, b"first"), put(store, tmp_path, b"second")
    store.fetch(TENANT, first, tmp_path / "copy")
    with pytest.raises(FileExistsError):
        store.fetch(TENANT, second, tmp_path / "copy")
    assert store.read(TENANT, first, 0, 5) == b"first"


def test_a_folder_on_another_file_system_gets_a_copy(tmp_path, monkeypatch):
    def no_link(*_):
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "link", no_link)
    store = Store(f"file://{tmp_path}/store")
    digest = put(store, tmp_path, b"far away")
    store.fetch(TENANT, digest, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"far away"
    assert [entry.key for entry in store.list()] == [f"{TENANT}/{digest}"]


def test_a_link_to_an_object_needs_no_key(bucket, tmp_path):
    digest = put(bucket, tmp_path, b"for a while")
    link = bucket.sign(TENANT, digest, 60)
    assert httpx.get(link).content == b"for a while"
    assert "X-Amz-Expires=60" in link
    assert "a secret of the tests" not in link


def test_a_folder_gives_no_links(tmp_path):
    assert Store(f"file://{tmp_path}").sign(TENANT, "0" * 64, 60) is None


@pytest.mark.slow
def test_a_large_file_goes_up_in_parts_and_not_through_memory(s3, s3_environment, tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(128 * 1024**2)
    url = s3.new_bucket(uuid4().hex)
    code = (
        "import sys, pathlib; from ledger.store import Store; store = Store(sys.argv[1]);"
        "store.put('default', '0' * 64, pathlib.Path(sys.argv[2]));"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    ran = subprocess.run([sys.executable, "-c", code, url, str(path)], capture_output=True, text=True, check=True)
    store = Store(url)
    assert store.size(TENANT, "0" * 64) == 128 * 1024**2
    assert int(ran.stdout) < 110 * 1024, "kilobytes"


def test_parts_grow_with_the_file_so_that_there_are_never_too_many(bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "PART_BYTES", 5 * 1024**2)
    monkeypatch.setattr(store_module, "PARTS", 2)
    digest = put(bucket, tmp_path, bytes(21 * 1024**2))
    answer = httpx.get(bucket.sign(TENANT, digest, 60))
    assert len(answer.content) == 21 * 1024**2
    assert answer.headers["etag"].endswith('-2"'), "the number of its parts"


class TestTrouble:
    def look(self, store, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"x")
        yield lambda: store.put(TENANT, "0" * 64, path)
        yield lambda: store.size(TENANT, "0" * 64)
        yield lambda: store.read(TENANT, "0" * 64, 0, 1)
        yield lambda: store.open(TENANT, "0" * 64)
        yield lambda: store.fetch(TENANT, "0" * 64, tmp_path / "copy")
        yield lambda: store.delete(TENANT, "0" * 64)
        yield lambda: list(store.list())

    def test_a_server_that_is_not_there(self, s3_environment, monkeypatch, tmp_path):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
        store = Store("s3://bucket/prefix")
        for act in self.look(store, tmp_path):
            with pytest.raises(StoreAway) as raised:
                act()
            assert raised.value.passes
            assert "127.0.0.1" not in raised.value.detail
        assert not store.is_reachable()

    def test_a_bucket_that_is_not_there(self, s3, s3_environment, tmp_path):
        store = Store(f"s3://{uuid4().hex}/prefix")
        path = tmp_path / "file"
        path.write_bytes(b"x")
        with pytest.raises(StoreAway) as raised:
            store.put(TENANT, "0" * 64, path)
        assert not raised.value.passes
        assert not store.is_reachable()

    def test_plain_http_has_to_be_allowed(self, s3_environment, monkeypatch):
        monkeypatch.delenv("AWS_ALLOW_HTTP")
        assert not Store("s3://bucket").is_reachable()

    def test_a_folder_that_may_not_be_written(self, tmp_path, monkeypatch):
        def denied(*_):
            raise PermissionError(errno.EACCES, "not yours")

        store = Store(f"file://{tmp_path}/store")
        monkeypatch.setattr(os, "link", denied)
        with pytest.raises(StoreAway) as raised:
            put(store, tmp_path, b"x")
        assert not raised.value.passes

    def test_a_full_disk_stays_a_full_disk(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "no room")

        store = Store(f"file://{tmp_path}/store")
        monkeypatch.setattr(os, "link", full)
        with pytest.raises(OSError, match="no room"):
            put(store, tmp_path, b"x")
        assert list(store.list()) == []


def test_secrets_may_come_in_files(s3, s3_environment, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"):
        (tmp_path / name).write_text("from-a-file\n")
        monkeypatch.setenv(f"{name}_FILE", str(tmp_path / name))
    store = Store(s3.new_bucket(uuid4().hex))
    digest = put(store, tmp_path, b"x")
    assert "from-a-file" in store.sign(TENANT, digest, 60)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match="nowhere"):
        Store("s3://bucket")
