"""Each rule of the spec, broken once: the error is one line that names file, line and key."""

from pathlib import Path

import pytest

from privacy.constraint import AtOnce
from tests.pipelines.spec_text import GOOD, changed, loaded, problems

BROKEN = [
    # text of the spec, its replacement, the error
    ("release: wards", "release: Wards 1", "1: release: expected a name of lower-case letters"),
    ("release: wards", "release: 2026", "1: release: expected text, not 2026; put it in quotes"),
    ("format: parquet", "format: debezium", "6: changelog.time: format debezium says this itself; leave it out, or"),
    ("format: parquet", "format: datastream", "6: changelog.time: format datastream says this itself; leave it out"),
    ("format: parquet", "every: 1d\n  format: parquet", "3: changelog.every: only for format: snapshots"),
    (
        "format: parquet",
        "format: parket",
        "3: changelog.format: expected one of parquet, csv, jsonl, debezium, datastream, snapshots, not 'park",
    ),
    (
        "format: parquet",
        "format: [csv]",
        "3: changelog.format: expected one of parquet, csv, jsonl",
    ),
    ("path: data/*.parquet", "path: []", "4: changelog.path: expected at least 1, not an empty"),
    ("path: data/*.parquet", "path: [a, 1]", "4: changelog.path[1]: expected text, not 1; put"),
    ("path: data/*.parquet", 'path: ""', "4: changelog.path: expected text that is not empty"),
    (
        "path: data/*.parquet",
        "path: out/public/x/*",
        "4: changelog.path: lies inside output.public",
    ),
    ("  time: at", "  time: stay", "6: changelog.time: the same column as entry"),
    (
        "  time: at",
        "  time: at\n  timezone: Europe/Pari",
        "7: changelog.timezone: 'Europe/Pari' is",
    ),
    (
        "  time: at",
        "  time: at\n  timezone: Berlin",
        "7: changelog.timezone: 'Berlin' is not an IANA time zone; did you mean 'Europe/Berlin'?",
    ),
    (
        "  time: at",
        "  time: at\n  timezone: new york",
        "7: changelog.timezone: 'new york' is not an IANA time zone; did you mean 'America/New_York'?",
    ),
    ("  time: at", "  time: at\n  timezone: ../x", "7: changelog.timezone: '../x' is not an IANA"),
    ("  time: at", "  time: at\n  types: {n: int}", "7: changelog.types.n: expected one of int64"),
    (
        "  time: at",
        "  time: at\n  nulls: ['']",
        "7: changelog.nulls: only for CSV, which has no nulls; remove it",
    ),
    (
        "format: parquet",
        "format: csv\n  nulls: [NULL]",
        "4: changelog.nulls[0]: expected text, not the null of YAML; put",
    ),
    (
        "format: parquet",
        "format: csv\n  nulls: NULL",
        "4: changelog.nulls: expected text, not the null of YAML; put it",
    ),
    (
        "  time: at",
        "  time: at\n  deleted: op",
        "7: changelog.deleted: expected a column and the values that mark deletions, such as {op: [D]}, not 'op'",
    ),
    ("  time: at", "  time: at\n  deleted: {op: []}", "7: changelog.deleted.op: expected at least 1, not an empty"),
    ("  time: at", "  time: at\n  deleted: {at: D}", "7: changelog.deleted: the column of the entry or of the time"),
    (
        "  time: at",
        "  time: at\n  before: b_\n  deleted: {op: D}",
        "8: changelog.deleted: only for changes without before:; a deletion has no state after it",
    ),
    ("  time: at", "  time: at\n  expires: 1d\n  deleted: {op: D}", "8: changelog.deleted: a log of events has none"),
    ("  time: at", "  time: at\n  bad_rows: 1", "7: changelog.bad_rows: expected a number below 1"),
    ("  time: at", "  time: at\n  bad_rows: -.1", "7: changelog.bad_rows: expected at least 0"),
    ("  time: at", "  time: at\n  before: s\n  after: s", "8: changelog.after: the same as before"),
    ("unit: entry", "unit: stay", "8: privacy.unit: the entry column; write unit: entry"),
    ("epsilon: 1.0", "epsilon: abc", "9: privacy.epsilon: expected a number, not 'abc'"),
    ("epsilon: 1.0", "epsilon: true", "9: privacy.epsilon: expected a number, not true"),
    ("epsilon: 1.0", "epsilon:", "9: privacy.epsilon: expected a number, not nothing"),
    ("epsilon: 1.0", "epsilon: .nan", "9: privacy.epsilon: expected a finite number"),
    ("epsilon: 1.0", "epsilon: .inf", "9: privacy.epsilon: expected a finite number"),
    ("epsilon: 1.0", "epsilon: 1" + 400 * "0", "9: cannot be read as a whole number; put it in quotes"),
    ("epsilon: 1.0", "epsilon: 0", "9: privacy.epsilon: expected a number above 0, not 0"),
    ("epsilon: 1.0", "epsilon: -1.5", "9: privacy.epsilon: expected a number above 0, not -1.5"),
    ("delta: 0", "delta: 1", "10: privacy.delta: expected a number below 1, not 1"),
    ("delta: 0", "delta: -1e-9", "10: privacy.delta: expected at least 0, not -1e-09"),
    ("delta: 0", "mechanism: gaussian", "7: privacy.delta: missing; Gaussian noise needs one"),
    (
        "delta: 0",
        "delta: 0\n  mechanism: gaussian",
        "10: privacy.delta: missing; Gaussian noise needs one, add delta: 1.0e-9",
    ),
    ("delta: 0", "accounting: zcdp", "7: privacy.delta: missing; accounting zcdp needs one, add"),
    ("delta: 0", "accounting: rdp", "7: privacy.delta: missing; accounting rdp needs one, add"),
    ("delta: 0", "accounting: pld", "7: privacy.delta: missing; accounting pld needs one, add"),
    ("delta: 0", "accounting: advanced", "7: privacy.delta: missing; accounting advanced needs"),
    (
        "delta: 0",
        "split: weight",
        "10: privacy.split: expected one of weights, relative_error, not 'weight'; did you mean",
    ),
    (
        "delta: 0",
        "accounting: pdl",
        "10: privacy.accounting: expected one of naive, advanced, zcdp",
    ),
    ("delta: 0", "mechanism: gauss", "10: privacy.mechanism: expected one of auto, laplace, gauss"),
    ("constraint: {at_most: 4}", "delta: 0", "11: delta: the key is given twice; keep one"),
    ("  constraint: {at_most: 4}\n", "", "7: privacy.constraint: missing; add constraint: with at"),
    ("{at_most: 4}", "{at_most: 0}", "11: privacy.constraint.at_most: expected at least 1, not 0"),
    ("{at_most: 4}", "{at_most: 4.0}", "11: privacy.constraint.at_most: expected a whole number"),
    ("{at_most: 4}", "{at_most: true}", "11: privacy.constraint.at_most: expected a whole number"),
    ("{at_most: 4}", "{within: 14}", "11: privacy.constraint.within: expected a duration such as"),
    ("{at_most: 4}", "{within: 1.5h}", "11: privacy.constraint.within: expected a duration such"),
    ("{at_most: 4}", "{at_most: }", "11: privacy.constraint.at_most: expected a whole number, not nothing"),
    ("{at_most: 4}", "{}", "11: privacy.constraint: expected one of at_most: 4, within: 14d"),
    ("{at_most: 4}", "4", "11: privacy.constraint: expected keys with values, not 4"),
    ("{at_most: 4}", "{at_most: 4, within: 1d}", "11: privacy.constraint: expected one of at_most"),
    ("{at_most: 4}", "{by: fare}", "11: privacy.constraint.classes: missing; add classes:"),
    ("{at_most: 4}", "{classes: {a: {at_most: 1}}}", "11: privacy.constraint.by: missing; name"),
    ("{at_most: 4}", "{by: x, classes: {}}", "11: privacy.constraint.classes: expected at least 1"),
    (
        "{at_most: 4}",
        "{by: x, classes: {a: {at_most: 1, within: 1d}}}",
        "11: privacy.constraint.classes.a: expected one of at_most: 4 and within: 14d",
    ),
    (
        "{at_most: 4}",
        "{by: x, classes: {a: {at_mots: 1}}}",
        "11: privacy.constraint.classes.a.at_mots: unknown key; did you mean 'at_most'?",
    ),
    ("{at_most: 4}", "{at_most: 4}\n  states: {a: [b]}", "12: privacy.states: no state to begin"),
    (
        "{at_most: 4}",
        "{at_most: 4}\n  states: {none: [b]}",
        "12: privacy.states: 'b' follows 'none'",
    ),
    (
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00",
        "13: schedule.start: the time has no zone; write",
    ),
    (
        "2026-01-01T00:00:00Z",
        "2026-01-01",
        "13: schedule.start: the time has no zone; write 2026-01",
    ),
    ("2026-01-01T00:00:00Z", "soon", "13: schedule.start: expected a time such as 2013-01-01T00"),
    ("2026-01-01T00:00:00Z", "2026", "13: schedule.start: expected a time such as 2013-01-01T00"),
    ("2026-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "13: schedule.start: expected a time such as"),
    ("every: 1d", "every: 0d", "14: schedule.every: expected a duration above zero, such as 1d"),
    ("every: 1d", "every: -1d", "14: schedule.every: expected a duration such as 1d, 12h, 30m or"),
    (
        "every: 1d",
        "every: 7 days",
        "14: schedule.every: expected a duration such as 1d, 12h, 30m or 1h30m, not '7 days'; did you mean '7d'?",
    ),
    ("every: 1d", "every: 1us", "14: schedule.every: 2,678,400,000,000 windows until the end; at"),
    (
        "2026-02-01T00:00:00Z",
        "2026-02-01T00:00:00",
        "15: schedule.until: the time has no zone; wri",
    ),
    ("2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z", "15: schedule.until: must be after start, 20"),
    (
        "2026-02-01T00:00:00Z",
        "2026-02-01T09:30:00Z",
        "15: schedule.until: windows of 1d from start do not end there;"
        " use 2026-02-01T00:00:00Z or 2026-02-02T00:00:00Z",
    ),
    (
        "every: 1d",
        "every: 5w",
        "15: schedule.until: windows of 5w from start do not end there; use 2026-02-05T00:00:00Z",
    ),
    ("name: beds", "name: 9 beds", "17: queries[0].name: expected a name of letters, digits"),
    ("name: waited", "name: beds", "23: queries[1].name: 'beds' is the name of queries[0] already (case is"),
    ("name: waited", "name: Beds", "23: queries[1].name: 'Beds' is the name of queries[0] already"),
    (
        "measure: count",
        "measure: cuont",
        "18: queries[0].measure: expected one of count, units, sum, mean",
    ),
    (
        "measure: count",
        "measure: sum",
        "18: queries[0].measure: sum needs a column and bounds: {sum",
    ),
    (
        "measure: count",
        "measure: {}",
        "18: queries[0].measure: expected count, units, or one of sum, mean",
    ),
    (
        "measure: count",
        "measure: {min: 0, max: 1}",
        "18: queries[0].measure: expected count, units, or one",
    ),
    ("measure: count", "measure: {count: x}", "18: queries[0].measure.count: unknown key"),
    (
        "{mean: waited, min: 0, max: 240}",
        "{mean: w, min: 0}",
        "24: queries[1].measure.max: missing",
    ),
    ("min: 0", "min: 300", "24: queries[1].measure.min: min=300.0 must be less than max=240.0"),
    ("min: 0", "min: .nan", "24: queries[1].measure.min: expected a finite number, not nan"),
    ("max: 240", "max: 1e30", "24: queries[1].measure.min: min and max must lie within 2^40"),
    ("max: 240", "max: 240, sum: x", "24: queries[1].measure: expected count, units, or one of sum, mean"),
    ("max: 240", "max: 240, invalid: dorp", "24: queries[1].measure.invalid: expected one of drop"),
    ("ward <> 'x'", "ward <> 'x", '19: queries[0].where: "ward <> \'x" does not parse'),
    ("ward <> 'x'", "w in (from 'a.csv')", "19: queries[0].where: \"w in (from 'a.csv')\" holds a"),
    ("[a, b, other]", "[]", "20: queries[0].by.ward: expected at least 1, not an empty list"),
    (
        "[a, b, other]",
        "a",
        "20: queries[0].by.ward: expected a list, "
        "{from: 0, to: 100, step: 5}, {discover: true} or {tree: {A: [a]}}, not 'a'",
    ),
    ("[a, b, other]", "[a, b, a]", "20: queries[0].by.ward[2]: 'a' is listed already at [0]"),
    ("[a, b, other]", "[other, b, other]", "20: queries[0].by.ward[2]: 'other' is listed already"),
    ("[a, b, other]", "[1, '1']", "20: queries[0].by.ward[1]: '1' is listed already at [0]"),
    ("[a, b, other]", "[true, 'true']", "20: queries[0].by.ward[1]: 'true' is listed already at"),
    ("[a, b, other]", "[a, null]", "20: queries[0].by.ward[1]: a cell cannot be null; `other`"),
    ("[a, b, other]", "[1.5]", "20: queries[0].by.ward[0]: expected text, a whole number, true or"),
    ("[a, b, other]", "[[a]]", "20: queries[0].by.ward[0]: expected text, a whole number, true or"),
    (
        "[a, b, other]",
        f"[{2**63}]",
        "20: queries[0].by.ward[0]: a whole number must fit in 64 bits",
    ),
    (
        "{ward: [a, b, other]}",
        "{value: [a]}",
        "20: queries[0].by.value: the published files have a",
    ),
    ("{ward: [a, b, other]}", "{Kind: [a]}", "20: queries[0].by.Kind: the published files have a"),
    ("[level, change]", "levl", "21: queries[0].publish: expected one of change, level, entered"),
    ("[level, change]", "[]", "21: queries[0].publish: expected at least 1, not an empty list"),
    ("[level, change]", "[level, level]", "21: queries[0].publish[1]: level is listed twice"),
    (
        "[level, change]",
        "[levl]",
        "21: queries[0].publish[0]: expected one of change, level, entered, left, sliding, not 'levl'; did",
    ),
    (
        "[level, change]",
        "[level, slidin]",
        "21: queries[0].publish[1]: expected one of change, level, entered, left, sli",
    ),
    ("[level, change]", "[sliding]", "21: queries[0].publish[0]: sliding needs a width; write {sliding: 7d}"),
    (
        "[level, change]",
        "3",
        "21: queries[0].publish: expected one of change, level, entered, left or {sliding: 7d}, not 3",
    ),
    ("[level, change]", "[null]", "21: queries[0].publish[0]: expected one of change, level, entered, left or {sli"),
    (
        "[level, change]",
        "[level, {marginals: [ward]}]",
        "21: queries[0].publish[1].marginals[0]: expected a list, not 'ward'",
    ),
    (
        "[level, change]",
        "[level, {marginal: [[]]}]",
        "21: queries[0].publish[1].marginal: unknown key; did you mean 'marginals'?",
    ),
    (
        "[level, change]",
        "[level, {zzz: []}]",
        "21: queries[0].publish[1].zzz: unknown key; the keys here are sliding, quantiles, ranges, marginals",
    ),
    ("[level, change]", "[{}]", "21: queries[0].publish[0].sliding: missing; add sliding: 7d, the width"),
    ("[level, change]", "{every: 1d}", "21: queries[0].publish.sliding: missing; add sliding: 7d, the width"),
    ("[level, change]", "[{sliding: 7}]", "21: queries[0].publish[0].sliding: expected a duration such as 1d, not 7"),
    (
        "[level, change]",
        "[{sliding: 0d}]",
        "21: queries[0].publish[0].sliding: expected a duration above zero, such as",
    ),
    (
        "[level, change]",
        "[{sliding: 7d, every: 0d}]",
        "21: queries[0].publish[0].every: expected a duration above zero",
    ),
    (
        "[level, change]",
        "[level, {sliding: 36h}]",
        "21: queries[0].publish[1].sliding: windows of 1d do not add up to it; use 1d or 2d",
    ),
    (
        "[level, change]",
        "{sliding: 12h}",
        "21: queries[0].publish.sliding: windows of 1d do not add up to it; use 1d",
    ),
    (
        "[level, change]",
        "[{sliding: 7d, every: 5d1s}]",
        "21: queries[0].publish[0].every: windows of 1d do not add up to it; use 5d or 6d",
    ),
    (
        "[level, change]",
        "[{sliding: 32d}]",
        "21: queries[0].publish[0].sliding: longer than the release; use at most 4w3d",
    ),
    (
        "[level, change]",
        "[{sliding: 2d, every: 40000000d}]",
        "21: queries[0].publish[0].every: a duration may be at most 1000 years long",
    ),
    (
        "[level, change]",
        "[{sliding: 7d}, level, {sliding: 1w, every: 2d}]",
        "21: queries[0].publish[2]: sliding: 1w is listed twice; list it once",
    ),
    ("weight: 1", "weight: 0", "22: queries[0].weight: expected a number above 0, not 0"),
    ("weight: 1", "weight: .inf", "22: queries[0].weight: expected a finite number, not inf"),
    ("weight: 1", "expected: 0", "22: queries[0].expected: expected a number above 0, not 0"),
    ("weight: 1", "consistent: 1", "22: queries[0].consistent: expected true or false, not 1"),
    (
        "weight: 1",
        "strategy: trie",
        "22: queries[0].strategy: expected one of auto, disjoint, sliding, tree, factorised, direct",
    ),
    ("weight: 1", "strategy: sliding", "22: queries[0].strategy: no sliding numbers are published; add {sliding: 7d}"),
    ("strategy: auto", "strategy: sliding", "25: strategy: no sliding numbers are published; add {sliding: 7d}"),
    (
        "strategy: auto",
        "strategy: disjont",
        "25: strategy: expected one of auto, disjoint, sliding, tree, factorised, direct, not",
    ),
    ("strategy: auto", "strategy: {auto: 1}", "25: strategy: auto takes no settings; write strategy: auto"),
    (
        "strategy: auto",
        "strategy: {tre: {height: 2}}",
        "25: strategy: expected one of auto, disjoint, sliding, tree, fac",
    ),
    (
        "strategy: auto",
        "strategy: {tree: {}, factorised: leaky}",
        "25: strategy: expected one strategy; write strategy",
    ),
    ("strategy: auto", "strategy: {}", "25: strategy: expected one strategy; write strategy: tree, or {tree: {branch"),
    ("strategy: auto", "strategy: {tree: }", "25: strategy: the settings are missing; write strategy: tree to leave"),
    (
        "strategy: auto",
        "strategy: 3",
        "25: strategy: expected one of auto, disjoint, sliding, tree, factorised, direct, not 3",
    ),
    (
        "strategy: auto",
        "strategy:",
        "25: strategy: expected one of auto, disjoint, sliding, tree, factorised, direct, not nothing",
    ),
    (
        "strategy: auto",
        "strategy: [tree]",
        "25: strategy: expected one of auto, disjoint, sliding, tree, factorised, direct, not",
    ),
    ("strategy: auto", "strategy: {tree: 3}", "25: strategy.tree: expected keys with values, not 3"),
    ("strategy: auto", "strategy: {tree: {branching: 1}}", "25: strategy.tree.branching: expected at least 2, not 1"),
    ("strategy: auto", "strategy: {tree: {branching: 1025}}", "25: strategy.tree.branching: expected at most 1024"),
    ("strategy: auto", "strategy: {tree: {branching: 2.0}}", "25: strategy.tree.branching: expected a whole number"),
    ("strategy: auto", "strategy: {tree: {height: 0}}", "25: strategy.tree.height: expected at least 1, not 0"),
    ("strategy: auto", "strategy: {tree: {height: 41}}", "25: strategy.tree.height: expected at most 40, not 41"),
    (
        "strategy: auto",
        "strategy: {tree: {refine: least_square}}",
        "25: strategy.tree.refine: expected one of none, subtraction, bottom_up, least_squares, not 'least_square'",
    ),
    (
        "strategy: auto",
        "strategy: {tree: {branch: 2}}",
        "25: strategy.tree.branch: unknown key; did you mean 'branching'?",
    ),
    (
        "strategy: auto",
        "strategy: {factorised: sqrt}",
        "25: strategy.factorised: expected one of square_root, leaky, window, arma, not 'sqrt'",
    ),
    (
        "strategy: auto",
        "strategy: {factorised: leeky}",
        "25: strategy.factorised: expected one of square_root, leaky, window, arma, not 'leeky'; did you mean 'leaky'?",
    ),
    (
        "strategy: auto",
        "strategy: {factorised: {form: leaky}}",
        "25: strategy.factorised: expected one of square_root, leaky, window, arma, not keys",
    ),
    (
        "strategy: auto",
        "strategy: factorised",
        "25: strategy: factorised needs Gaussian noise; give privacy.delta: 1.0e-9, or use strategy: tree",
    ),
    (
        "weight: 1",
        "strategy: {factorised: leaky}",
        "22: queries[0].strategy: factorised needs Gaussian noise; give privacy.delta: 1.0e-9, or use",
    ),
    ("private: out/private", "private: out/public", "28: output.private: lies inside public; keep"),
    (
        "private: out/private",
        "private: out/public/p",
        "28: output.private: lies inside public; keep",
    ),
    (
        "private: out/private",
        "private: x/../out/./public/p",
        "28: output.private: lies inside public",
    ),
    ("private: out/private", "private: out", "27: output.public: lies inside private; keep"),
    (
        "private: out/private",
        "private: s3://out/p",
        "28: output.private: s3:// is unsupported; use a local path, or gs",
    ),
    ("path: data/*.parquet", "path: [a, hdfs://b/*]", "4: changelog.path[1]: hdfs:// is unsupported; use a local path"),
    ("out/private\n", "out/private\n  format: xml\n", "29: output.format: expected one of parquet"),
    (
        "out/private\n",
        "out/private\n  bigquery: {estimates: house.wards}\n",
        "29: output.bigquery.estimates: expected a table's whole name, project.dataset.table, not 'house.wards'",
    ),
    (
        "out/private\n",
        "out/private\n  bigquery: {nodes: house-1.wards.nodes}\n",
        "29: output.bigquery.estimates: missing; add estimates: project.dataset.table",
    ),
    (
        "out/private\n",
        "out/private\n  bigquery: {estimates: house-1.wards.all, nodes: house-1.wards.all}\n",
        "29: output.bigquery.nodes: the table of estimates; nodes have other columns, so name another one",
    ),
    ("strategy: auto", "strategi: auto", "25: strategi: unknown key; did you mean 'strategy'?"),
    ("strategy: auto", '"a\\nb": auto', "25: 'a\\nb': unknown key; the keys here are release"),
    ("publish:", "publsh:", "21: queries[0].publsh: unknown key; did you mean 'publish'?"),
    (
        "strategy: auto",
        "zzz: auto",
        "25: zzz: unknown key; the keys here are release, changelog, pr",
    ),
]


@pytest.mark.parametrize(("old", "new", "error"), BROKEN, ids=[case[1][:40] for case in BROKEN])
def test_a_broken_rule_is_one_line_with_its_place(tmp_path: Path, old: str, new: str, error: str) -> None:
    found = problems(tmp_path, changed(old, new))

    assert len(found) == 1, found
    assert found[0].startswith(f"spec.yaml:{error}")
    assert len(found[0]) < 250


@pytest.mark.parametrize(
    "key",
    [
        *("release", "changelog", "privacy", "schedule", "queries", "output"),
        *("format", "path", "entry", "time", "epsilon", "constraint", "start", "every"),
        *("public", "private"),
    ],
)
def test_a_missing_key_is_named_with_an_example(tmp_path: Path, key: str) -> None:
    kept: list[str] = []
    skipping = None
    for line in GOOD.splitlines():
        depth = len(line) - len(line.lstrip())
        if skipping is not None and depth > skipping:
            continue
        skipping = depth if line.strip().startswith(f"{key}:") else None
        if skipping is None:
            kept.append(line)

    found = problems(tmp_path, "\n".join(kept) + "\n")

    assert len(found) == 1
    assert f"{key}: missing; add" in found[0]


def test_a_time_span_does_not_bound_an_owner(tmp_path: Path) -> None:
    owned = changed("unit: entry", "unit: person")
    message = "an owner's entries are not bounded by a time span; use at_most"

    plain = problems(tmp_path, changed("{at_most: 4}", "{within: 14d}", owned))
    classes = "{by: fare, classes: {day: {at_most: 2}, month: {within: 31d}}}"
    classed = problems(tmp_path, changed("{at_most: 4}", classes, owned))

    assert plain == [f"spec.yaml:11: privacy.constraint.within: {message}"]
    assert classed == [f"spec.yaml:11: privacy.constraint.classes.month.within: {message}"]


def test_a_number_of_entries_is_for_owners_and_goes_with_a_number_of_changes(tmp_path: Path) -> None:
    owned = changed("unit: entry", "unit: person")
    both = "{by: fare, classes: {day: {at_most: 2, entries: 1}, month: {within: 31d, entries: 2}}}"

    assert problems(tmp_path, changed("{at_most: 4}", "{at_most: 4, entries: 1}")) == [
        "spec.yaml:11: privacy.constraint.entries: an entry is one at any time; name the owner under privacy.unit, or "
        "remove it"
    ]
    goes_with = "goes with a number of changes: {at_most: 4, entries: 1}"
    assert f"spec.yaml:11: privacy.constraint.classes.month.entries: {goes_with}" in problems(
        tmp_path, changed("{at_most: 4}", both, owned)
    )
    assert problems(tmp_path, changed("{at_most: 4}", "{at_most: 4, entries: 0}", owned)) == [
        "spec.yaml:11: privacy.constraint.entries: expected at least 1, not 0"
    ]


SPAN = "protects: {span: 14d}"


@pytest.mark.parametrize(
    ("privacy", "owned", "message"),
    [
        ("protects: {span: 0s}", False, "11: privacy.protects.span: expected a duration above zero, such as 14d"),
        ("protects: {span: 2}", False, "11: privacy.protects.span: expected a duration such as 1d, not 2"),
        ("protects: nothing", False, "11: privacy.protects: expected everything or {span: 14d}, not 'nothing'"),
        (
            f"{SPAN}\n  states: {{none: [a], a: [none]}}",
            False,
            "12: privacy.states: bounds changes, which is not needed with protects",
        ),
        (
            f"{SPAN}\n  constraint: {{within: 4d}}",
            False,
            "12: privacy.constraint: bounds changes, which is not needed with protects: {span: ...}; remove it, or use",
        ),
        (
            f"{SPAN}\n  constraint: {{at_most: 1}}",
            False,
            "12: privacy.constraint.at_most: one state in a span is a win",
        ),
        (
            f"{SPAN}\n  constraint: {{by: class, classes: {{a: {{at_most: 4}}}}}}",
            True,
            "12: privacy.constraint: bounds changes, which is not needed with protects: {span: ...}; use constraint: "
            "{entries: 3}, how many of an owner's entries count at once, with at_most: 2 for changes, in each block",
        ),
        (f"{SPAN}\n  constraint: {{at_most: 4}}", True, "12: privacy.constraint.entries: missing; say how many of an"),
        (f"{SPAN}\n  constraint: {{at_most: 4, entries: 2}}", False, "12: privacy.constraint.entries: an entry is one"),
        (SPAN, True, "missing; say how many of an owner's entries count at once, add constraint: {entries: 3}"),
        (f"{SPAN}\n  constraint: {{entries: 2}}", False, "12: privacy.constraint.entries: an entry is one at any time"),
        ("constraint: {entries: 2}", True, "11: privacy.constraint.entries: goes with a number of changes"),
    ],
)
def test_a_span_needs_no_bound_of_changes_and_for_owners_one_of_entries(
    privacy: str, owned: bool, message: str, tmp_path: Path
) -> None:
    text = changed("unit: entry", "unit: person") if owned else changed("unit: entry", "unit: entry")

    (found,) = problems(tmp_path, changed("constraint: {at_most: 4}", privacy, text))

    assert message in found


def test_levels_by_themselves_need_an_end_or_a_span(tmp_path: Path) -> None:
    endless = changed("  until: 2026-02-01T00:00:00Z\n", "", changed("strategy: auto", "strategy: direct"))

    (found,) = problems(tmp_path, endless)
    assert "strategy: levels without an end; add schedule.until or privacy.protects: {span: 14d}" in found
    assert loaded(tmp_path, changed("constraint: {at_most: 4}", SPAN, endless)).schedule.until is None


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("{direct: {weights: []}}", "expected 1 to 4,096 of them, not 0"),
        ("{direct: {weights: [1, 0]}}", "must be above 0: every window is published; for fewer take longer windows"),
        ("{direct: {weights: [1, 1001]}}", "the largest may be 1000 times the smallest at most"),
        ("{direct: {weights: [1, 2]}}", "weights are of levels by themselves; write publish: [level] in query beds"),
        (f"{{direct: {{weights: {[1] * 32}}}}}", "32 weights for 31 windows; give one for each, or fewer"),
    ],
)
def test_weights_of_windows_that_no_budget_is_spread_by(strategy: str, message: str, tmp_path: Path) -> None:
    text = changed("strategy: auto", f"strategy: {strategy}", changed("constraint: {at_most: 4}", SPAN))

    assert any(message in found for found in problems(tmp_path, text))


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("adaptive", "adaptive needs a policy; write strategy: {adaptive: {policy: dsat, samples: 20}}"),
        ("{adaptive: }", "the settings are missing; write strategy: {adaptive: {policy: dsat, samples: 20}}"),
        ("{adaptive: dsta}", "strategy.adaptive: expected one of fixed, dsft, dsat, bd, ba, pegasus"),
        ("{adaptive: dsat}", "samples: missing; number of windows that may be sampled"),
        ("{adaptive: pegasus}", "threshold: missing; largest sum of deviations of a cell from its mean"),
        ("{adaptive: {policy: ba, smooth: mean}}", "smooth: policy ba does not have this key; remove it"),
        ("{adaptive: {policy: pegasus, threshold: 9, smooth: mode}}", "smooth: expected one of mean, median"),
        ("{adaptive: {policy: ba, samples: 3}}", "samples: policy ba does not have this key; remove it"),
        ("{adaptive: {policy: ba, weights: [1, 2]}}", "weights: policy ba does not have this key; remove it"),
        ("{adaptive: {policy: fixed, interval: 31d, weights: [1, 2]}}", "weights: 2 for 1 sample; give one for each"),
        ("{adaptive: {policy: fixed, interval: 36h}}", "interval: whole windows of 1d, such as 1w"),
        ("{adaptive: {policy: dsft, samples: 4, threshold: 1.0e+308}}", "threshold: expected at most 1e+30"),
        ("{adaptive: {policy: dsat, samples: 900}}", "samples: expected at most the number of windows"),
        ("{adaptive: ba}", "adaptive publishes levels alone; write publish: [level] in query beds"),
    ],
)
def test_an_unavailable_policy_is_refused(strategy: str, message: str, tmp_path: Path) -> None:
    text = changed("strategy: auto", f"strategy: {strategy}")
    if "levels alone" not in message:
        text = changed("publish: [level, change]", "publish: [level]", text)

    assert any(message in found for found in problems(tmp_path, text)), problems(tmp_path, text)


