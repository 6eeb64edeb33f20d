"""Coverage-guided fuzzing of readers and parsers: `python -m tests.fuzz.guided [TARGET ...] --minutes 10`.

It starts from valid texts and, for readers, from the kept corpus, and adds files to this corpus that reach more of the
readers' code. A file that breaks a rule of tests.fuzz.harness or tests.fuzz.parsers is left as `crash-*` in the current
folder, and the exit code is not 0.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz import avro
from tests.fuzz.corpus import FORMATS, PARSERS, kept
from tests.fuzz.mutations import mutate

_NAME = "tests.fuzz.guided"
_MOST, _KEPT = 20_000, 2_500  # bytes of a file
_CODE = {"readers": ["transforms"], "parsers": ["pipelines.spec", "pipelines.local", "pipelines.sanitised", "privacy"]}


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the readers of formats, and the parsers of specs.")
    parser.add_argument("target", nargs="*", help=f"any of {', '.join((*FORMATS, *PARSERS))}; default: all")
    parser.add_argument("--minutes", type=float, default=10, help="of each target")
    parser.add_argument("--worker", metavar="SCRIPT", help=argparse.SUPPRESS)
    args, options = parser.parse_known_args()
    if args.worker:
        _work(args.target[0], [args.worker, *options])
    elif options:
        parser.error(f"unknown: {' '.join(options)}")
    return max(_fuzzed(target, args.minutes) for target in args.target or (*FORMATS, *PARSERS))


def _fuzzed(target: str, minutes: float) -> int:
    print(f"{target} ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds, found, least, none = (Path(folder) / name for name in ("seeds", "found", "least", "none"))
        for new in (seeds, found, least, none):
            new.mkdir()
        for number, data in enumerate(_seeds(target)):
            (seeds / str(number)).write_bytes(data)
        corpus = kept(target) if target in FORMATS else none
        # libFuzzer ends its process, and restarts itself by its name to merge.
        script = Path(folder) / "worker"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m {_NAME} {target} --worker "$0" "$@"\n')
        script.chmod(0o700)
        run = [script, "-print_final_stats=1", f"-max_len={_MOST}", "-timeout=60", "-rss_limit_mb=4096"]
        fuzzed = subprocess.run([*run, f"-max_total_time={60 * minutes:.0f}", found, corpus, seeds], check=False)
        if target in FORMATS:
            subprocess.run([*run, "-merge=1", least, corpus, found], check=True)
            _keep(least, corpus)
    return fuzzed.returncode


def _keep(least: Path, corpus: Path) -> None:
    assert any(least.iterdir()), "nothing was merged"
    for file in corpus.iterdir():
        file.unlink()
    for file in least.iterdir():
        if file.stat().st_size <= _KEPT:  # the suite reads them all
            shutil.copy(file, corpus)


def _seeds(target: str) -> list[bytes]:
    if target in FORMATS:
        from tests.fuzz.seeds import SEEDS  # not at the top: a worker imports the readers itself

        return [*SEEDS[target]]
    from tests.fuzz.parsers import SEEDS as TEXTS

    return [*TEXTS[target]]


def _work(target: str, options: list[str]) -> None:
    import atheris  # the test suite imports this file without it

    check: Callable[[str, bytes], object]
    with atheris.instrument_imports(include=_CODE["readers" if target in FORMATS else "parsers"]):
        if target in FORMATS:
            from tests.fuzz.harness import check
        else:
            from tests.fuzz.parsers import check
        seeds = _seeds(target)

    def change(data: bytes, most: int, seed: int) -> bytes:
        choose = Random(seed)
        if choose.random() < 0.3:
            return atheris.Mutate(data, most)
        if target == "avro" and choose.random() < 0.5:
            return avro.odd_file(choose)[:most]
        return mutate(data, choose.choice(seeds), choose)[:most]

    atheris.Setup(options, lambda data: check(target, data) and None, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
