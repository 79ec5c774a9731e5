import json

from opentelemetry import trace


class ReplyToSpan:
    """Puts the reply of each tool call into the server span, where Faultline finds hidden failures and messages."""

    async def __call__(self, ctx, call_next):
        reply = await call_next(ctx)
        if ctx.method == "tools/call":
            wire = reply if isinstance(reply, dict) else reply.model_dump(mode="json", by_alias=True, exclude_none=True)
            trace.get_current_span().set_attribute("gen_ai.tool.call.result", json.dumps(wire))
        return reply
