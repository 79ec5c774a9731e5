import json

from fastmcp.server.middleware import Middleware
from opentelemetry import trace


class ReplyToSpan(Middleware):
    """Puts the reply of each tool call into the server span, where Faultline finds hidden failures and messages."""

    async def on_call_tool(self, context, call_next):
        result = await call_next(context)
        reply = {
            "content": [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content],
            "structuredContent": result.structured_content,
            "isError": result.is_error,
        }
        span = trace.get_current_span()
        span.set_attribute("gen_ai.tool.call.result", json.dumps(reply))
        if result.is_error:
            span.set_attribute("error.type", "tool_error")
            span.set_status(trace.StatusCode.ERROR)
        return result
