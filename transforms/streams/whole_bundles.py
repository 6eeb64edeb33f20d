"""Beam's Prism is kept from taking bundles of stateful steps apart.

It splits a bundle in which nothing has moved for two tenths of a second, as on a busy machine, and starts what is split
off beside the rest. In a stateful step that is one key twice at a time: both begin with the same state, and what one
leaves the other overwrites. A file batch or mark that is lost so leaves windows open for ever, and two polls that know
nothing of each other can lose a file. Prism has a switch for that, which other runners ignore: they never do this.
"""

import apache_beam as beam
from apache_beam.options.pipeline_options import DebugOptions

EXPERIMENT = "prism_disable_sdf_split"
"""Of Beam 2.77: in spite of its name it is asked before any bundle is split (stage.go)."""


def keep_bundles_whole(pipeline: beam.Pipeline) -> None:
    """Whatever the runner: a job server that is somewhere else may be Prism's, too."""
    pipeline.options.view_as(DebugOptions).add_experiment(EXPERIMENT)