def test_a_key_of_any_query_may_not_have_the_name_of_a_column_that_adaptive_ones_bring(tmp_path: Path) -> None:
    keyed = changed("max: 240}", "max: 240}\n    by: {Sampled: [a]}")
    assert loaded(tmp_path, keyed).queries[1].by == (("Sampled", ("a",)),)

    text = changed("publish: [level, change]", "publish: [level]\n    strategy: {adaptive: ba}", keyed)

    (found,) = problems(tmp_path, text)
    assert "queries[1].by.Sampled: the published files have a column sampled" in found


def test_a_state_machine_does_not_bound_an_owner(tmp_path: Path) -> None:
    owned = changed("unit: entry", "unit: person")

    found = problems(tmp_path, changed("constraint: {at_most: 4}", "states: {none: [a], a: []}", owned))

    assert len(found) == 1
    assert found[0].startswith("spec.yaml:7: privacy.constraint: missing; states bound one entry")


@pytest.mark.slow
def test_cells_of_all_keys_multiply_and_have_a_limit(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(3163)))

    found = problems(tmp_path, changed("{ward: [a, b, other]}", f"{{x: [{values}], y: [{values}]}}"))

    assert found == ["spec.yaml:20: queries[0].by: 10,004,569 cells; list fewer, below 10,000,000 in all"]


