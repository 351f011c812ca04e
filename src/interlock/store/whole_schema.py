"""The whole schema: whoever asks for the tables here has all of them, whichever file names them."""

from interlock.store import investigation_schema, knowledge_schema, permission_schema, schema

all_tables = schema.metadata
PARTS = (schema, knowledge_schema, investigation_schema, permission_schema)
"""The files that add their tables to the one above."""
