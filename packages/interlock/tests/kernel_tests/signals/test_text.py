"""Every sentence of the rulings on text signals, as rows: role, message, outcome."""

import pytest

from interlock.signals.reading import Accepted, Reason, SignalRefused
from interlock.signals.text import read_message

AUDIT = "AUDIT_PASSED: t1\n\nVerification Results:\n- login works: VERIFIED - tests/test_login.py\n"
REVIEW = "REVIEW_PASSED: t1\n\nFiles Reviewed:\n- src/a.py\n"
HEALTHY = "HEALTH_AUDIT: HEALTHY\n\nVerification Results:\n- pytest (ci): PASS\n"
FAILED = "AUDIT_FAILED: t1\n\nIssues Found:\n- src/a.py:3: no check\n"
REMEDIATION = "REMEDIATION_COMPLETE\n\nVerification Results:\n- docker: PASS\n"
READY = "READY_FOR_REVIEW: t1\n\nSummary: done\n"
ASK = "SEEKING_DIVINE_CLARIFICATION\n\nTask: t1\n\nQuestion: which one?\n"
EXPERT = (
    "EXPERT_REQUEST\nTarget Agent: crypto\n\n"
    "---DELEGATION PROMPT START---\nWhich cipher?\n---DELEGATION PROMPT END---\n"
)


def outcome(text: str, role: str, task_id: str | None = "t1") -> str:
    reading = read_message(text, role=role, task_id=task_id)
    return reading.signal if isinstance(reading, Accepted) else reading.reason.value


FOURTEEN = [
    ("developer", "READY_FOR_REVIEW:\n\nFiles Modified:\n- a.py: new\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1 is NOT possible yet\n", "Malformed"),
    ("auditor", FAILED + "\nThe developer wrote:\n\n> AUDIT_PASSED: t1\n", "AUDIT_FAILED"),
    (
        "critic",
        "REVIEW_FAILED: t1\n\nIssues Found:\n- a.py:1: x\n\n```\nREADY_FOR_REVIEW: t1\n```\n",
        "REVIEW_FAILED",
    ),
    ("developer", READY + "\nINFRA_BLOCKED: t1\n\nIssue: no disk\n", "INFRA_BLOCKED"),
    ("auditor", AUDIT + "\n" + ASK, "SEEKING_DIVINE_CLARIFICATION"),
    ("health-auditor", HEALTHY.replace("\n", "\r\n"), "HEALTH_AUDIT: HEALTHY"),
    ("remediation", "REMEDIATION_COMPLETE \n", "REMEDIATION_COMPLETE"),
    ("auditor", "**AUDIT_PASSED: t1**\n", "Malformed"),
    ("auditor", AUDIT.replace("t1", "t1.", 1), "WrongTask"),
    ("developer", "FILE CONFLICT: src/my file.py\n", "FILE CONFLICT"),
    (
        "developer",
        "The log says\nAUDIT_PASSED: t9\n\nTASK_INCOMPLETE: t1\n\nBlocker: no key\n",
        "TASK_INCOMPLETE",
    ),
    ("developer", AUDIT, "WrongRole"),
    ("developer", "READY_FOR_REVIEW: [task_id]\n", "Malformed"),
]

INERT = [
    ("```\n{}```\n", "a fence"),
    ("~~~\n{}~~~\n", "a fence of tildes"),
    ("```\n{}", "an unclosed fence"),
    ("````\n```\n{}```\n````\n", "a fence in a longer fence"),
    ("```md\n```py\nx\n```\n{}```\n", "a fence after a fence in it"),
    ("```\n    ```\n{}```\n", "a fence that an indented fence line does not close"),
    ("```\n```sh\n{}```\n```\n", "an inner fence"),
    ("- step\n\n      ```\n{}      ```\n", "a fence under a list item"),
    ("<!--\n{}-->\n", "a comment"),
    ("see <!-- this\n{}-->\n", "a comment that starts in a line"),
    ("<!--\n{}", "an unclosed comment"),
    ("<pre>\n{}</pre>\n", "pre"),
    ("<PRE class='x'>\n{}</PRE>\n", "pre in upper case"),
    ("<code>\n{}</code>\n", "code"),
    ("text <code>\n{}</code>\n", "code in a line"),
    ("<think>\n{}</think>\n", "think"),
    ("<think>\n{}", "unclosed think"),
    ("---DELEGATION PROMPT START---\n{}---DELEGATION PROMPT END---\n", "a delegation prompt"),
    ("---DELEGATION PROMPT START---\n{}", "an unclosed delegation prompt"),
    ("> he said\n{}", "lazy continuation of a quote"),
    ("> he said\nand then\n{}", "lazy continuation, second line"),
    ("- > he said\n{}", "lazy continuation of a quote in a list"),
]

