"""Stays in the wards of a hospital, in tables that change in every way that PostgreSQL supports.

Exact results come from two sources: the tables themselves, at the end of windows, and a history that triggers keep. The
history has the time of each commit, and covers all windows, arrivals and departures.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import psycopg

TABLES = ("stays_full", "stays_default", "emptied_full", "emptied_default")
"""Tables, named after their REPLICA IDENTITY; the last two are truncated once."""

EVERY = timedelta(seconds=1)

TABLE = """
create table {table} (
    id integer primary key,
    ward text,
    age integer,
    insured boolean not null,
    x double precision not null,
    price numeric(8, 2),
    admitted timestamp not null default localtimestamp,
    seen timestamptz,
    note text
);
alter table {table} alter note set storage external;
alter table {table} replica identity {identity};
create trigger remember after insert or update or delete on {table} for each row execute function remember();
create trigger forget before truncate on {table} execute function remember();
"""

HISTORY = """
create table history (seq bigserial primary key, source text not null, key integer not null, old jsonb, new jsonb);
create function remember() returns trigger language plpgsql as $$
begin
    if tg_op = 'TRUNCATE' then
        execute format('insert into history (source, key, old) select %L, id, to_jsonb(t) from %I t',
            tg_table_name, tg_table_name);
        return null;
    end if;
    if tg_op = 'UPDATE' and old.id = new.id then
        insert into history (source, key, old, new) values (tg_table_name, old.id, to_jsonb(old), to_jsonb(new));
        return null;
    end if;
    if tg_op <> 'INSERT' then
        insert into history (source, key, old) values (tg_table_name, old.id, to_jsonb(old));
    end if;
    if tg_op <> 'DELETE' then
        insert into history (source, key, new) values (tg_table_name, new.id, to_jsonb(new));
    end if;
    return null;
end $$;
"""

INSERT = """
insert into {table} (id, ward, age, insured, x, price, seen, note)
select id, (array['a', 'b', 'c', null])[1 + id % 4], nullif(10 + id % 30, 39), id % 3 <> 0, id % 13 - 1 + 0.25,
    nullif(id % 17, 16) * 1.5, clock_timestamp(), repeat(md5(id::text), 100)
