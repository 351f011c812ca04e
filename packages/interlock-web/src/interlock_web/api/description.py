"""The description of the HTTP API: OpenAPI at /api/v1/openapi.json."""

from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, Schema, SecurityScheme
from litestar.openapi.spec.enums import OpenAPIType
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from interlock.carriers.pull.messages import TOOLS
from interlock.version import __version__
from interlock_web.api.routes import API_PATH


class KernelTypes(OpenAPISchemaPlugin):
    """Describes the types of our records that Litestar takes for others: paths, and records that
    msgspec writes as lists."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        kind = field_definition.annotation
        config = getattr(kind, "__struct_config__", None)
        return kind is Path or bool(config and config.array_like)

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        if field_definition.annotation is Path:
            return Schema(type=OpenAPIType.STRING)
        names = ", ".join(field_definition.annotation.__struct_fields__)
        return Schema(type=OpenAPIType.ARRAY, items=Schema(), description=f"[{names}]")


def describe_api(*, needs_token: bool) -> OpenAPIConfig:
    """Return what the description says besides the handlers' own words."""
    return OpenAPIConfig(
        title="Interlock",
        version=__version__,
        description="Runs, cases, questions, results and an agent's work, over HTTP.",
        path=f"{API_PATH}/openapi.json",
        render_plugins=[JsonRenderPlugin(path="/")],
        components=Components(
            security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}
        ),
        security=[{"token": []}] if needs_token else [{}, {"token": []}],
        use_handler_docstrings=True,
    )


def forbid_unknown_fields(app: Litestar) -> None:
    """Describe the calls of agents as they are decoded: fields of other names are refused."""
    schemas = app.openapi_schema.components.schemas or {}
    for name in {tool.arguments.__name__ for tool in TOOLS} & {*schemas}:
        schemas[name].additional_properties = False
