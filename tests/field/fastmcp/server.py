"""A server of FastMCP: `server.py plain|middleware stdio|PORT`."""

import asyncio
import sys

import depot
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from mcp.shared.exceptions import MCPError
from reply_to_span import ReplyToSpan

variant, transport = sys.argv[1:]
depot.export("depot", logs=variant == "middleware")
server = FastMCP("depot", middleware=[ReplyToSpan()] if variant == "middleware" else [])


def register(call):
    async def tool(kilos: int = 1) -> ToolResult:
        match call["does"]:
            case "raise":
                raise ToolError(call["text"])
            case "crash":
                raise RuntimeError(call["text"])
            case "protocol_error":
                raise MCPError(call["code"], call["text"])
            case "sleep":
                await asyncio.sleep(depot.SLEEP)
                return ToolResult(content="the yard is empty")
        return ToolResult(
            content=depot.text_of(call),
            structured_content=call.get("value"),
            is_error=call["does"] == "reply_error",
        )

    server.tool(tool, name=call["tool"])


for call in depot.CALLS:
    if call["does"] != "not_registered":
        register(call)
if transport == "stdio":
    server.run("stdio", show_banner=False)
else:
    server.run("http", host="127.0.0.1", port=int(transport), show_banner=False)