from generate_series({first}, {last}) as id
"""
"""Notes are long enough that PostgreSQL stores them out of line."""


@dataclass(frozen=True, slots=True)
class Hospital:
    """Two clients of the server, each in a transaction only when it asks for one."""

    one: psycopg.Connection
    other: psycopg.Connection

    def each(self, *statements: str) -> None:
        """Run statements on every table, each in a separate transaction."""
        for table in TABLES:
            for statement in statements:
                self.one.execute(statement.format(table=table))


@contextmanager
def opened(address: str) -> Iterator[Hospital]:
    """Yield a hospital with some stays."""
    with psycopg.connect(address, autocommit=True) as one, psycopg.connect(address, autocommit=True) as other:
        one.execute(HISTORY)
        for table in TABLES:
            one.execute(TABLE.format(table=table, identity=table.rpartition("_")[2]))
        one.execute(f"create publication everything for table {', '.join(TABLES)}")
        hospital = Hospital(one, other)
        hospital.each(INSERT.format(table="{table}", first=1, last=30), "update {table} set ward = 'b' where id = 4")
        yield hospital


def simple_changes(at: Hospital) -> None:
    at.each(
        INSERT.format(table="{table}", first=31, last=40),
        "update {table} set ward = 'b' where id in (4, 8, 12)",
        "update {table} set x = x + 2.5, price = price * 2 where id between 5 and 9",
        "update {table} set note = note where id < 6",  # a change that changes nothing
        "delete from {table} where id in (10, 11)",
    )
    at.one.execute("select pg_logical_emit_message(true, 'slackwater', 'hello')")
    for table in TABLES:
        with at.one.cursor().copy(f"copy {table} (id, ward, insured, x) from stdin") as copy:
            for key in range(41, 61):
                copy.write_row((key, "ab"[key % 2], True, key / 8))


def changed_keys_and_transactions(at: Hospital) -> None:
    at.each(
        "delete from {table} where id in (3, 5)",
        INSERT.format(table="{table}", first=3, last=3),  # comes back at once
        "update {table} set id = 1007 where id = 7",
        "update {table} set id = 1008, ward = 'a' where id = 8",
    )
    for table in TABLES:
        with at.one.transaction():  # all at one time
            for ward in ("a", "b", "c", "b"):
                at.one.execute(f"update {table} set ward = %s, x = x + 0.5 where id = 20", [ward])
            at.one.execute(f"delete from {table} where id = 21")
            at.one.execute(INSERT.format(table=table, first=21, last=21))
            at.one.execute(INSERT.format(table=table, first=500, last=500))
            at.one.execute(f"delete from {table} where id = 500")
        with at.one.transaction():
            at.one.execute(f"delete from {table} where id > 20")
            raise_rollback()
        with at.one.transaction():
            at.one.execute(f"update {table} set ward = 'a' where id = 22")
            with at.one.transaction():
                at.one.execute(f"update {table} set ward = 'b' where id in (22, 23)")
                raise_rollback()
            with at.one.transaction():
                at.one.execute(f"update {table} set ward = 'c' where id = 24")
    at.other.execute("begin")  # committed in a later window
    for table in TABLES:
        at.other.execute(f"update {table} set ward = 'a', x = 9 where id = 14")
        at.other.execute(f"delete from {table} where id = 15")


def raise_rollback() -> None:
    raise psycopg.Rollback


def concurrent_transactions(at: Hospital) -> None:
    at.each(
        "update {table} set ward = 'b', x = 1 where id = 16",
        INSERT.format(table="{table}", first=61, last=64),
    )
    at.other.execute("commit")
    at.each("update {table} set ward = 'c' where id = 14")


def returns(at: Hospital) -> None:
    at.each(
        INSERT.format(table="{table}", first=5, last=5),
        "update {table} set id = 7 where id = 1007",
        "update {table} set x = x - 1, age = coalesce(age, 16) + 1 where id % 3 = 0",
        "update {table} set seen = clock_timestamp(), note = repeat('z', 5000) where id = 17",
        "update {table} set ward = null where id = 17",
    )


def at_random(at: Hospital, seed: int) -> None:
    """Apply the same random transactions of one to four changes to each table."""
    chance = random.Random(seed)
    transactions = []
    for _ in range(20):
        rows = []
        for _ in range(chance.randint(1, 4)):
            key, ward, x = chance.randint(1, 70), chance.choice(["a", "b", "c", None]), chance.randint(-8, 60) / 4
            statement = chance.choice(
                (
                    "insert into {table} (id, ward, age, insured, x) values (%s, %s, 30, true, %s)"
                    " on conflict do nothing",
                    "insert into {table} (id, ward, age, insured, x) values (%s, %s, 15, true, %s)"
                    " on conflict (id) do update set ward = excluded.ward, insured = false",
                    "update {table} set ward = d.ward, x = d.x from (values (%s, %s, %s::float)) as d (id, ward, x)"
                    " where d.id = {table}.id",
                    "delete from {table} using (values (%s, %s::text, %s::float)) as d (id, ward, x)"
                    " where d.id = {table}.id",
                )
            )
            rows.append((statement, (key, ward, x)))
        transactions.append(rows)
    for table in TABLES:
        for rows in transactions:
            with at.one.transaction():
                for statement, values in rows:
                    at.one.execute(statement.format(table=table), values)


def emptied(at: Hospital) -> None:
    at_random(at, 2)
    for table in TABLES:
        with at.one.transaction():
            at.one.execute(INSERT.format(table=table, first=900, last=903))
            if table.startswith("emptied"):
                at.one.execute(f"truncate {table}")
            at.one.execute(INSERT.format(table=table, first=904, last=907))


def afterwards(at: Hospital) -> None:
    at.each(INSERT.format(table="{table}", first=1101, last=1110), "delete from {table} where ward = 'b' and id > 30")
    at_random(at, 3)


Step = Callable[[Hospital], None]
EARLY: tuple[Step, ...] = (simple_changes, changed_keys_and_transactions, concurrent_transactions)
LATE: tuple[Step, ...] = (returns, lambda at: at_random(at, 1), emptied, afterwards)
"""Steps after the first file is delivered. Each step has a separate window, one after the other."""
