"""Holds sessions of a token that is then revoked: `revoked.py WEB POSTGRES FLIGHT PID TOKENS`, JSON on stdin.

On stdin: {"user": ..., "token": ..., "other_user": ..., "other_token": ..., "left": "the tokens file afterwards"}.
Opens an idle and a busy PostgreSQL session, a tail, a busy statement over HTTP and one over Flight SQL with the token, and
an idle PostgreSQL session with the other one; writes the tokens file, sends SIGHUP to the server, and waits for the end
of each. Prints for each [seconds until it ended, what it was told], and what the other session still answers.
"""

import http.client
import json
import os
import select
import signal
import sys
import threading
import time
import urllib.request

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi
import psycopg

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
WAIT = 60

web, postgres, flight, pid, tokens = sys.argv[1:]
said = json.load(sys.stdin)
bearer = {"Authorization": f"Bearer {said['token']}"}
ended = {}
host, port = postgres.rsplit(":", 1)


def connect(user, token):
    return psycopg.connect(host=host, port=port, user=user, password=token, dbname="faultline", autocommit=True)


def idle():
    if not select.select([held.fileno()], [], [], WAIT)[0]:
        return "it is still open"
    try:
        held.execute("SELECT 1")
        return "it still answers"
    except psycopg.Error as error:
        return str(error)


def busy():
    try:
        working.execute(ENDLESS)
        return "it was answered"
    except psycopg.Error as error:
        return str(error)


def tail():
    try:
        return following.read().decode()
    except http.client.HTTPException as error:
        return f"broken: {error!r}"


def sql():
    asked = urllib.request.Request(f"http://{web}/api/v1/sql", json.dumps({"query": ENDLESS}).encode(),
                                   {**bearer, "Content-Type": "application/json"})
    try:
        return urllib.request.urlopen(asked, timeout=WAIT).read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def stream():
    option = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value
    try:
        with adbc_driver_flightsql.dbapi.connect(f"grpc://{flight}", db_kwargs={option: bearer["Authorization"]}) as open:
            with open.cursor() as cursor:
                cursor.execute(ENDLESS)
                return f"it was answered: {cursor.fetchone()}"
    except adbc_driver_flightsql.dbapi.Error as error:
        return str(error)


def run(name, work):
    told = work()
    ended[name] = [time.monotonic() - revoked, told]


def running():
    asked = urllib.request.Request(f"http://{web}/metrics", headers={"Authorization": f"Bearer {said['other_token']}"})
    lines = urllib.request.urlopen(asked).read().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith("faultline_queries_running"))


revoked = time.monotonic()
held, working = connect(said["user"], said["token"]), connect(said["user"], said["token"])
other = connect(said["other_user"], said["other_token"])
connection = http.client.HTTPConnection(web)
connection.request("GET", "/api/v1/tail", headers=bearer)
following = connection.getresponse()
assert following.status == 200 and following.read(3)
threads = {name: threading.Thread(target=run, args=(name, work), daemon=True)
           for name, work in [("idle", idle), ("busy", busy), ("tail", tail), ("sql", sql), ("stream", stream)]}
for thread in threads.values():
    thread.start()
began = time.monotonic()
while running() < 3:
    assert time.monotonic() - began < WAIT and not ended, f"they do not run: {ended}"
    time.sleep(0.05)
with open(tokens, "w") as file:
    file.write(said["left"])
revoked = time.monotonic()
os.kill(int(pid), signal.SIGHUP)
for thread in threads.values():
    thread.join(WAIT)
print(json.dumps({**ended, "other": other.execute("SELECT 1").fetchone()[0]}))