def test_several_problems_are_all_reported_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = changed("epsilon: 1.0", "epsilon: 0")
    text = changed("every: 1d", "every: daily", text)
    text = changed("measure: count", "measur: count", text)
    text = changed("max: 240", "max: -1", text)

    found = problems(tmp_path, text)

    assert [line.split(":")[1] for line in found] == ["9", "14", "17", "18", "24"]
    assert "queries[0].measur: unknown key; did you mean 'measure'?" in found[3]


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("which ward", "not a valid column name in BigQuery, which takes letters, digits and '_'; rename it"),
        ("_PARTITION_of", "not a valid column name in BigQuery"),
        ("Epoch", "as a column in BigQuery the same as a column that the table already has; rename it"),
    ],
)
def test_a_key_that_is_no_column_in_bigquery_is_refused(tmp_path: Path, key: str, told: str) -> None:
    text = changed("out/private\n", "out/private\n  bigquery: {estimates: house-1.wards.all}\n")

    (found,) = problems(tmp_path, changed("{ward: [a, b, other]}", f"{{{key}: [a, b]}}", text))

    assert found.startswith(f"spec.yaml:20: queries[0].by.{key}: {told}")


def test_a_remote_folder_inside_another_is_seen(tmp_path: Path) -> None:
    text = changed("public: out/public", "public: gs://bucket/a")

    found = problems(tmp_path, changed("private: out/private", "private: gs://bucket/a/b", text))

    assert found[0].startswith("spec.yaml:28: output.private: lies inside public")


def test_changes_are_counted_separately_in_each_block_of_whole_windows(tmp_path: Path) -> None:
    spec = loaded(tmp_path, changed("constraint: {at_most: 4}", "protects: {span: 36h}\n  constraint: {at_most: 4}"))

    assert spec.privacy.constraint == AtOnce(changes=4, block=2 * 86_400_000_000)


@pytest.mark.parametrize("given", ["", ", min: 50", ", max: -3"])
def test_suggested_bounds_can_be_used_as_they_are(tmp_path: Path, given: str) -> None:
    wrong = changed("{mean: waited, min: 0, max: 240}", f"{{sum: waited{given}}}")

    bounds = [line.partition("add ")[2] for line in problems(tmp_path, wrong)]

    assert bounds
    loaded(tmp_path, wrong.replace("{sum: waited", f"{{sum: waited, {', '.join(bounds)}"))
