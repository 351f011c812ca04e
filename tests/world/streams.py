"""What the agent CLIs print, event by event: the building blocks of scenes. Written by us after
watching them; nothing is recorded.
"""

from typing import Any

Event = dict[str, Any]


class Claude:
    """Claude Code's stream-json."""

    @staticmethod
    def init(session_id: str = "s-1", **more: Any) -> Event:
        return {"type": "system", "subtype": "init", "session_id": session_id, **more}

    @staticmethod
    def text_event(text: str, **more: Any) -> Event:
        message = {"id": "m", "content": [{"type": "text", "text": text}]}
        return {"type": "assistant", "message": message, "parent_tool_use_id": None, **more}

    @staticmethod
    def thought(text: str) -> Event:
        return {
            "type": "assistant",
            "message": {"id": "m", "content": [{"type": "thinking", "thinking": text}]},
        }

    @staticmethod
    def uses(tool_id: str, name: str = "Bash") -> Event:
        block = {"type": "tool_use", "id": tool_id, "name": name, "input": {}}
        return {"type": "assistant", "message": {"id": "m", "content": [block]}}

    @staticmethod
    def used(tool_id: str, content: Any = "out", **more: Any) -> Event:
        block = {"type": "tool_result", "tool_use_id": tool_id, "content": content, **more}
        return {"type": "user", "message": {"role": "user", "content": [block]}}

    @staticmethod
    def system(subtype: str, **more: Any) -> Event:
        return {"type": "system", "subtype": subtype, **more}

    @staticmethod
    def failed(text: str, error: str, status: int | None = None, **more: Any) -> list[Event]:
        """A synthetic message, and a result that is called a success."""
        end = Claude.result(text, is_error=True, api_error_status=status, **more)
        return [Claude.text_event(text, error=error), end]

    @staticmethod
    def limited(status: str, resets_at: int | None) -> Event:
        info = {"status": status, "resetsAt": resets_at, "rateLimitType": "five_hour"}
        return {"type": "rate_limit_event", "rate_limit_info": info}

    @staticmethod
    def result(text: str | None, **more: Any) -> Event:
        event = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1}
        return {**event, "result": text, "session_id": "s-1", **more}


class Codex:
    """Codex CLI's exec --json."""

    @staticmethod
    def start_events(thread_id: str = "t-1") -> list[Event]:
        return [{"type": "thread.started", "thread_id": thread_id}, {"type": "turn.started"}]

    @staticmethod
    def started(item_id: str, kind: str = "command_execution", **more: Any) -> Event:
        return {"type": "item.started", "item": {"id": item_id, "type": kind, **more}}

    @staticmethod
    def completed(item_id: str, kind: str = "command_execution", **more: Any) -> Event:
        return {"type": "item.completed", "item": {"id": item_id, "type": kind, **more}}

    @staticmethod
    def text_event(text: str, item_id: str = "m") -> Event:
        return Codex.completed(item_id, "agent_message", text=text)

    @staticmethod
    def error(message: str) -> Event:
        return {"type": "error", "message": message}

    @staticmethod
    def done(tokens: int = 0) -> Event:
        usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 0}
        return {"type": "turn.completed", "usage": usage}

    @staticmethod
    def failed(message: str) -> list[Event]:
        return [Codex.error(message), {"type": "turn.failed", "error": {"message": message}}]


class Cursor:
    """Cursor's stream-json."""

    init = Claude.init
    text_event = Claude.text_event

    @staticmethod
    def tool(call_id: str, subtype: str, **result: Any) -> Event:
        call = {"shellToolCall": {"args": {}, **({"result": result} if result else {})}}
        return {"type": "tool_call", "subtype": subtype, "call_id": call_id, "tool_call": call}

    @staticmethod
    def result(text: str, **more: Any) -> Event:
        event = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1}
        return {**event, "result": text, "session_id": "s-1", **more}


class Gemini:
    """Gemini CLI's stream-json."""

    @staticmethod
    def init(session_id: str = "s-1") -> Event:
        return {"type": "init", "session_id": session_id, "model": "auto"}

    @staticmethod
    def text_event(text: str) -> Event:
        return {"type": "message", "role": "assistant", "content": text, "delta": True}

    @staticmethod
    def uses(tool_id: str) -> Event:
        return {"type": "tool_use", "tool_name": "run", "tool_id": tool_id, "parameters": {}}

    @staticmethod
    def used(tool_id: str, **more: Any) -> Event:
        return {"type": "tool_result", "tool_id": tool_id, "status": "success", **more}

    @staticmethod
    def result(status: str = "success", **more: Any) -> Event:
        return {"type": "result", "status": status, "stats": {"input_tokens": 10}, **more}

    @staticmethod
    def failed(message: str) -> Event:
        return Gemini.result("error", error={"type": "Error", "message": message})


class Opencode:
    """OpenCode's run --format json."""

    @staticmethod
    def part(kind: str, **part: Any) -> Event:
        return {"type": kind, "timestamp": 1, "sessionID": "ses_1", "part": part}

    @staticmethod
    def text_event(text: str) -> Event:
        return Opencode.part("text", messageID="m", type="text", text=text)

    @staticmethod
    def used(status: str = "completed", **state: Any) -> Event:
        return Opencode.part("tool_use", tool="bash", callID="c", state={"status": status, **state})

    @staticmethod
    def finish(reason: str = "stop", **more: Any) -> Event:
        tokens = {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 3, "write": 0}}
        return Opencode.part("step_finish", reason=reason, tokens=tokens, cost=0.5, **more)

    @staticmethod
    def failed(message: str) -> Event:
        error = {"name": "APIError", "data": {"message": message}}
        return {"type": "error", "sessionID": "ses_1", "error": error}


class Copilot:
    """GitHub Copilot CLI's JSON lines."""

    @staticmethod
    def event(kind: str, **data: Any) -> Event:
        return {"type": kind, "data": data, "id": "1"}

    @staticmethod
    def text_event(text: str, *tools: str, **more: Any) -> Event:
        asked = [{"toolCallId": tool} for tool in tools]
        return Copilot.event(
            "assistant.message", messageId="m", content=text, toolRequests=asked, **more
        )

    @staticmethod
    def result(exit_code: int = 0) -> Event:
        return {"type": "result", "sessionId": "s-1", "exitCode": exit_code, "usage": {}}
