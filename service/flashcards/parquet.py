"""Cards as parquet with image bytes: one column `image`, a struct of `bytes` (PNG) and `path`.

That is how the Hugging Face libraries keep images: `datasets.load_dataset("parquet", data_files=...)` gives pictures.
"""

import io
import json
import os
from collections.abc import Iterator

# Before pyarrow is loaded: its own allocators crash where the thread that loaded it has ended (apache/arrow#50908), and
# the threads of a server come and go.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from flashcards.contract.recipe import Recipe
from service.flashcards.cards import as_pixels
from service.sink import Sink

CARDS_AT_ONCE = 500  # a row group
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
FEATURES = {"info": {"features": {"image": {"_type": "Image"}}}}


def parquet_chunks(batches: Iterator[np.ndarray], recipe: Recipe) -> Iterator[bytes]:
    """A row group a batch; the recipe stands in the metadata of the schema."""
    metadata = {"huggingface": json.dumps(FEATURES), "flashcards.recipe": recipe.model_dump_json()}
    schema = pa.schema([("image", IMAGE)], metadata)
    sink, first = Sink(), 0
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="none") as writer:
        for cards_NHWC in batches:
            writer.write_batch(_rows(cards_NHWC, recipe.range, first, schema))
            first += len(cards_NHWC)
            yield sink.take()
    yield sink.take()


def _rows(cards_NHWC: np.ndarray, bounds: tuple[float, float], first: int, schema: pa.Schema) -> pa.RecordBatch:
    images = [
        {"bytes": _png(pixels), "path": f"card-{first + place:06d}.png"}
        for place, pixels in enumerate(as_pixels(cards_NHWC, *bounds))
    ]
    return pa.record_batch([pa.array(images, IMAGE)], schema=schema)


def _png(pixels_HWC: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels_HWC[..., 0] if pixels_HWC.shape[2] == 1 else pixels_HWC).save(buffer, "PNG")
    return buffer.getvalue()
