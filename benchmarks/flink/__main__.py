"""Kill parts of a stream on Flink with SIGKILL at random moments, again and again, and watch what is published.

    python -m benchmarks.flink --kills 50

Killed are Python workers (half of them while they sample or commit), the task manager and the driver. Flink puts the
stream back to its last checkpoint; where it gives up, and after the driver, the stream is started again from the store.
All that was ever published is held against what is there, and at the end against one run over all files (`live.py`).
Needs Java and Maven. Ends with 1 as soon as anything is wrong, and leaves the files.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.crash.checks import BrokenError
from benchmarks.emptied import emptied
from benchmarks.flink.live import Live
from templates.flink.local import cluster

KILLS_A_STREAM = 10
TURNS = ("worker", "worker that samples", "task manager", "worker", "worker that samples", "driver")


def kill(live: Live, part: str) -> bool:
    """One part, at a random moment; whether it was there."""
    if part == "worker that samples":
        attempts = live.folder / "private/attempts"
        before, end = set(attempts.glob("*")), time.monotonic() + 30
        while not set(attempts.glob("*")) - before and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.3))
    else:
        time.sleep(random.uniform(0, 3))
    kills: dict[str, Callable[[], bool]] = {"task manager": live.kill_task_manager, "driver": live.kill_driver}
    return kills.get(part, live.kill_worker)()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, help="how many in all")
    parser.add_argument("--folder", type=Path, default=Path("out/benchmarks/flink"), help="is emptied first")
    arguments = parser.parse_args()
    folder = emptied(arguments.folder.resolve())
    began, streams, kills = time.monotonic(), 0, Counter[str]()
    try:
        with cluster(folder / "cluster") as flink:
            while kills.total() < arguments.kills:
                live = Live.begin(folder / f"stream-{streams}", flink)
                live.go_on(1)
                for turn in range(min(KILLS_A_STREAM, arguments.kills - kills.total() - 1)):
                    part = TURNS[turn % len(TURNS)]
                    kills[part] += kill(live, part)
                    if random.random() < 0.5:  # else the next kill is while the stream is being mended
                        live.go_on(live.committed + 1)
                    live.look()
                    print(f"{kills.total()} kills, {live.committed} windows, {part}", file=sys.stderr, flush=True)
                kills["driver"] += live.end_soon()
                live.finish(folder / f"runs-{streams}")
                streams += 1
    except BrokenError as error:
        print(f"broken: {error}", file=sys.stderr)
        return 1
    finally:
        print(f"| streams | {' | '.join(kills)} |\n|--:|{'--:|' * len(kills)}")
        print(f"| {streams} | {' | '.join(map(str, kills.values()))} |")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