LIVE_AGAIN = [
    "```\nx\n```\n",
    "```\nx\n`````\n",
    "````\n```\n````\n",
    "```md\n```py\nx\n```\n```\n",
    "````md\n```py\n````\n",
    "~~~\n```\n~~~\n",
    "```x``` is no fence\n",
    "> quoted\n\n",
    "> quoted\n>\n",
    "> ```\n> x\n> ```\n",
    "> # heading\n",
    "<!-- x -->\n",
    "<pre>x</pre>\n",
    "Put it into `<pre>` tags.\n",
    "An unclosed <code> in a line.\n",
    "a < b and <b>bold</b>\n",
    "---DELEGATION PROMPT START---\nx\n---DELEGATION PROMPT END---\n",
    "- a list item\n",
    "    indented code\n",
    "# heading\n",
]

WHICH = [
    # highest level wins, wherever it stands
    ("developer", ASK + "\n" + READY, "SEEKING_DIVINE_CLARIFICATION"),
    ("developer", EXPERT + "\nFILE CONFLICT: a.py\n", "EXPERT_REQUEST"),
    ("developer", EXPERT + "\n" + ASK, "SEEKING_DIVINE_CLARIFICATION"),
    ("developer", "FILE CONFLICT: a.py\n\n" + READY, "FILE CONFLICT"),
    ("developer", "INFRA_BLOCKED: t1\n\nIssue: x\n\n" + ASK, "INFRA_BLOCKED"),
    ("auditor", "AUDIT_BLOCKED: t1\n\n" + AUDIT, "AUDIT_BLOCKED"),
    # CHECKPOINT never decides beside a terminal signal
    ("developer", READY + "\nCHECKPOINT: t1\n\nProgress: 90%\n", "READY_FOR_REVIEW"),
    ("developer", "CHECKPOINT: t1\n\nProgress: 90%\n\n" + READY, "READY_FOR_REVIEW"),
    ("critic", "CHECKPOINT: t1\n\nProgress: half\n", "CHECKPOINT"),
    # within one level
    ("developer", READY + "\n" + READY, "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: t1\nTASK_INCOMPLETE: t1\n\nBlocker: x\n", "Ambiguous"),
    ("developer", "READY_FOR_REVIEW: t1\n \n\nTASK_INCOMPLETE: t1\n\nBlocker: x\n", "Ambiguous"),
    ("developer", READY + "\nTASK_INCOMPLETE: t1\n\nBlocker: x\n", "TASK_INCOMPLETE"),
    ("developer", "TASK_INCOMPLETE: t1\n\nBlocker: x\n\n" + READY, "Ambiguous"),
    ("auditor", AUDIT + "\n" + FAILED, "AUDIT_FAILED"),
    ("auditor", FAILED + "\n" + AUDIT, "Ambiguous"),
    ("auditor", FAILED + "\n" + AUDIT + "\n" + FAILED, "AUDIT_FAILED"),
    ("health-auditor", HEALTHY + "\nHEALTH_AUDIT: UNHEALTHY\n", "HEALTH_AUDIT: UNHEALTHY"),
    (
        "health-auditor",
        "HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- x: FAIL\n" + HEALTHY,
        "Ambiguous",
    ),
    ("auditor", "AUDIT_PASSED: t1\n" + FAILED + "\n" + FAILED, "Ambiguous"),
    # one name with two subjects
    ("developer", READY + "\n" + READY.replace("t1", "t2"), "Ambiguous"),
    ("auditor", FAILED.replace("t1", "t2") + "\n" + FAILED, "Ambiguous"),
    # the winner fails: nothing takes its place
    ("developer", "SEEKING_DIVINE_CLARIFICATION\n\nContext: none\n\n" + READY, "Malformed"),
    ("auditor", AUDIT + "\nAUDIT_FAILED: t1\n", "Malformed"),
    # a pass said twice: each block must satisfy 5, their sections count together
    ("auditor", "AUDIT_PASSED: t1\n\nSummary: good\n\n" + AUDIT, "AUDIT_PASSED"),
    ("auditor", "AUDIT_PASSED: t1\nas I said\n\n" + AUDIT, "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\nas I said\n\n" + READY, "Malformed"),
    ("auditor", "AUDIT_FAILED: t1\nas I said\n\n" + FAILED, "AUDIT_FAILED"),
]

ILLEGAL = [
    ("critic", "READY_FOR_REVIEW: t1\n\n" + REVIEW, "REVIEW_PASSED"),
    ("critic", REVIEW + "\nREADY_FOR_REVIEW: t1\n", "WrongRole"),
    ("critic", REVIEW + "\n" + AUDIT, "WrongRole"),
    ("auditor", AUDIT + "\nREADY_FOR_REVIEW: t1\n", "WrongRole"),
    ("auditor", "AUDIT_PASSED: t1\nREADY_FOR_REVIEW: t1\n", "WrongRole"),
    ("health-auditor", HEALTHY + "\nREMEDIATION_COMPLETE\n", "WrongRole"),
    ("auditor", FAILED + "\nREADY_FOR_REVIEW: t1\n", "AUDIT_FAILED"),
    ("developer", READY + "\n" + AUDIT, "READY_FOR_REVIEW"),
    ("auditor", AUDIT + "\nREADY_FOR_REVIEW: t1\n\n" + FAILED, "AUDIT_FAILED"),
    ("auditor", FAILED + "\n" + AUDIT + "\nREADY_FOR_REVIEW: t1\n", "WrongRole"),
    ("auditor", "READY_FOR_REVIEW: t1\n", "WrongRole"),
    ("auditor", "READY_FOR_REVIEW: t2\n\nAUDIT_PASSED - t1\n", "WrongRole"),
    ("stranger", READY, "WrongRole"),
]

