"""The verbs of the server."""

from interlock.cli.verbs import Verb

VERBS = {
    "serve": Verb(
        "People", "Show runs, cases and questions in the browser, live.", "interlock_web.cli.serve"
    ),
    "token": Verb(
        "Agents", "Tokens for the server: make, list and revoke them.", "interlock_web.cli.token"
    ),
}
