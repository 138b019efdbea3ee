class CannotBegin(Exception):
    """What the job was to start from is not there, or not what it was when the job was queued."""

    def __init__(self, type: str, title: str, detail: str) -> None:
        super().__init__(detail)
        self.type, self.title, self.detail = type, title, detail
