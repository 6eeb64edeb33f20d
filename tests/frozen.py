"""Last import of the process from which tests fork others: exempts its objects from garbage collection.

A collection in a forked process would touch these objects, and thereby copy their memory.
"""

import gc

gc.freeze()
