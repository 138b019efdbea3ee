"""What an SRE reads: what was done to the service, what it cost, and what went wrong."""

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

from tests.chaos.state import Met, State


def write(folder: Path, states: list[State]) -> Path:
    """report.md for people, report.json for machines."""
    told = [{**asdict(state), "killed": state.killed} for state in states]
    (folder / "report.json").write_text(json.dumps(told, indent=1))
    path = folder / "report.md"
    path.write_text("# Chaos\n\n" + "\n".join(_run(state) for state in states))
    return path


def _run(state: State) -> str:
    found = state.summary
    lines = [
        f"## {state.stack}, seed {state.seed}: {_verdict(state)}",
        "",
        f"{state.killed} kills and {len(state.troubles) - state.killed} other troubles in {state.seconds:.0f} s.",
        "",
        "| | |",
        "|---|---|",
        f"| jobs accepted | {found.get('accepted', len(state.jobs))} |",
        f"| succeeded | {found.get('succeeded', 0)} |",
        f"| cancelled, as asked | {found.get('cancelled', 0)} |",
        f"| attempts | {found.get('attempts', 0)}, at most {found.get('most_attempts', 0)} for one job |",
        f"| trainings that were resumed | {found.get('resumed_trainings', 0)} |",
        f"| of these with the weights of an unbroken run | {found.get('identical', 0)} |",
        f"| jobs asked for again after a full disk | {state.retried} |",
        f"| requests that the client had to repeat | {state.asked_again} |",
        f"| longest time to recover | {_longest(state):.1f} s |",
        f"| longest time that work waited and nothing moved | {state.longest_silence:.1f} s |",
        f"| looks at the whole record | {state.checks} |",
        "",
        "| trouble | times | recovered in, median | longest |",
        "|---|---|---|---|",
        *_troubles(state.troubles),
        *(f"| {name} | not made: {why} | | |" for name, why in state.skipped.items()),
        "",
    ]
    if state.violations:
        lines += ["Violations:", "", *(f"- {violation}" for violation in state.violations), ""]
    return "\n".join(lines)


def _verdict(state: State) -> str:
    if state.violations:
        return f"{len(state.violations)} violations"
    return "every promise was kept" if state.finished else "unfinished"


def _longest(state: State) -> float:
    return max((met.recovered_seconds or 0.0 for met in state.troubles), default=0.0)


def _troubles(troubles: list[Met]) -> list[str]:
    by_name: dict[str, list[Met]] = defaultdict(list)
    for met in troubles:
        by_name[met.name].append(met)
    return [f"| {name} | {len(mets)} | {_recovered(mets)} |" for name, mets in sorted(by_name.items())]


def _recovered(mets: list[Met]) -> str:
    seconds = sorted(met.recovered_seconds for met in mets if met.recovered_seconds is not None)
    return f"{seconds[len(seconds) // 2]:.1f} s | {seconds[-1]:.1f} s" if seconds else "- | -"
