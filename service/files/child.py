"""`python -I -m service.files.child ORDER < upload`: one JSON line on stdout, and the end.

No pydantic in here: it would double the time that an upload waits for its answer.
"""

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from service.files import sandbox
from service.files.errors import UNCHECKED, BadFile
from service.files.upload import Upload

Reader = Callable[[Upload], object]


def main(order: str) -> None:
    gc.disable()  # short-lived and limited anyway; a hostile header would be walked over and over
    print(json.dumps(_answer(json.loads(order)), allow_nan=False), flush=True)
    os._exit(0)  # numpy has nothing to tidy up, and the uploader waits


def _answer(order: dict[str, Any]) -> dict[str, object]:
    try:
        read = _reader(**order["read"])
        sandbox.enter(order["seconds"])
        return {"facts": read(Upload(0))}
    except BadFile as bad:
        return {"bad": {"title": bad.title, "detail": bad.detail}}
    except MemoryError:
        return {"bad": {"title": UNCHECKED, "detail": "it needs more memory than a check may use"}}
    except Exception:
        return {"crash": traceback.format_exc()[-2000:]}


def _reader(format: str, **limits: int) -> Reader:
    """Imported here, while modules can still be opened, and only what this file takes."""
    if format == "safetensors":
        from service.files.safetensors import read_weights

        return read_weights
    from service.files.npz import Limits, read_splits

    return partial(read_splits, limits=Limits(**limits))


if __name__ == "__main__":
    main(sys.argv[1])