BODY = [
    # prose after the line and before any section, with or without blank lines between
    ("developer", "READY_FOR_REVIEW: t1\n\nis what I would say if it worked.\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\n\n \n\t\n  It is not.\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\n\n- a list\n\nIt is not.\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\n\n---\n\nIt is not.\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\n\nNo.\n\nFiles Modified:\n- a.py: new\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\nDispatch: n1\n\nIt is not.\n", "Malformed"),
    ("remediation", "REMEDIATION_COMPLETE\n\nif the disk were free.\n", "Malformed"),
    ("auditor", "AUDIT_FAILED: t1\n\nNo.\n\nIssues Found:\n- a.py:1: x\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\n\n- a list\n  that goes on\n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: t1\n\n> quoted\n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: t1\nAll is done.\n", "Malformed"),
    ("auditor", "AUDIT_FAILED: t1\nSorry.\n\nIssues Found:\n- a.py:1: x\n", "Malformed"),
    ("developer", "INFRA_BLOCKED: t1\nDocker is down.\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\nFiles Modified:\n- a.py: new\n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: t1\n- a list\n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: t1\n| a | b |\n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: t1\n```\nlog\n```\n", "READY_FOR_REVIEW"),
    # closing remarks
    ("developer", READY + "\nI could not test it on Windows.\n", "READY_FOR_REVIEW"),
    ("auditor", FAILED + "\nPlease hurry.\n", "AUDIT_FAILED"),
    ("auditor", AUDIT + "\nOne more thing.\n", "Malformed"),
    ("critic", REVIEW + "\nOne more thing.\n", "Malformed"),
    ("health-auditor", HEALTHY + "\nOne more thing.\n", "Malformed"),
    (
        "health-auditor",
        HEALTHY + "\nAll checks pass in all environments.\n",
        "HEALTH_AUDIT: HEALTHY",
    ),
    ("auditor", AUDIT + "\nAll checks pass in all environments.\n", "Malformed"),
    (
        "remediation",
        "REMEDIATION_COMPLETE\n\nAll infrastructure issues resolved.\n",
        "REMEDIATION_COMPLETE",
    ),
    ("remediation", "REMEDIATION_COMPLETE\n\nMostly, that is.\n", "Malformed"),
    ("remediation", REMEDIATION + "\nOne more thing.\n", "Malformed"),
    ("remediation", REMEDIATION + "- disk: FAIL\n", "Malformed"),
    ("remediation", REMEDIATION + "\nHEALTH_AUDIT: HEALTHY\n", "REMEDIATION_COMPLETE"),
    # anything beyond the template
    ("auditor", AUDIT + "\nCaveats:\n- c3 is untested\n", "Malformed"),
    ("auditor", AUDIT + "\nSummary: fine\nNote: c3 is untested\n", "Malformed"),
    ("auditor", AUDIT + "However, c3 is untested.\n", "Malformed"),
    ("auditor", AUDIT + "\n> quoted\n", "Malformed"),
    ("auditor", AUDIT + "\n<!-- hidden -->\n", "Malformed"),
    ("auditor", AUDIT + "\n<!-- hidden\n-->\n", "Malformed"),
    ("auditor", AUDIT + "\nSummary: fine\n", "AUDIT_PASSED"),
    ("auditor", AUDIT + "\nSummary: fine, and\nvery short\n", "AUDIT_PASSED"),
    ("auditor", AUDIT + "  with a second line\n\n```\n14 passed\n```\n", "AUDIT_PASSED"),
    ("auditor", AUDIT + "\n---\n", "AUDIT_PASSED"),
    ("auditor", "All looks good. Details follow.\n\n" + AUDIT, "AUDIT_PASSED"),
    ("auditor", "AUDIT_PASSED: t1\n\n- login: VERIFIED\n", "Malformed"),
    ("auditor", AUDIT + "\n" + EXPERT.partition("\n\n")[2], "Malformed"),
    ("developer", READY + "\n" + EXPERT.partition("\n\n")[2], "READY_FOR_REVIEW"),
    # a malformed live column-0 line with a known name
    ("auditor", "AUDIT_FAILED was close.\n\n" + AUDIT, "Malformed"),
    ("auditor", AUDIT + "\nSummary: fine\nAUDIT_FAILED - t2 was worse\n", "Malformed"),
    ("auditor", "```\nAUDIT_FAILED was close.\n```\n\n" + AUDIT, "AUDIT_PASSED"),
    ("auditor", "I weighed AUDIT_FAILED too.\n\n" + AUDIT, "AUDIT_PASSED"),
    ("auditor", "AUDIT_PASSED was close.\n\n" + FAILED, "AUDIT_FAILED"),
    ("developer", "READY_FOR_REVIEW is near.\n\n" + READY, "READY_FOR_REVIEW"),
    # a pass that lists what does not hold
    ("auditor", AUDIT + "- logout: NOT VERIFIED - no time\n", "Malformed"),
    ("auditor", AUDIT + "- logout: FAILED - 500\n", "Malformed"),
    ("auditor", AUDIT + "- [ ] logout\n", "Malformed"),
    ("auditor", AUDIT + "- failure is reported: VERIFIED - FAILED is shown\n", "AUDIT_PASSED"),
    ("auditor", AUDIT + "- FAILED logins are counted: VERIFIED - test_count\n", "AUDIT_PASSED"),
    ("auditor", AUDIT + "- logout - FAILED\n", "Malformed"),
    ("auditor", AUDIT + "- \u274c logout\n", "Malformed"),
    ("auditor", AUDIT + "- [x] logout\n", "AUDIT_PASSED"),
    ("auditor", AUDIT + "\nCommands Executed:\n- lint (ci): FAIL\n", "Malformed"),
    ("critic", REVIEW + "\nQuality Assessment:\n- Naming: INCONSISTENT\n", "Malformed"),
    ("critic", REVIEW + "\nQuality Assessment:\n- Error handling: NO issues\n", "REVIEW_PASSED"),
    # a verdict beyond any sensible length
    ("auditor", AUDIT + "- x: VERIFIED\n" * 30000, "Malformed"),
    ("developer", READY + "\nremark\n" * 40000, "READY_FOR_REVIEW"),
    # a verdict said over and over
    ("auditor", (AUDIT + "\n") * 200, "AUDIT_PASSED"),
    ("auditor", "AUDIT_PASSED: t1\nprose\n" + (AUDIT + "\n") * 300, "Malformed"),
    ("auditor", (FAILED + "\n") * 300, "AUDIT_FAILED"),
    # progress noted beside a verdict
    ("auditor", AUDIT + "\nCHECKPOINT: t1\n\nProgress: 100%\n", "AUDIT_PASSED"),
    # only labels of that signal's template open a section
    ("auditor", "AUDIT_FAILED: t1\n\nBlocker: x\n", "Malformed"),
    ("developer", "TASK_INCOMPLETE: t1\n\nIssues Found:\n- a.py:1: x\n", "Malformed"),
]

