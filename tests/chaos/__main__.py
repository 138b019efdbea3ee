"""`make chaos`: break the service in every way we know, over and over, and see that it keeps its promises."""

import argparse
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from tests.chaos.disk import enter_namespace  # noqa: E402


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--stack", choices=["embedded", "servers", "both"], default="both")
    parser.add_argument("--kills", type=int, default=100, help="kill -9 a run; other troubles come on top")
    parser.add_argument("--seed", type=int, default=None, help="of one run; the same seed makes the same troubles")
    parser.add_argument("--seeds", default="1", help="of several runs, as in 1,2,3")
    parser.add_argument("--pause", type=float, default=2.5, help="seconds between two troubles, at most")
    parser.add_argument("--own", action="store_true", help="only the troubles that the other stack cannot have")
    parser.add_argument("--folder", type=Path, default=ROOT / ".chaos", help="state, data, logs and the report")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier, unfinished run has done")
    return parser.parse_args()


def main() -> int:
    from tests.chaos import report
    from tests.chaos.run import Run
    from tests.chaos.screen import Screen

    wanted = options()
    seeds = [wanted.seed] if wanted.seed is not None else [int(seed) for seed in wanted.seeds.split(",")]
    stacks = ["embedded", "servers"] if wanted.stack == "both" else [wanted.stack]
    states = []
    with Screen() as screen:
        try:
            for stack in stacks:
                for seed in seeds:
                    folder = wanted.folder.absolute() / f"{stack}-{seed}"
                    if wanted.fresh:
                        shutil.rmtree(folder, ignore_errors=True)
                    run = Run(folder, stack, seed, wanted.kills, wanted.pause, own=wanted.own)
                    states.append(run.state)
                    screen.watch(run.state)
                    if not run.state.finished:
                        run.go(screen.show)
        except KeyboardInterrupt:
            screen.close()
            print("interrupted; the same command goes on from here, --fresh begins anew")
            return 130
    path = report.write(wanted.folder, states)
    print(path.read_text())
    return 1 if any(state.violations for state in states) else 0


if __name__ == "__main__":
    enter_namespace()
    sys.exit(main())
