"""All documents of a suite at once: name -> text. Whoever calls writes them.

The same findings give the same documents, byte for byte.
"""

from interlock.apps.rca.findings import Findings
from interlock.report.document import document_of
from interlock.report.jira import drafts_of
from interlock.report.markdown import markdown_of
from interlock.report.outline import outline
from interlock.report.page import page_of
from interlock.report.regressions import regressions_of


def documents(findings: Findings) -> dict[str, str]:
    """Every file by its path below the report's folder, the page first."""
    told = outline(findings)
    return {
        "report.html": page_of(told),
        "report.md": markdown_of(told),
        "report.json": document_of(told),
        "regression-report.md": regressions_of(told),
        **drafts_of(told),
    }