REQUIRED = [
    ("auditor", "AUDIT_PASSED: t1\n", "Malformed"),
    ("auditor", "AUDIT_PASSED: t1\n\nSummary: fine\n", "Malformed"),
    ("auditor", "AUDIT_PASSED: t1\n\nVerification Results:\n", "Malformed"),
    (
        "auditor",
        "AUDIT_PASSED: t1\n\nVerification Results:\n- [criterion_1]: VERIFIED - [evidence]\n",
        "Malformed",
    ),
    ("auditor", "AUDIT_PASSED: t1\n\nVerification Results: see above\n", "Malformed"),
    ("auditor", "AUDIT_PASSED: t1\n\nVerification Results: pytest: PASS\n", "AUDIT_PASSED"),
    (
        "auditor",
        "AUDIT_PASSED: t1\n\n**Verification Results:**\n\n* login: VERIFIED\n",
        "AUDIT_PASSED",
    ),
    (
        "auditor",
        "AUDIT_PASSED: t1\n\n## Verification Results\n\n1. login: VERIFIED\n",
        "AUDIT_PASSED",
    ),
    (
        "auditor",
        "AUDIT_PASSED: t1\n\nVerification Results:\n| Check | Result |\n|---|---|\n| a | PASS |\n",
        "AUDIT_PASSED",
    ),
    (
        "auditor",
        "AUDIT_PASSED: t1\n\nVerification Results:\n| Check | Result |\n|---|---|\n",
        "Malformed",
    ),
    (
        "auditor",
        "AUDIT_PASSED: t1\n\nVerification Results:\n| Check | Result |\n|---|---|\n| a | FAIL |\n",
        "Malformed",
    ),
    ("health-auditor", "HEALTH_AUDIT: HEALTHY\n", "Malformed"),
    (
        "health-auditor",
        "HEALTH_AUDIT: HEALTHY\n\nAll checks pass in all environments.\n",
        "Malformed",
    ),
    ("critic", "REVIEW_PASSED: t1\n\nSummary: fine\n", "Malformed"),
    ("critic", "REVIEW_PASSED: t1\n\nFiles Reviewed:\n- [file1]\n", "Malformed"),
    ("critic", "REVIEW_PASSED: t1\n\nFiles Reviewed: a.py, b.py\n", "REVIEW_PASSED"),
    ("critic", "REVIEW_PASSED: t1\n\nFiles Reviewed: none\n", "Malformed"),
    ("critic", "REVIEW_FAILED: t1\n\nFiles Reviewed:\n- a.py\n", "Malformed"),
    ("critic", "REVIEW_FAILED: t1\n\nIssues Found:\n- a.py:1: x\n", "REVIEW_FAILED"),
    ("critic", "REVIEW_FAILED: t1\n\nRequired Fixes:\n- rename it\n", "REVIEW_FAILED"),
    ("auditor", "AUDIT_FAILED: t1\n", "Malformed"),
    ("auditor", "AUDIT_FAILED: t1\n\nFailed Criteria:\n- c1: FAILED - x\n", "AUDIT_FAILED"),
    ("auditor", "AUDIT_FAILED: t1\n\nRequired Fixes:\n- rename it\n", "AUDIT_FAILED"),
    ("auditor", "AUDIT_FAILED: t1\n\nPassing Criteria:\n- c2\n", "Malformed"),
    ("developer", "TASK_INCOMPLETE: t1\n\nAttempted: all\n", "Malformed"),
    ("developer", "TASK_INCOMPLETE: t1\n\nBlocker: [description of what's missing]\n", "Malformed"),
    ("developer", "TASK_INCOMPLETE: t1\n\nBlocker:\n\nThe key is missing.\n", "TASK_INCOMPLETE"),
    (
        "developer",
        "TASK_INCOMPLETE: t1\n\nBlocker: [description of what's missing]\nthe key\n",
        "TASK_INCOMPLETE",
    ),
    ("developer", "SEEKING_DIVINE_CLARIFICATION\n\nTask: t1\n", "Malformed"),
    ("developer", EXPERT, "EXPERT_REQUEST"),
    ("developer", EXPERT.replace("Target Agent: crypto", "Request Type: decision"), "Malformed"),
    ("developer", EXPERT.replace("---DELEGATION PROMPT END---\n", ""), "Malformed"),
    (
        "developer",
        EXPERT.replace("Which cipher?", "[Agent-generated prompt for expert]"),
        "Malformed",
    ),
    ("expert", "EXPERT_ADVICE: r-1\n\nRationale:\n- x\n", "Malformed"),
    ("expert", "EXPERT_ADVICE: r-1\n\nRecommendation:\nUse AES.\n", "EXPERT_ADVICE"),
    ("expert-creator", "EXPERT_CREATED: crypto\n\nGap Filled: x\n", "Malformed"),
    (
        "expert-creator",
        "EXPERT_CREATED: crypto\n\nFile: .claude/agents/experts/[expert_name].md\n",
        "Malformed",
    ),
    (
        "expert-creator",
        "EXPERT_CREATED: crypto\n\nFile: .claude/agents/experts/crypto.md\n",
        "EXPERT_CREATED",
    ),
    (
        "business-analyst",
        "EXPANDED_TASK_SPECIFICATION: t1\n\nExpanded Specification:\nDo x.\n",
        "Malformed",
    ),
    (
        "business-analyst",
        (
            "EXPANDED_TASK_SPECIFICATION: t1\nConfidence: HIGH\n\nExpanded Specification:\n"
            "Do x.\n\nAcceptance Criteria:\n- [ ] x is done\n"
        ),
        "EXPANDED_TASK_SPECIFICATION",
    ),
    # all others are taken bare
    ("developer", "READY_FOR_REVIEW: t1", "READY_FOR_REVIEW"),
    ("developer", "INFRA_BLOCKED: t1", "INFRA_BLOCKED"),
    ("auditor", "AUDIT_BLOCKED: t1", "AUDIT_BLOCKED"),
    ("remediation", "REMEDIATION_COMPLETE", "REMEDIATION_COMPLETE"),
    ("health-auditor", "HEALTH_AUDIT: UNHEALTHY", "HEALTH_AUDIT: UNHEALTHY"),
    ("expert", "EXPERT_UNSUCCESSFUL: r-1", "EXPERT_UNSUCCESSFUL"),
    ("developer", "FILE CONFLICT: a.py", "FILE CONFLICT"),
    ("developer", "CHECKPOINT: t1", "CHECKPOINT"),
]

