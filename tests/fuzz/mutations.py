"""Mutations of valid files: bytes, tokens and lines are changed, dropped, doubled and mixed."""

import re
from random import Random

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\w.+-]+|\s|[^\w\s]', re.DOTALL)

ODD = [
    *(b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity", b"Inf", b"nan", b"inf", b"0", b"-0", b"-0.0"),
    *(b"1e400", b"-1e400", b"1e-400", b"1e5", b"1.0", b"007", b"+1", b".5", b"5.", b"0x1F", b"0xFFFFFFFFFFFFFFFF"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"-9223372036854775809", b"1_0"),
    *(b"9" * 30, b"9" * 5000, b"0." + b"1" * 400, b'""', b'" "', b'"0"', b'"-5"', b'"1.5"', b'"1e400"', b'"nan"'),
    *(
        b'"0x1F"',
        b'"true"',
        b'"a"',
        b'"\\u0000"',
        b'"\\ud800"',
        b'"\\ud83d\\ude00"',
        b'"\\u006fp"',
        b'"sort\\u005fkeys"',
    ),
    *(
        b'"A/1F"',
        b'"binlog.000010"',
        b'"99999999999999999999999"',
        b'"[\\"1\\",\\"2\\"]"',
        b'"%s"' % ("é" * 9).encode(),
    ),
    *(b'"__debezium_unavailable_value"', b'"2013-02-08T12:00:00Z"', b'"2013-02-08 12:00"', b'"9999-12-31T23:59:59Z"'),
    *(b'"0001-01-01T00:00:00+14:00"', b'"2013-02-08"', b'"2013-02-08T12:00:60Z"', b"2013-02-08T12:00:00.1234567899Z"),
    *(b"{}", b"[]", b"[[]]", b'{"a":1}', b'{"id":1,"id":2}', b'[1,null,"x",{}]', b"[" * 600 + b"]" * 600),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\x0b",
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xbb",
        b"\xf4\x8f\xbf\xbf",
        b"\xe2\x80\xa8",
        b"\x03end of file\x03",
        b"\n\x03end of file\x03\n",
    ),
    *(
        b"}{",
        b"} {",
        b"}\n{",
        b'{"x":\n{"y":1}}',
        b"/*x*/",
        b"\\",
        b"'",
        b"\t",
        b"payload",
        b'"payload"',
        b'"op"',
        b'"c"',
    ),
    *(
        b'"u"',
        b'"d"',
        b'"t"',
        b'"m"',
        b'"r"',
        b'"ts_us":5,',
        b'"id":1,',
        b'"sort_keys":[3],',
        b'"cost":"2",',
        b'"seq":"1",',
    ),
]
"""Pieces that are difficult for readers."""


def mutate(data: bytes, other: bytes, choose: Random) -> bytes:
    """Apply a few changes; parts of `other` may be mixed in."""
    for _ in range(choose.choice((1, 1, 1, 2, 3, 6))):
        data = choose.choice((_token, _token, _token, _pieces, _lines, _lines, _bytes))(data, other, choose)
    return data[:100_000]


def _token(data: bytes, other: bytes, choose: Random) -> bytes:
    """Replace one token by another, odd or from the files; or double it, drop it or insert one after it."""
    tokens = _TOKENS.findall(data)
    if not tokens:
        return data
    place = choose.randrange(len(tokens))
    new = choose.choice(ODD) if choose.random() < 0.6 else choose.choice(_TOKENS.findall(other) or [b""])
    tokens[place : place + 1] = choose.choice(([new], [new], [new], [tokens[place], new], [tokens[place]] * 2, []))
    return b"".join(tokens)


def _pieces(data: bytes, other: bytes, choose: Random) -> bytes:
    """Return the beginning of one file and the end of another."""
    return data[: choose.randint(0, len(data))] + other[choose.randint(0, len(other)) :]


def _lines(data: bytes, other: bytes, choose: Random) -> bytes:
    lines, others = data.split(b"\n"), other.split(b"\n")
    place, line = choose.randrange(len(lines)), choose.choice(others)
    match choose.randrange(7):
        case 0:
            lines.insert(place, line)
        case 1:
            lines[place] = line
        case 2:
            lines.insert(place, lines[choose.randrange(len(lines))])
        case 3:
            del lines[place]
        case 4:
            lines[place] = lines[place][: choose.randint(0, len(lines[place]))]
        case 5:
            return b"\r\n".join(lines)
        case _:
            choose.shuffle(lines)
    return b"\n".join(lines)


def _bytes(data: bytes, other: bytes, choose: Random) -> bytes:
    if not data:
        return other
    place, size = choose.randrange(len(data)), choose.choice((0, 1, 1, 2, 8))
    new = bytes(choose.randrange(256) for _ in range(choose.choice((0, 1, 1, 2))))
    return data[:place] + new + data[place + size :]
