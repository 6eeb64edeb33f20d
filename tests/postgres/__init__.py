"""A real PostgreSQL for tests: a server, a workload, its change stream in Debezium's form, and exact results by SQL.

* `server` starts and stops it; `stays` is the workload, `workload` runs it in windows of a second;
* `pgoutput` reads messages of logical decoding, `capture` writes them in Debezium's envelope;
* `truth` computes exact results from the tables.
"""
