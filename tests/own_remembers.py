"""Caches of two values that hundreds of tests need: the command line's parser, and the parsed text of a spec.

Tests only read both. Importing this module sets the caches in the whole process.
"""

from functools import cache, lru_cache

from pipelines import cli
from pipelines.spec import document

cli.parser_of = cache(cli.parser_of)
document._composed = lru_cache(maxsize=64)(document._composed)
