"""A server of the official Python SDK: `server.py plain|middleware stdio|PORT`."""

import asyncio
import sys

import depot
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from reply_to_span import ReplyToSpan

variant, transport = sys.argv[1:]
depot.export("depot", logs=variant == "middleware")
middleware = [ReplyToSpan()] if variant == "middleware" else []
server = MCPServer("depot", middleware=middleware)


def register(call):
    async def tool(kilos: int = 1) -> CallToolResult:
        match call["does"]:
            case "raise":
                raise ToolError(call["text"])
            case "crash":
                raise RuntimeError(call["text"])
            case "protocol_error":
                raise MCPError(call["code"], call["text"])
            case "sleep":
                await asyncio.sleep(depot.SLEEP)
                return CallToolResult(content=[TextContent(type="text", text="the yard is empty")])
        return CallToolResult(
            content=[TextContent(type="text", text=depot.text_of(call))],
            structured_content=call.get("value"),
            is_error=call["does"] == "reply_error",
        )

    server.add_tool(tool, name=call["tool"])


for call in depot.CALLS:
    if call["does"] != "not_registered":
        register(call)
if transport == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(transport))
