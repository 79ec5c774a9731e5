"""A server of FastMCP 2 that openllmetry instruments: `server.py linked|unlinked`, over stdio."""

import asyncio
import sys

import depot
from opentelemetry.instrumentation.mcp import McpInstrumentor

variant = sys.argv[1]
depot.export("depot")
if variant == "linked":
    McpInstrumentor().instrument()

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.tool import ToolResult
from mcp.shared.exceptions import McpError
from mcp.types import ErrorData

if variant == "unlinked":
    McpInstrumentor().instrument()
server = FastMCP("depot")


def register(call):
    async def tool(kilos: int = 1) -> ToolResult:
        match call["does"]:
            # This version has no reply that is flagged without an exception.
            case "raise" | "reply_error":
                raise ToolError(call["text"])
            case "crash":
                raise RuntimeError(call["text"])
            case "protocol_error":
                raise McpError(ErrorData(code=call["code"], message=call["text"]))
            case "sleep":
                await asyncio.sleep(depot.SLEEP)
                return ToolResult(content="the yard is empty")
        return ToolResult(content=depot.text_of(call), structured_content=call.get("value"))

    server.tool(tool, name=call["tool"])


for call in depot.CALLS:
    if call["does"] != "not_registered":
        register(call)
server.run("stdio", show_banner=False)
