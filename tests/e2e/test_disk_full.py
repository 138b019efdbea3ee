"""A home folder on a disk of 40 MB, in a mount namespace of its own: what does not fit fails in words."""

import shutil
import subprocess
import sys

import httpx
import numpy as np
import pytest
from making import finished, npz, push_model, submit, wait_for
from service_process import ServiceProcess

DISK = "40m"


def new_mount_namespace() -> list[str]:
    """How this user may have one: as root, or in a user namespace where the kernel lets everybody make those."""
    for command in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    pytest.skip("this user may not mount a small disk: run it as root")


class OnASmallDisk(ServiceProcess):
    def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        script = 'mount -t tmpfs -o size="$1" tmpfs "$2" && exec "$3" -m service'
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*new_mount_namespace(), "sh", "-c", script, "sh", DISK, str(self.home), sys.executable],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.wait_until_ready()


@pytest.mark.slow
def test_a_full_disk_fails_the_job_and_not_the_service(tmp_path):
    service = OnASmallDisk(tmp_path / "home", threads=1)
    try:
        service.start()
        with httpx.Client(base_url=service.url, timeout=60) as api:
            net = push_model(api, "blk_1_fil_2", "16x16x3")
            job = wait_for(api, submit(api, kind="capture", model=net["id"], count=200_000, r=1)["id"])
            assert (job["state"], job["error"]["type"]) == ("failed", "disk-full"), job

            noise = np.random.default_rng(0).integers(0, 256, (20_000, 32, 32, 3), dtype=np.uint8)
            upload = api.post("/v1/datasets", params={"name": "too big"}, content=npz(x=noise))
            assert (upload.status_code, upload.json()["type"]) == (507, "/problems/disk-full")
            assert api.get("/v1/datasets").json()["items"] == []

            assert api.get("/readyz").json()["ready"]
            finished(api, kind="capture", model=net["id"], count=10, r=1)
    finally:
        if service.process is not None:
            for process in service.tree():
                process.kill()
            service.process.wait()
