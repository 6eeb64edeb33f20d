"""A real PostgreSQL for the tests: a server, a workload, its change stream as Debezium writes it, and what SQL says.

* `server` starts and stops it; `stays` is the workload, `workload` runs it in windows of a second;
* `pgoutput` reads what logical decoding tells, `capture` writes it in Debezium's envelope;
* `truth` asks the tables themselves.
"""
