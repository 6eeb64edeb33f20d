"""Beam warns, as it is imported, of a client of BigQuery's that nothing here uses. Imported first, this drops that."""

import logging


def is_needed(record: logging.LogRecord) -> bool:
    """
    >>> is_needed(logging.makeLogRecord({"msg": "apitools not found, and bigquery client libraries are not available"}))
    False
    >>> is_needed(logging.makeLogRecord({"msg": "anything else"}))
    True
    """
    return not str(record.msg).startswith("apitools not found, and bigquery client libraries are not available")


logging.getLogger().addFilter(is_needed)  # the root's own records alone: those of other loggers do not come by
