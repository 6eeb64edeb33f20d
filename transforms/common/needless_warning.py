"""Drop a warning of Beam's import about a BigQuery client that this library does not use. Import this module first."""

import logging


def is_needed(record: logging.LogRecord) -> bool:
    """Return whether a log record is another one than that warning.

    >>> is_needed(logging.makeLogRecord({"msg": "apitools not found, and bigquery client libraries are not available"}))
    False
    >>> is_needed(logging.makeLogRecord({"msg": "anything else"}))
    True
    """
    return not str(record.msg).startswith("apitools not found, and bigquery client libraries are not available")


logging.getLogger().addFilter(is_needed)  # filters only records of the root logger itself, not those of other loggers
