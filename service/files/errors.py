UNCHECKED = "the file could not be checked"


class BadFile(Exception):
    """An upload that is refused; `detail` says what its owner can do about it."""

    def __init__(self, title: str, detail: str) -> None:
        super().__init__(f"{title}: {detail}")
        self.title = title
        self.detail = detail
