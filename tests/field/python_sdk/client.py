"""Calls every tool of server.py and prints the failures that this made: `client.py plain|middleware`."""

import asyncio
import contextlib
import pathlib
import sys

import depot
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

variant = sys.argv[1]
SERVER = str(pathlib.Path(__file__).with_name("server.py"))
# Without the reply on the span, hidden failures cannot be known, and neither can the text of tool errors.
UNKNOWN = {"category": "UNKNOWN", "message": ""}
PLAIN = {call["tool"]: None for call in depot.CALLS if call.get("failure", {}).get("hidden")} | {
    tool: UNKNOWN for tool in ("reserve_pallet", "send_label", "weigh_parcel", "route_parcel", "teleport_parcel")
}


@contextlib.asynccontextmanager
async def connect():
    """A client whose server talks over stdio in the plain variant, and over streamable HTTP in the other."""
    if variant == "plain":
        arguments = [SERVER, variant, "stdio"]
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=depot.environment())
        async with Client(parameters) as client:
            yield client
        return
    async with depot.http_server(SERVER, variant) as url, Client(url) as client:
        yield client


async def main():
    async with connect() as client:
        await client.list_tools()
        for call in depot.CALLS:
            await depot.fit_into_minute(call)
            with contextlib.suppress(MCPError):
                await client.call_tool(call["tool"], depot.arguments(call), read_timeout_seconds=depot.timeout(call))
        # The tool that was given up on ends first.
        await asyncio.sleep(depot.SLEEP)


flush = (lambda: None) if variant == "plain" else depot.export("depot-client")
asyncio.run(main())
flush()
if variant == "plain":
    # Only the client knows that it gave up, and it is not traced here.
    depot.report(depot.failures("depot", PLAIN | {"scan_yard": None}), blind=True)
else:
    # The SDK withholds why a tool crashed; only the stack trace of its log record tells.
    crash = {"message": "Error executing tool weigh_parcel", "evidence": "scale 3: connection refused"}
    gave_up = {"service": "depot-client", "message": "TimeoutError"}
    depot.report(depot.failures("depot", {"scan_yard": gave_up, "weigh_parcel": crash}))
