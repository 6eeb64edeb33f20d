"""Synthetic changelogs for whole runs: everything that makes real ones awkward, and the files that hold them.

Stays in wards, some of which were there before the changelog begins. They are changed, moved, deleted and inserted
again; mutations share an instant, come twice (also in another file), get lost, lie before the start and after the end.
"""

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 10

State = dict[str, Any] | None

STATE = pa.struct(
    [
        ("ward", pa.string()),
        ("care", pa.string()),
        ("x", pa.float64()),
        ("n", pa.int64()),
        ("fare", pa.string()),
        ("nurse", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("stay", pa.string()),
        ("person", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("lsn", pa.string()),
        ("pos", pa.int64()),
        ("before", STATE),
        ("after", STATE),
    ]
)

VALUES = [-math.inf, -1e300, -4.0, -3.0, -0.125, 0.0, 2.5, 5.0, 6.5, math.inf, math.nan, None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change; `seq` orders those of one instant, `person` owns the stay, `nurse` of a state is another owner."""

    stay: str
    person: str
    at: datetime
    seq: int
    before: State
    after: State


def generate(seed: int, *, stays: int = 250, order: bool = True, plain: bool = False) -> list[Mutation]:
    """Mutations in any order, some of them twice.

    Args:
        order: whether `seq` is in the files; otherwise only images order changes of one instant.
        plain: without NaN and infinity, which JSON cannot hold.
    """
    chance = random.Random(seed)
    mutations: list[Mutation] = []
    for stay in range(stays):
        chain = _chain(chance, f"s{stay:03}", f"p{stay * 2 // 5:03}", order)
        # Where images alone tell the order of an instant, the state before it must be in the changelog.
        linked = not order and len({m.at for m in chain}) < len(chain)
        mutations += (m for m in chain if chance.random() > 0.03 or linked)
    if plain:
        mutations = [replace(m, before=_plain(m.before), after=_plain(m.after)) for m in mutations]
    mutations += chance.sample(mutations, len(mutations) // 20)
    chance.shuffle(mutations)
    return mutations


def _chain(chance: random.Random, stay: str, person: str, order: bool) -> list[Mutation]:
    hours = sorted(chance.randrange(-6 * 24, (DAYS + 4) * 24) for _ in range(int(chance.expovariate(0.18))))
    state = _state(chance) if chance.random() < 0.25 else None
    chain: list[Mutation] = []
    here = [state]
    seq = 0
    for hour in hours:
        at = START + timedelta(hours=hour)
        if chain and len(here) < 4 and chance.random() < 0.15:
            at = chain[-1].at
        here = [*here, state] if chain and at == chain[-1].at else [state]
        returns = len(here) == 2 and chain[0].at < at and chance.random() < 0.3
        after = here[0] if returns else _next(chance, state, None if order else here)
        seq += chance.randint(1, 3)
        chain.append(Mutation(stay, person, at, seq, state, after))
        state = after
    return chain


def _next(chance: random.Random, state: State, distinct_from: list[State] | None) -> State:
    if state is not None and chance.random() < 0.2 and (distinct_from is None or None not in distinct_from):
        return None
    after = _state(chance)
    if state is not None:
        after = {name: state[name] if chance.random() < 0.6 else value for name, value in after.items()}
    if distinct_from is not None:
        taken = [other["x"] for other in distinct_from if other is not None]
        free = [x for x in (0.25, 0.5, 0.75, 1.0, 1.25) if x not in taken]
        after["x"] = chance.choice(free)
    return after


def _state(chance: random.Random) -> dict[str, Any]:
    return {
        "ward": chance.choice(["a", "a", "b", "c", "other", None]),
        "care": chance.choice(["in", "in", "out", "day"]),
        "x": chance.choice([*VALUES, chance.randrange(-24, 40) / 8]),
        "n": chance.randrange(0, 40),
        "fare": chance.choice(["multi", "multi", "pass", "pass", "free", None]),
        "nurse": f"q{chance.randrange(100):03}",
    }


def _plain(state: State) -> State:
    if state is None or state["x"] is None or math.isfinite(state["x"]):
        return state
    return {**state, "x": None if math.isnan(state["x"]) else math.copysign(1e300, state["x"])}


def table(mutations: Sequence[Mutation]) -> pa.Table:
    """Return a table with all columns, and states as structs."""
    rows = [
        {
            "stay": m.stay,
            "person": m.person,
            "at": m.at,
            "lsn": f"{m.seq // 4:04}",
            "pos": m.seq % 4,
            "before": m.before,
            "after": m.after,
        }
        for m in mutations
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def flat(changelog: pa.Table, *, prefixes: bool = True) -> pa.Table:
    """Return the states' columns next to the others, as `before_ward`; without prefixes those of `after` alone."""
    columns = {name: changelog[name] for name in changelog.column_names if name not in ("before", "after")}
    for side in ("before", "after") if prefixes else ("after",):
        states = changelog[side].combine_chunks()
        for field, column in zip(STATE, states.flatten(), strict=True):
            columns[f"{side}_{field.name}" if prefixes else field.name] = column
    return pa.table(columns)


def cut(mutations: Sequence[Mutation], files: int) -> list[list[Mutation]]:
    """Parts of about the same length: one file each."""
    size = -(-len(mutations) // files)
    return [list(mutations[begin : begin + size]) for begin in range(0, len(mutations), size)]


def write_parquet(changelog: pa.Table, path: Path) -> None:
    """Small row groups, so that a file is read in several splits."""
    pq.write_table(changelog, path, row_group_size=300)


def write_csv(changelog: pa.Table, path: Path) -> None:
    """Times as ISO 8601."""
    pyarrow.csv.write_csv(_text_times(changelog), path)


def write_jsonl(changelog: pa.Table, path: Path) -> None:
    """One object a line; a state is an object or null."""
    path.write_text("".join(json.dumps(row) + "\n" for row in _text_times(changelog).to_pylist()), encoding="utf-8")


Writer = Callable[[pa.Table, Path], None]
WRITERS: dict[str, Writer] = {"parquet": write_parquet, "csv": write_csv, "jsonl": write_jsonl}


def _text_times(changelog: pa.Table) -> pa.Table:
    text = pa.compute.strftime(changelog["at"], format="%Y-%m-%dT%H:%M:%SZ")
    return changelog.set_column(changelog.schema.get_field_index("at"), "at", text)
