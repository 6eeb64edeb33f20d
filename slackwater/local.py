"""Surveys whose reports each person's own device randomises: the commands of `slackwater local`."""

from pipelines.local.estimate import SurveyEstimates, estimate
from pipelines.local.plan import PlannedSurvey, plan
from pipelines.local.report import ReportedSurvey, report

__all__ = ["PlannedSurvey", "ReportedSurvey", "SurveyEstimates", "estimate", "plan", "report"]
