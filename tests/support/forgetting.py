"""Takes back one step of an experiment, as if it had never been done."""

import json
import shutil
from pathlib import Path

from benchmarks.lab import Lab


def forget(lab: Lab, folder: Path) -> None:
    shutil.rmtree(folder)
    step = folder.relative_to(lab.folder / lab.size.name).as_posix()
    path = lab.records.folder / f"{lab.size.name}.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if json.loads(line)["step"] != step))
    lab.__dict__.pop("_recorded", None)
