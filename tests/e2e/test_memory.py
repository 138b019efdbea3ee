"""Large things pass through without being held."""

import io
import struct
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import psutil
import pytest
from making import push_model, submit, wait_for
from numpy.lib import format as npy
from service_process import running_service

GIB = 1024**3
pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("fresh") / "home", threads=1) as service:
        yield service


class Peak:
    """The most memory that a process had, looked at many times a second."""

    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.start = self.most = process.memory_info().rss
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.01):
            try:
                self.most = max(self.most, self.process.memory_info().rss)
            except psutil.NoSuchProcess:
                return

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        return self.most - self.start


def big_npz(path: Path, images: int) -> None:
    """A stored npz of 32 x 32 x 3 images, written piece by piece."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        header = io.BytesIO()
        npy.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (images, 32, 32, 3)})
        member.write(header.getvalue())
        block = np.random.default_rng(0).integers(0, 256, 1024 * 3072, dtype=np.uint8).tobytes()
        for _ in range(images // 1024):
            member.write(block)


def test_a_gigabyte_goes_through_the_api_without_staying_in_it(fresh, tmp_path):
    import httpx

    path = tmp_path / "big.npz"
    big_npz(path, images=(GIB // 3072 // 1024 + 1) * 1024)
    assert path.stat().st_size >= GIB
    process = fresh.part("service.api")
    with httpx.Client(base_url=fresh.url, timeout=300) as api:
        api.get("/v1/datasets")
        with Peak(process) as peak, path.open("rb") as file:
            answer = api.post("/v1/datasets", params={"name": "big"}, content=file)
        assert answer.status_code == 201, answer.text
        assert api.delete(answer.headers["location"]).status_code == 204
    assert peak.growth < 64e6


def runner_peak(fresh, api, net, count: int) -> int:
    job_id = submit(api, kind="capture", model=net["id"], count=count, r=1)["id"]
    deadline = time.monotonic() + 30
    while api.get(f"/v1/jobs/{job_id}").json()["state"] == "queued":
        assert time.monotonic() < deadline
    runner = max(fresh.parts("worker.runner"), key=lambda process: sum(process.cpu_times()[:2]))
    with Peak(runner) as peak:
        job = wait_for(api, job_id)
    assert job["state"] == "succeeded"
    return peak.most


def test_a_hundred_thousand_cards_need_no_more_memory_than_ten_thousand(fresh):
    import httpx

    with httpx.Client(base_url=fresh.url, timeout=60) as api:
        net = push_model(api, "blk_1_fil_2", "16x16x3")
        few = runner_peak(fresh, api, net, 10_000)
        many = runner_peak(fresh, api, net, 100_000)
    assert many - few < 200e6


def test_a_lying_npz_header_does_not_cost_memory(fresh):
    import httpx

    header = io.BytesIO()
    claims = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 1024, 1024, 3)}
    npy.write_array_header_1_0(header, claims)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.npy", header.getvalue() + struct.pack("<d", 1.0))
    with httpx.Client(base_url=fresh.url, timeout=60) as api, Peak(fresh.part("service.api")) as peak:
        assert api.post("/v1/datasets", params={"name": "x"}, content=archive.getvalue()).status_code == 422
    assert peak.growth < 20e6
