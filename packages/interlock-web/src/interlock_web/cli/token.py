"""The verb token: make, list and revoke tokens for the server."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlock.cli.app import app
from interlock.cli.output import Db, Json, echo, echo_json, echo_note, echo_table, open_project
from interlock.system.time import format_time, parse_duration

if TYPE_CHECKING:
    from interlock.api.tokens import Token

tokens = typer.Typer(
    help="Tokens for the server: make, list and revoke them.", no_args_is_help=True
)
app.add_typer(tokens, name="token")


@tokens.callback()
def _group() -> None:
    """Make, list and revoke tokens for the server."""


@tokens.command("create")
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who holds it; answers are given in this name.")
    ],
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="WORDS",
            help="What it is good for, of read, answer, upload and work, with commas between.",
        ),
    ] = "read",
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", help="For how long, such as 90d.")
    ] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Make a token and print its secret, which is shown only this once."""
    from interlock.api.tokens import create_token

    seconds = parse_duration(expires) if expires else None
    scopes = [word.strip() for word in scope.split(",") if word.strip()]
    made, secret = create_token(open_project(db), name, scopes, seconds)
    if json:
        echo_json({"token": _describe(made), "secret": secret})
        return
    echo(secret)
    until = f", until {format_time(made.expires_at)}" if made.expires_at else ""
    echo_note(
        f"token {made.name} ({', '.join(made.scopes)}{until}): keep it now, it is not shown again"
    )


@tokens.command("list")
def list_(db: Db = None, json: Json = False) -> None:
    """List all tokens, without their secrets."""
    from interlock.api.tokens import read_tokens

    found = read_tokens(open_project(db))
    if json:
        echo_json({"tokens": [_describe(each) for each in found]})
        return
    if not found:
        echo("there are no tokens; 'interlock token create NAME' makes one")
    rows = [
        (
            each.name,
            each.token_id,
            ",".join(each.scopes),
            each.describe_state(time.time()),
            format_time(each.expires_at) if each.expires_at else "-",
            format_time(each.used_at) if each.used_at else "-",
        )
        for each in found
    ]
    echo_table(("NAME", "ID", "SCOPES", "STATE", "EXPIRES", "USED"), rows)


@tokens.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")],
    db: Db = None,
    json: Json = False,
) -> None:
    """Revoke a token at once, also for servers that are running."""
    from interlock.api.tokens import revoke_token

    gone = revoke_token(open_project(db), name)
    if json:
        echo_json({"token": _describe(gone)})
    else:
        echo(f"token {gone.name} is revoked")


def _describe(token: "Token") -> dict[str, Any]:
    import msgspec

    return {**msgspec.to_builtins(token), "state": token.describe_state(time.time())}
