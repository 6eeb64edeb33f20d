"""Kill parts of a stream on Flink repeatedly with SIGKILL at random moments, and check the published files.

    python -m benchmarks.flink --kills 50

The parts are Python workers (half of them while they sample or commit), the task manager and the driver. Flink resets
the stream to its last checkpoint; if it gives up, or the driver was killed, the stream starts again from the store.
After each kill, the files are compared with everything that was seen before, and at the end with one run over all files
(`live.py`). The program needs Java and Maven. It ends with exit code 1 at the first failure, and keeps the files.
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
    """Kill one part at a random moment; return whether it was running."""
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
    parser.add_argument("--kills", type=int, default=50, help="total number of kills")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/benchmarks/flink"), help="folder of the streams; it is emptied first"
    )
    arguments = parser.parse_args()
    folder = emptied(arguments.folder.resolve())
    began, streams, kills = time.monotonic(), 0, Counter[str]()
    try:
        with cluster(folder / "cluster") as flink:
            while kills.total() < arguments.kills:
                live = Live.begin(folder / f"stream-{streams}", flink)
                live.wait_for(1)
                for turn in range(min(KILLS_A_STREAM, arguments.kills - kills.total() - 1)):
                    part = TURNS[turn % len(TURNS)]
                    kills[part] += kill(live, part)
                    if random.random() < 0.5:  # otherwise the next kill comes while the stream recovers
                        live.wait_for(live.committed + 1)
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