REASONS = [
    # in this order where several apply
    ("auditor", "READY_FOR_REVIEW: t2\n", "WrongRole"),
    ("developer", READY.replace("t1", "t2") + "\n" + READY.replace("t1", "t3"), "Ambiguous"),
    ("developer", "READY_FOR_REVIEW: t2\nprose\n", "WrongTask"),
    ("developer", "READY_FOR_REVIEW - t1\n\nDONE_NOW: t1\n", "Malformed"),
    # malformed: a known name after nothing but marks
    *(
        ("developer", mark + "READY_FOR_REVIEW: t1\n", "Malformed")
        for mark in (
            " ",
            "\t",
            "    ",
            "- ",
            "* ",
            "1. ",
            "12) ",
            "> ",
            ">> ",
            "+",
            "-",
            "// ",
            "# ",
            "### ",
            "| ",
            "**",
            "__",
            "`",
            "$ ",
            "=> ",
            "✅ ",
            "- [x] ",
            "- [ ] ",
            "<b>",
            "<p align=left>",
            "<!-- ",
            "/* ",
            "-- ",
            "; ",
            "\x1b[32m",
            "\x1b[1;31m",
            "\u00a0",
            "\u200b",
            "<think>",
            "</think>",
            "~~",
            "~",
        )
    ),
    ("developer", "```\nREADY_FOR_REVIEW: t1\n```\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW", "Malformed"),
    ("developer", "READY_FOR_REVIEW: ", "Malformed"),
    ("developer", "READY_FOR_REVIEW:t1", "Malformed"),
    ("developer", "READY_FOR_REVIEW : t1", "Malformed"),
    ("developer", "READY_FOR_REVIEW - t1", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1, t2", "Malformed"),
    ("developer", "READY_FOR_REVIEW: `t1`", "Malformed"),
    ("developer", "READY_FOR_REVIEW: -t1", "Malformed"),
    ("developer", "READY_FOR_REVIEW\u00a0: t1", "Malformed"),
    ("remediation", "REMEDIATION_COMPLETE: t1", "Malformed"),
    ("developer", "EXPERT_REQUEST: crypto", "Malformed"),
    # look-alikes
    ("auditor", "Audit Passed: t1", "Malformed"),
    ("auditor", "audit_passed: t1", "Malformed"),
    ("auditor", "AUDIT-PASSED: t1", "Malformed"),
    ("auditor", "AUDIT PASSED: t1", "Malformed"),
    ("auditor", "AUDIT\u00a0PASSED: t1", "Malformed"),
    ("auditor", "АUDIT_PАSSED: t1", "Malformed"),  # noqa: RUF001
    ("auditor", "ＡＵＤＩＴ_ＰＡＳＳＥＤ: t1", "Malformed"),  # noqa: RUF001
    ("auditor", "𝐀𝐔𝐃𝐈𝐓_𝐏𝐀𝐒𝐒𝐄𝐃: t1", "Malformed"),  # noqa: RUF001
    ("auditor", "AUDIT\u200b_PASSED: t1", "Malformed"),
    ("auditor", "AU\u00adDIT_PASSED: t1", "Malformed"),
    ("developer", "FILE_CONFLICT: a.py", "Malformed"),
    ("developer", "file conflict: a.py", "Malformed"),
    ("developer", "Checkpoint: t1", "Malformed"),
    ("health-auditor", "HEALTH_AUDIT: SICK", "Malformed"),
    ("health-auditor", "HEALTH_AUDIT: healthy", "Malformed"),
    ("health-auditor", "HEALTH_AUDIT: HEALTHY?", "Malformed"),
    # unknown
    ("developer", "WORK_DONE: t1\n\nSummary: fine\n", "Unknown"),
    ("developer", "WORK_DONE\n", "Unknown"),
    ("developer", "READY_FOR_REVIEWS: t1\n", "Unknown"),
    ("developer", "SAGE_SIGNAL:CHECKPOINT:e:s:p:t\n", "Unknown"),
    ("developer", "SAGE_SIGNAL:EPIC_COMPLETE:e:success\n", "Unknown"),
    # missing
    ("developer", "", "Missing"),
    ("developer", "All done.\n", "Missing"),
    ("developer", "This is READY_FOR_REVIEW: t1\n", "Missing"),
    ("developer", "WORK_DONE: t1\n\nThat is my READY_FOR_REVIEW.\n", "Missing"),
    ("developer", "```\nWORK_DONE: t1\n```\n", "Missing"),
    ("developer", " WORK_DONE: t1\n", "Missing"),
    ("developer", "DONE: t1\n", "Missing"),
    ("developer", "The check points at it.\nCheckpoints are fine.\n", "Missing"),
]

CHARACTERS = [
    ("developer", "\ufeffREADY_FOR_REVIEW: t1\n", "READY_FOR_REVIEW"),
    ("developer", "x\n\ufeffREADY_FOR_REVIEW: t1\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\r\n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: t1 \t \n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW: \t t1\n", "READY_FOR_REVIEW"),
    ("developer", "READY_FOR_REVIEW:\u00a0t1\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\u200b\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\u00a0\n", "Malformed"),
    ("developer", "x\rREADY_FOR_REVIEW: t1\n", "Missing"),
    ("developer", "READY_FOR_REVIEW: t1\rx\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\r\r\n", "Malformed"),
    ("developer", "x\u2028READY_FOR_REVIEW: t1\n", "Missing"),
    ("developer", "x\x0bREADY_FOR_REVIEW: t1\n", "Missing"),
    ("developer", "\x1b[32mREADY_FOR_REVIEW: t1\x1b[0m\n", "Malformed"),
    ("developer", "READY_FOR_REVIEW: t1\x1b[0m\n", "Malformed"),
]

SUBJECTS = [
    ("developer", ASK.replace("t1", "t2"), "WrongTask"),
    ("developer", ASK.replace("Task: t1\n", ""), "SEEKING_DIVINE_CLARIFICATION"),
    ("developer", ASK.replace("t1", "[task_id]"), "SEEKING_DIVINE_CLARIFICATION"),
    ("developer", ASK.replace("t1", "`t1`"), "SEEKING_DIVINE_CLARIFICATION"),
    ("developer", ASK + "Agent: auditor\n", "SEEKING_DIVINE_CLARIFICATION"),
    ("developer", EXPERT.replace("crypto", "crypto\nTask: t2"), "WrongTask"),
    ("developer", EXPERT.replace("crypto", "crypto\nTask: t1"), "EXPERT_REQUEST"),
    ("expert", "EXPERT_ADVICE: r-1\n\nTask: t2\n\nRecommendation: x\n", "EXPERT_ADVICE"),
    ("developer", "FILE CONFLICT: src/a b (copy).py\n", "FILE CONFLICT"),
    ("developer", "FILE CONFLICT: app/[slug]/page.tsx\n", "FILE CONFLICT"),
    ("developer", "FILE CONFLICT: src/../a.py\n", "FILE CONFLICT"),
    ("developer", "FILE CONFLICT: /etc/passwd\n", "Malformed"),
    ("developer", "FILE CONFLICT: ../a.py\n", "Malformed"),
    ("developer", "FILE CONFLICT: src/../../a.py\n", "Malformed"),
    ("developer", "FILE CONFLICT: ~/a.py\n", "Malformed"),
    ("developer", "FILE CONFLICT: C:\\a.py\n", "Malformed"),
    ("developer", "FILE CONFLICT: ..\\a.py\n", "Malformed"),
    ("developer", "FILE CONFLICT: [file_path]\n", "Malformed"),
    ("developer", "FILE CONFLICT: /etc/passwd\n\n" + READY, "Malformed"),
    ("expert-creator", "EXPERT_CREATED: the crypto one\n\nFile: x\n", "Malformed"),
    ("expert", "EXPERT_ADVICE: request 1\n\nRecommendation: x\n", "Malformed"),
]

MATRIX = [
    ("critic", ASK, "SEEKING_DIVINE_CLARIFICATION"),
    ("critic", EXPERT, "EXPERT_REQUEST"),
    ("expert", ASK, "WrongRole"),
    ("expert", EXPERT, "WrongRole"),
    ("remediation", "FILE CONFLICT: a.py\n", "FILE CONFLICT"),
    ("critic", "FILE CONFLICT: a.py\n", "WrongRole"),
    ("auditor", "FILE CONFLICT: a.py\n", "WrongRole"),
    ("expert", "CHECKPOINT: t1\n", "CHECKPOINT"),
    ("business-analyst", "CHECKPOINT: t1\n", "CHECKPOINT"),
    ("expert", "EXPERT_CREATED: crypto\n\nFile: x.md\n", "WrongRole"),
    ("developer", "EXPERT_CREATED: crypto\n\nFile: x.md\n", "WrongRole"),
    ("auditor", "INFRA_BLOCKED: t1\n", "WrongRole"),
    ("developer", "AUDIT_BLOCKED: t1\n", "WrongRole"),
    ("BA", ASK, "SEEKING_DIVINE_CLARIFICATION"),
    ("Health Auditor", HEALTHY, "HEALTH_AUDIT: HEALTHY"),
    ("health_auditor", HEALTHY, "HEALTH_AUDIT: HEALTHY"),
]


CORPUS = FOURTEEN + WHICH + ILLEGAL + BODY + REQUIRED + REASONS + CHARACTERS + SUBJECTS + MATRIX


def test_every_row_of_the_rulings_is_read_as_it_says() -> None:
    wrong = [
        f"{role} said {text!r}: {found}, not {expected}"
        for role, text, expected in CORPUS
        if (found := outcome(text, role)) != expected
    ]
    assert not wrong, "\n".join(wrong)


def test_inert_text_is_no_signal() -> None:
    live = [
        where
        for wrapper, where in INERT
        if outcome(wrapper.format(AUDIT), "auditor") != "Malformed"
        or outcome(wrapper.format("INFRA_BLOCKED: t1\n"), "developer") != "Malformed"
    ]
    assert live == []


@pytest.mark.parametrize("before", LIVE_AGAIN)
def test_text_after_inert_text_is_live(before: str) -> None:
    assert outcome(before + AUDIT, "auditor") == "AUDIT_PASSED"
    assert outcome(before + "\n" + AUDIT, "auditor") == "AUDIT_PASSED"


@pytest.mark.parametrize("length", [1, 128])
def test_ids_may_be_so_long(length: int) -> None:
    name = "t" * length
    assert outcome(f"READY_FOR_REVIEW: {name}", "developer", name) == "READY_FOR_REVIEW"


def test_an_id_of_129_characters_is_malformed() -> None:
    assert outcome("READY_FOR_REVIEW: " + "t" * 129, "developer", None) == "Malformed"


@pytest.mark.parametrize("name", ["t1", "task-1", "T.1", "a/b", "x#12", "t_1", "0"])
def test_ids_follow_the_grammar(name: str) -> None:
    assert outcome(f"READY_FOR_REVIEW: {name}", "developer", name) == "READY_FOR_REVIEW"


@pytest.mark.parametrize("name", ["_t", ".t", "-t", "#1", "t@1", "tä", "t:1"])
def test_other_ids_are_malformed(name: str) -> None:
    assert outcome(f"READY_FOR_REVIEW: {name}", "developer", None) == "Malformed"


def test_without_a_task_any_subject_is_taken() -> None:
    assert outcome("READY_FOR_REVIEW: t7", "developer", None) == "READY_FOR_REVIEW"


def test_an_expert_must_answer_the_request_it_was_given() -> None:
    text = "EXPERT_ADVICE: r-2\n\nRecommendation: x\n"
    reading = read_message(text, role="expert", task_id="t1", request_id="r-1")
    assert isinstance(reading, SignalRefused)
    assert reading.reason == "WrongTask"
    assert read_message(text, role="expert", task_id="t1", request_id="r-2") == read_message(
        text, role="expert", task_id="t1"
    )


def test_a_bare_signal_carries_a_note() -> None:
    reading = read_message("READY_FOR_REVIEW: t1", role="developer", task_id="t1")
    assert isinstance(reading, Accepted)
    assert reading.notes == ("READY_FOR_REVIEW came without any of its sections",)
    full = read_message(READY, role="developer", task_id="t1")
    assert isinstance(full, Accepted)
    assert full.notes == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x\ny\n" + AUDIT, 3),
        ("x\r\ny\r\n" + AUDIT, 3),
        (AUDIT + "\nOne more thing.\n", 6),
        ("AUDIT_FAILED was close.\n\n" + AUDIT, 1),
        (FAILED + "\n" + AUDIT, 6),
        ("x\n\n- AUDIT_PASSED: t1\n", 3),
        ("x\n\nWORK_DONE: t1\n", 3),
        ("nothing", None),
    ],
)
def test_says_where(text: str, line: int | None) -> None:
    assert read_message(text, role="auditor", task_id="t1").where == line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", ("column 0", "`READY_FOR_REVIEW: t1`")),
        ("**READY_FOR_REVIEW: t1**", ("without markup", "`READY_FOR_REVIEW: t1`")),
        ("WORK_DONE: t1", ("`WORK_DONE` is not a signal", "`READY_FOR_REVIEW: t1`")),
        ("AUDIT_PASSED: t1", ("Only the auditor may send AUDIT_PASSED",)),
        ("READY_FOR_REVIEW: t2", ("asked about t1", "names t2")),
        ("TASK_INCOMPLETE: t1", ("`Blocker:`",)),
        ("READY_FOR_REVIEW: t1\nTASK_INCOMPLETE: t1", ("READY_FOR_REVIEW t1", "one signal only")),
        ("READY_FOR_REVIEW: t1\nSo.", ("`Files Modified:`", "Put explanations before it")),
        ("FILE CONFLICT: /etc/x", ("inside the workspace",)),
    ],
)
def test_a_refusal_says_what_to_write(text: str, words: tuple[str, ...]) -> None:
    reading = read_message(text, role="developer", task_id="t1")
    assert isinstance(reading, SignalRefused)
    assert all(word in reading.sentence for word in words), reading.sentence


