import io
from collections.abc import AsyncIterator
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload
from uuid import uuid4

import numpy as np
from numpy.lib.format import open_memmap

from flashcards.client.aio.bound import Bound
from flashcards.client.aio.resource import Resource, at
from flashcards.client.files import target, zip_array
from flashcards.client.tensors import Cards, Framework, as_tensor
from flashcards.contract.resources import Flashcards, Page
from flashcards.errors import UnexpectedAnswer
from flashcards.torch_data import Transform, torch_dataset

BYTES_AT_ONCE = 16 * 1024**2
FileFormat = Literal["npy", "npz", "parquet"]


class BoundFlashcards(Flashcards, Bound):
    """A set of cards that can be asked for them."""

    @overload
    async def cards(self, framework: Literal["numpy"] = "numpy") -> Cards: ...

    @overload
    async def cards(self, framework: Literal["torch"]) -> Any: ...

    async def cards(self, framework: Framework = "numpy") -> Any:
        """All of them: a numpy array N x H x W x C, or a torch tensor N x C x H x W."""
        found = [cards async for cards in FlashcardSets(self._http).all_cards(self.id)]
        return as_tensor(found, framework)

    async def dataset(self, folder: str | PathLike[str] | None = None, transform: Transform | None = None) -> Any:
        """All cards as a torch `Dataset` of tensors C x H x W; with `folder` they lie there, and not in memory."""
        if folder is None:
            return torch_dataset(await self.cards(), self.recipe.range, transform)
        path = await FlashcardSets(self._http).download(self.id, folder)
        return torch_dataset(path, self.recipe.range, transform)


class FlashcardSets(Resource[BoundFlashcards]):
    path = "/v1/flashcards"
    item = BoundFlashcards
    page = Page[BoundFlashcards]

    async def cards(self, id: str, offset: int = 0, limit: int = 100) -> Cards:
        """Some of the cards: an array N x H x W x C."""
        content = await self._http.content(at(self.path, id, "cards"), {"offset": offset, "limit": limit})
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as found:
                cards: Cards = found["x"]
        except (ValueError, KeyError, OSError) as error:
            raise UnexpectedAnswer(f"the service answered with something that holds no cards: {error}") from error
        return cards

    async def all_cards(self, id: str) -> AsyncIterator[Cards]:
        """All cards, some at a time, so that a large set needs little memory."""
        recipe = (await self.get(id)).recipe
        at_once = max(1, BYTES_AT_ONCE // (4 * recipe.input.pixels))
        for offset in range(0, recipe.count, at_once):
            yield await self.cards(id, offset, min(at_once, recipe.count - offset))

    async def download(self, id: str, to: str | PathLike[str], format: FileFormat = "npy") -> Path:
        """All cards as one file, to the file or into the folder `to`: npy, npz (array `x`), or parquet with PNGs."""
        if format == "parquet":
            return await self._http.download(at(self.path, id, "cards.parquet"), to, f"{id}.parquet")
        path = target(to, f"{id}.{format}")
        if format == "npy":
            return await self._download_npy(id, path)
        npy = await self._download_npy(id, path.with_name(f".{path.name}.{uuid4().hex[:8]}.npy"))
        try:
            zip_array(npy, path)
        finally:
            npy.unlink()
        return path

    async def _download_npy(self, id: str, path: Path) -> Path:
        recipe = (await self.get(id)).recipe
        part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
        try:
            file = open_memmap(part, "w+", recipe.dtype, (recipe.count, *recipe.input))
            offset = 0
            async for cards in self.all_cards(id):
                file[offset : offset + len(cards)] = cards
                offset += len(cards)
            file.flush()
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return path

    async def sheet(self, id: str, to: str | PathLike[str]) -> Path:
        """The contact sheet, a PNG, to the file or into the folder `to`."""
        return await self._http.download(at(self.path, id, "sheet.png"), to, f"{id}.png")
