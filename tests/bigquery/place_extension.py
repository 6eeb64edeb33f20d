"""Put DuckDB's spatial extension, which is installed as a package, where the emulator looks for it in a home folder."""

import sys
from pathlib import Path


def place(home: str) -> None:
    import duckdb
    import duckdb_extension_spatial  # type: ignore[import-not-found]

    (file,) = Path(duckdb_extension_spatial.__file__).parent.rglob("spatial.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"set home_directory='{home}'")
    connection.execute(f"install '{file}'")


if __name__ == "__main__":
    place(sys.argv[1])
