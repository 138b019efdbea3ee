from uuid_utils import uuid7


def new_id(what: str) -> str:
    """Time-ordered, so that newest-first pages and the order of the queue are the order of ids."""
    return f"{what}_{uuid7().hex}"