@pytest.mark.parametrize(
    ("text", "strict", "expected"),
    [
        (READY, False, "READY_FOR_REVIEW"),
        (READY, True, "Stale"),
        (READY + "Dispatch: n1\n", True, "READY_FOR_REVIEW"),
        (READY + "Dispatch: n1\n", False, "READY_FOR_REVIEW"),
        (READY + "Dispatch: n2\n", False, "Stale"),
        (READY + "Dispatch: n2\n", True, "Stale"),
        (READY + "Dispatch: n1\nDispatch: n2\n", True, "Stale"),
        (READY + "Dispatch: n1\n\n" + READY, True, "Stale"),
        (READY + "\n" + READY + "Dispatch: n1\n", True, "READY_FOR_REVIEW"),
        (READY + "Dispatch: n1\n\nTASK_INCOMPLETE: t1\n\nBlocker: x\n", True, "Stale"),
        ("READY_FOR_REVIEW: t1 [dispatch n1]\n", True, "READY_FOR_REVIEW"),
        ("READY_FOR_REVIEW: t1 [dispatch n2]\n", False, "Stale"),
        ("READY_FOR_REVIEW: t1 n1\n", True, "READY_FOR_REVIEW"),
        ("READY_FOR_REVIEW: t1 n2\n", True, "Malformed"),
        (AUDIT, True, "Stale"),
        (AUDIT + "Dispatch: n1\n", True, "WrongRole"),
        ("nothing", True, "Missing"),
    ],
)
def test_the_nonce_ties_an_answer_to_its_dispatch(text: str, strict: bool, expected: str) -> None:
    reading = read_message(text, role="developer", task_id="t1", nonce="n1", strict=strict)
    found = reading.signal if isinstance(reading, Accepted) else reading.reason.value
    assert found == expected


@pytest.mark.parametrize("lines", [0, 1_000, 100_000])
def test_a_signal_that_was_meant_is_found_however_far_from_the_end(lines: int) -> None:
    text = "Done.\nREADY_FOR_REVIEW: task 1 is near\n" + "A line of plain prose.\n" * lines
    reading = read_message(text, role="developer", task_id="task-1")
    assert isinstance(reading, SignalRefused)
    assert (reading.reason, reading.where) == (Reason.MALFORMED, 2)
