"""Brokers that agree on who leads a partition: what is asked of them again, and what is not."""

from concurrent.futures import Future
from itertools import repeat

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from transforms.common.errors import InputError, SpecError
from transforms.sources.files import kafka

NOBODY = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})


def asked(codes):
    """The answer to a question whose first answers are errors, and how often it was asked."""
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

    return kafka._answers(question, NOBODY, "kafka://k:9092/stays", []), times


@pytest.mark.parametrize("code", kafka._elections())
def test_a_partition_whose_leader_is_being_elected_is_asked_again(code):
    assert asked([code, code]) == ({"part": 7}, 3)


def test_an_election_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(kafka, "PATIENCE", 0.3)

    with pytest.raises(InputError, match="LEADER_NOT_AVAILABLE"):
        asked(repeat(KafkaError.LEADER_NOT_AVAILABLE))


def test_what_does_not_pass_is_not_asked_again():
    with pytest.raises(SpecError, match="there is no such topic"):
        asked([KafkaError.UNKNOWN_TOPIC_OR_PART])
