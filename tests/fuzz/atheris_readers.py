"""Coverage-guided fuzzing of the readers: `python -m tests.fuzz.atheris_readers FORMAT --minutes 10`.

It starts from the valid files and the kept corpus, and adds files to the corpus that reach more of the readers' code. A
file that breaks a rule of tests.fuzz.harness is left as `crash-*` in the current folder, and the exit code is not 0.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.fuzz import avro
from tests.fuzz.corpus import FORMATS, kept
from tests.fuzz.mutations import mutate

_NAME = "tests.fuzz.atheris_readers"
_MOST, _KEPT = 20_000, 2_500  # bytes of a file


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the reader of a format.")
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--worker", metavar="SCRIPT", help=argparse.SUPPRESS)
    args, options = parser.parse_known_args()
    if args.worker:
        _work(args.format, [args.worker, *options])
    elif options:
        parser.error(f"unknown: {' '.join(options)}")
    corpus = kept(args.format)
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds, found, least = (Path(folder) / name for name in ("seeds", "found", "least"))
        for new in (seeds, found, least):
            new.mkdir()
        from tests.fuzz.seeds import SEEDS  # not at the top: a worker imports the readers itself

        for number, data in enumerate(SEEDS[args.format]):
            (seeds / str(number)).write_bytes(data)
        # libFuzzer ends its process, and restarts itself by its name to merge.
        script = Path(folder) / "worker"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m {_NAME} {args.format} --worker "$0" "$@"\n')
        script.chmod(0o700)
        run = [script, "-print_final_stats=1", f"-max_len={_MOST}", "-timeout=60", "-rss_limit_mb=4096"]
        fuzzed = subprocess.run([*run, f"-max_total_time={60 * args.minutes:.0f}", found, corpus, seeds], check=False)
        subprocess.run([*run, "-merge=1", least, corpus, found], check=True)
        assert any(least.iterdir()), "nothing was merged"
        for file in corpus.iterdir():
            file.unlink()
        for file in least.iterdir():
            if file.stat().st_size <= _KEPT:  # the suite reads them all
                shutil.copy(file, corpus)
    return fuzzed.returncode


def _work(format_: str, options: list[str]) -> None:
    import atheris  # the test suite imports this file without it

    with atheris.instrument_imports(include=["transforms"]):
        from tests.fuzz.harness import check
        from tests.fuzz.seeds import SEEDS
    seeds = SEEDS[format_]

    def change(data: bytes, most: int, seed: int) -> bytes:
        choose = Random(seed)
        if choose.random() < 0.3:
            return atheris.Mutate(data, most)
        if format_ == "avro" and choose.random() < 0.5:
            return avro.odd_file(choose)[:most]
        return mutate(data, choose.choice(seeds), choose)[:most]

    atheris.Setup(options, lambda data: check(format_, data) and None, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
