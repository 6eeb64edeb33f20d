"""Keep Beam's Prism from splitting bundles of stateful steps.

Prism splits a bundle without progress in 0.2 s, as on a busy machine, and starts the split part at the same time as the
rest. In a stateful step one key is then processed twice at once: both start with one state, and one overwrites the
other's result. A lost file batch or mark leaves windows open permanently, and two concurrent polls can lose a file.
Prism has a switch that turns this off; other runners never do it and ignore the switch.
"""

import apache_beam as beam
from apache_beam.options.pipeline_options import DebugOptions

EXPERIMENT = "prism_disable_sdf_split"
"""Experiment of Beam 2.77 that turns splitting off; despite its name it applies to all bundles (stage.go)."""


def keep_bundles_whole(pipeline: beam.Pipeline) -> None:
    """Set the switch for any runner, since a remote job server can be Prism too."""
    pipeline.options.view_as(DebugOptions).add_experiment(EXPERIMENT)
