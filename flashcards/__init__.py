"""Capture what a network knows, and replay it after the data is gone."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flashcards.client import Client
    from flashcards.client.aio import AsyncClient
    from flashcards.measure import measure_capsule
    from flashcards.torch_data import torch_dataset
    from flashcards.views import show

__all__ = ["AsyncClient", "Client", "measure_capsule", "show", "torch_dataset"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Importing the contract must not pull in the HTTP client: every room imports the contract.
    if name == "Client":
        from flashcards.client import Client

        return Client
    if name == "AsyncClient":
        from flashcards.client.aio import AsyncClient

        return AsyncClient
    if name == "measure_capsule":
        from flashcards.measure import measure_capsule

        return measure_capsule
    if name == "show":
        from flashcards.views import show

        return show
    if name == "torch_dataset":
        from flashcards.torch_data import torch_dataset

        return torch_dataset
    raise AttributeError(f"module 'flashcards' has no attribute {name!r}")
