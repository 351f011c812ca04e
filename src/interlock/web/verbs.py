"""The verbs of the server."""

from interlock.cli.verbs import Verb

VERBS = {
    "serve": Verb(
        "People", "Show runs, cases and questions in the browser, live.", "interlock.cli.serve"
    ),
    "token": Verb(
        "Agents", "Tokens for the server: make, list and revoke them.", "interlock.cli.token"
    ),
}
