"""What hundreds of tests have made again, made once: the parser of the command line, and what the text of a spec says.

Both are only read afterwards. It holds in a process once this is imported.
"""

from functools import cache, lru_cache

from pipelines import cli
from pipelines.spec import document

cli._parser = cache(cli._parser)
document._composed = lru_cache(maxsize=64)(document._composed)
