"""Calls every tool of server.py and prints the failures that this made; openllmetry instruments both."""

import asyncio
import contextlib
import pathlib
import sys

import depot
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from opentelemetry.instrumentation.mcp import McpInstrumentor

SERVER = str(pathlib.Path(__file__).with_name("server.py"))


async def main():
    transport = StdioTransport(sys.executable, [SERVER], env=depot.environment(), keep_alive=False)
    async with Client(transport) as client:
        await client.list_tools()
        for call in depot.CALLS:
            with contextlib.suppress(Exception):
                await client.call_tool(call["tool"], depot.arguments(call), timeout=depot.timeout(call))
        # The tool that was given up on ends first.
        await asyncio.sleep(depot.SLEEP)


flush = depot.export("depot-client")
McpInstrumentor().instrument()
asyncio.run(main())
flush()
depot.report(depot.failures("depot", {"scan_yard": {"service": "depot-client"}}))
