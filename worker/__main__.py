"""`python -m worker`: one worker process."""

from flashcards.leash import leave_with_parent


def main() -> None:
    # Before the imports, which take seconds on a busy machine: a parent that dies meanwhile is missed as well.
    leave_with_parent()
    from worker.process import run

    run()


if __name__ == "__main__":
    main()
