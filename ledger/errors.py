"""What the record refuses, in words. The service gives each its HTTP status.

LedgerError
├── NotFound          no such thing, or not the caller's
├── Conflict          it is there, but not in a state that allows this
├── Unfit             a spec that does not go with what exists (carries the field)
├── TooManyJobs       the key's quota of unfinished jobs is used up
├── NoRoom            the key's quota of stored bytes is used up
├── Incomplete        parts of an upload are missing
├── Complete          an upload has become a resource before
├── WrongDigest       what came is not what was announced
├── NoLinks           the store gives no links that files can be put to
├── StoreAway         the store of files does not answer, or refuses us
├── BackupError       a backup cannot be taken, or not be restored here
├── TrackerAway       the tracking server does not answer
└── TrackerRefused    the tracking server answers, and will not have it
    └── RunGone       it knows nothing of a run that it gave us
"""


class LedgerError(Exception):
    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class NotFound(LedgerError):
    def __init__(self, what: str, id: str) -> None:
        super().__init__(f"there is no {what} {id}")


class Conflict(LedgerError):
    pass


class Unfit(LedgerError):
    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field


class TooManyJobs(LedgerError):
    pass


class NoRoom(LedgerError):
    pass


class Incomplete(LedgerError):
    pass


class Complete(LedgerError):
    pass


class WrongDigest(LedgerError):
    pass


class NoLinks(LedgerError):
    pass


class StoreAway(LedgerError):
    def __init__(
        self, passes: bool, detail: str = "files cannot be read or written right now; try again later"
    ) -> None:
        super().__init__(detail)
        self.passes = passes  # worth waiting for; a refusal is not


class BackupError(LedgerError):
    pass


class TrackerAway(LedgerError):
    pass


class TrackerRefused(LedgerError):
    def __init__(self, detail: str, final: bool = False) -> None:
        super().__init__(detail)
        self.final = final  # asking again makes no sense


class RunGone(TrackerRefused):
    pass
