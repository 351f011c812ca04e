"""All documents of a suite, one after the other. Whoever calls writes them.

The same findings give the same documents, byte for byte.
"""

from collections.abc import Iterator

from interlock.rca.findings import Findings
from interlock.rca.report.document import document_of
from interlock.rca.report.jira import drafts_of
from interlock.rca.report.markdown import markdown_of
from interlock.rca.report.outline import outline
from interlock.rca.report.page import page_of
from interlock.rca.report.regressions import regressions_of


def documents(findings: Findings) -> Iterator[tuple[str, bytes]]:
    """Every file with its path below the report's folder, the page first. The data of a very red
    night fill much memory: a file is made when it is asked for."""
    told = outline(findings)
    yield "report.html", page_of(told).encode()
    yield "report.md", markdown_of(told).encode()
    yield "report.json", document_of(told)
    yield "regression-report.md", regressions_of(told).encode()
    for name, text in drafts_of(told).items():
        yield name, text.encode()
