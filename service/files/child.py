"""`python -I -m service.files.child ORDER < upload`: one JSON line on stdout, and the end.

Most orders are to read. Those that convert get one more open descriptor, of an empty file that they may fill.
No pydantic in here, but for capsules, which are few: it would double the time that an upload waits for its answer.
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
from service.files.out import NoRoom, Out
from service.files.upload import Upload

Reader = Callable[[Upload], object]
Maker = Callable[[Upload, Out], object]


def main(order: str) -> None:
    gc.disable()  # short-lived and limited anyway; a hostile header would be walked over and over
    print(json.dumps(_answer(json.loads(order)), allow_nan=False), flush=True)
    os._exit(0)  # numpy has nothing to tidy up, and the uploader waits


def _answer(order: dict[str, Any]) -> dict[str, object]:
    try:
        return {"facts": _facts(order["read"], order["seconds"], **order["out"])}
    except BadFile as bad:
        return {"bad": {"title": bad.title, "detail": bad.detail}}
    except NoRoom as full:
        return {"full": full.errno}
    except MemoryError:
        return {"bad": {"title": UNCHECKED, "detail": "it needs more memory than a check may use"}}
    except Exception:
        return {"crash": traceback.format_exc()[-2000:]}


def _facts(read: dict[str, Any], seconds: int, fd: int | None = None, most: int = 0) -> object:
    """Modules are imported first, while they can still be opened, and only what this file takes."""
    if fd is None:
        look = _reader(**read)
        sandbox.enter(seconds)
        return look(Upload(0))
    make = _maker(**read)
    sandbox.enter(seconds, fd, most)
    with Out(fd) as out:
        return make(Upload(0), out)


def _reader(format: str, **limits: Any) -> Reader:
    if format == "weights":
        from service.files.weights import read_weights

        return lambda upload: read_weights(upload).told()
    if format == "safetensors":
        from service.files.safetensors import read_safetensors

        return lambda upload: read_safetensors(upload).told()
    if format == "onnx":
        from service.files.graph.read import read_onnx

        return partial(read_onnx, **limits)
    if format == "capsule":
        import flashcards.contract.capsule
        from service.files.capsule import read_capsule

        return read_capsule
    if format == "bundle":
        import flashcards.contract.capsule  # noqa: F401
        from service.files.model_bundle import read_model_bundle

        return read_model_bundle
    from service.files.dataset import read_dataset
    from service.files.npz import Limits

    return partial(read_dataset, limits=Limits(**limits))


def _maker(format: str, **told: Any) -> Maker:
    if format == "weights":
        from service.files.tensors import write_weights
        from service.files.weights import read_weights

        return lambda upload, out: write_weights(upload, out, read_weights(upload), **told)
    from service.files.parts import Wanted

    if format == "parquet":  # pyarrow takes half a second, and no other format has to wait for it
        from service.files.parquet import write_parquet

        return partial(write_parquet, wanted=Wanted(**told))
    from service.files.convert import write_dataset

    return partial(write_dataset, wanted=Wanted(**told))


if __name__ == "__main__":
    main(sys.argv[1])
