"""Everything that goes wrong on the user's side.

FlashcardsError
├── ConnectionFailed     nobody answers at the address
├── UnexpectedAnswer     somebody answers, but not as this client knows it
├── TimedOut             the job has not ended in the time given
├── JobFailed            the job has ended, and not as asked for: `job`, and why in `job.error`
├── NothingMade          the job has not made what it is asked for
├── CannotStart          the service could not be started
├── DownloadFailed       a published dataset did not come, or not as it must be
└── ApiError             the service refuses and says why: `type`, `title`, `detail`, `errors`, `status`
    ├── Unauthorized     401, no key or one that opens nothing
    ├── Forbidden        403
    ├── NotFound         404
    ├── Conflict         409
    ├── TooLarge         413
    ├── Invalid          422, `errors` names the fields
    ├── TooOften         429, after some patience
    └── ServiceFault     5xx
"""

from flashcards.contract.resources import FieldProblem, Job, Problem


class FlashcardsError(Exception):
    """The root: one `except` for all of them."""


class ConnectionFailed(FlashcardsError):
    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"no answer from {url} ({reason}). Is the service running? `flashcards serve` starts it; "
            "FLASHCARDS_URL or --url names another address."
        )
        self.url = url


class UnexpectedAnswer(FlashcardsError):
    pass


class TimedOut(FlashcardsError, TimeoutError):
    pass


class JobFailed(FlashcardsError):
    def __init__(self, job: Job) -> None:
        why = f": {job.error.title}. {job.error.detail}" if job.error else ""
        super().__init__(f"{job.id} {'has' if job.state == 'failed' else 'was'} {job.state}{why}")
        self.job = job


class NothingMade(FlashcardsError):
    pass


class CannotStart(FlashcardsError):
    pass


class DownloadFailed(FlashcardsError):
    pass


class ApiError(FlashcardsError):
    def __init__(self, problem: Problem, status: int, retry_after: float | None = None) -> None:
        super().__init__(f"{problem.title}: {problem.detail}")
        self.problem = problem
        self.status = status
        self.retry_after = retry_after

    @property
    def type(self) -> str:
        """Stable: what a program tells one refusal from another by."""
        return self.problem.type

    @property
    def title(self) -> str:
        return self.problem.title

    @property
    def detail(self) -> str:
        return self.problem.detail

    @property
    def errors(self) -> list[FieldProblem]:
        """The fields that are wrong, where there are such."""
        return self.problem.errors or []

    @property
    def request_id(self) -> str | None:
        """What the log of the service calls the request."""
        return self.problem.instance


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class TooLarge(ApiError):
    pass


class Invalid(ApiError):
    pass


class TooOften(ApiError):
    pass


class ServiceFault(ApiError):
    pass


BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: Invalid,
    429: TooOften,
}


def api_error(problem: Problem, status: int, retry_after: float | None = None) -> ApiError:
    kind = BY_STATUS.get(status, ServiceFault if status >= 500 else ApiError)
    return kind(problem, status, retry_after)
