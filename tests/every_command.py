"""Imports of all commands, for the process from which tests fork others."""

import pipelines.completion.operation
import pipelines.init.dialogue
import slackwater

__all__ = ["pipelines", "slackwater"]
