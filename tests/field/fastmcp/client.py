"""Calls every tool of server.py and prints the failures that this made: `client.py plain|middleware`."""

import asyncio
import contextlib
import pathlib
import sys

import depot
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

variant = sys.argv[1]
SERVER = str(pathlib.Path(__file__).with_name("server.py"))
# Without the reply on the span, failures that were returned and not raised cannot be known.
PLAIN = {call["tool"]: None for call in depot.CALLS if call.get("failure", {}).get("hidden")} | {"send_label": None}


@contextlib.asynccontextmanager
async def connect():
    """A client whose server talks over stdio in the plain variant, and over streamable HTTP in the other."""
    if variant == "plain":
        arguments = [SERVER, variant, "stdio"]
        transport = StdioTransport(sys.executable, arguments, env=depot.environment(), keep_alive=False)
        async with Client(transport) as client:
            yield client
        return
    async with depot.http_server(SERVER, variant) as url, Client(url) as client:
        yield client


async def main():
    async with connect() as client:
        await client.list_tools()
        for call in depot.CALLS:
            await depot.fit_into_minute(call)
            with contextlib.suppress(Exception):
                await client.call_tool(call["tool"], depot.arguments(call), timeout=depot.timeout(call))
        # The tool that was given up on ends first.
        await asyncio.sleep(depot.SLEEP)


flush = (lambda: None) if variant == "plain" else depot.export("depot-client")
asyncio.run(main())
flush()
if variant == "plain":
    # Only the client knows that it gave up, and it is not traced here.
    depot.report(depot.failures("depot", PLAIN | {"scan_yard": None}), blind=True)
else:
    depot.report(depot.failures("depot", {"scan_yard": {"service": "depot-client"}}))
