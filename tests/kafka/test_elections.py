"""Errors of brokers during the election of a partition's leader: the client repeats some requests and not others."""

from concurrent.futures import Future
from itertools import repeat

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from transforms.common.errors import InputError, SpecError
from transforms.sources.files import kafka_client

NOBODY = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})


def asked(codes):
    """Return the answer to a request whose first answers are errors, and the number of requests."""
    codes, times = iter(codes), 0

    def question():
        nonlocal times
        times += 1
        future = Future()
        code = next(codes, None)
        if code is None:
            future.set_result(7)
        else:
            future.set_exception(KafkaException(KafkaError(code)))
        return {"part": future}

    return kafka_client._answers(question, NOBODY, "kafka://k:9092/stays", []), times


@pytest.mark.parametrize("code", kafka_client._elections())
def test_a_request_during_an_election_is_repeated(code):
    assert asked([code, code]) == ({"part": 7}, 3)


def test_an_election_that_does_not_end_is_an_error(monkeypatch):
    monkeypatch.setattr(kafka_client, "PATIENCE", 0.3)

    with pytest.raises(InputError, match="LEADER_NOT_AVAILABLE"):
        asked(repeat(KafkaError.LEADER_NOT_AVAILABLE))


def test_a_permanent_error_is_not_retried():
    with pytest.raises(SpecError, match="there is no such topic"):
        asked([KafkaError.UNKNOWN_TOPIC_OR_PART])
