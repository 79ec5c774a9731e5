"""Calls every tool of server.py and prints the failures that this made: `client.py linked|unlinked`.

openllmetry instruments both sides. Their traces are linked only if it is set up before FastMCP is imported.
"""

import asyncio
import contextlib
import pathlib
import sys

import depot
from opentelemetry.instrumentation.mcp import McpInstrumentor

variant = sys.argv[1]
SERVER = str(pathlib.Path(__file__).with_name("server.py"))
flush = depot.export("depot-client")
if variant == "linked":
    McpInstrumentor().instrument()

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

if variant == "unlinked":
    McpInstrumentor().instrument()


async def main():
    arguments = [SERVER, variant]
    transport = StdioTransport(sys.executable, arguments, env=depot.environment(), keep_alive=False)
    async with Client(transport) as client:
        await client.list_tools()
        for call in depot.CALLS:
            await depot.fit_into_minute(call)
            with contextlib.suppress(Exception):
                await client.call_tool(call["tool"], depot.arguments(call), timeout=depot.timeout(call))
        # The tool that was given up on ends first.
        await asyncio.sleep(depot.SLEEP)


asyncio.run(main())
flush()
of_client = {"service": "depot-client"}
changes = {"scan_yard": of_client}
if variant == "unlinked":
    # The server makes no span for a tool that it does not have.
    changes["teleport_parcel"] = of_client
depot.report(depot.failures("depot", changes))
