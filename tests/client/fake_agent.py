"""A far side for tests, run as a command: speaks the protocol, and misbehaves in the one way its arguments name."""

import json
import os
import sys
import time

METHODS = ("aiVault.searchSessions", "aiVault.searchStatus")
OUT = sys.stdout.buffer


def hit(number, updated="2026-03-01T09:30:00.000Z", **fields):
    return {
        "agent": "claude",
        "sessionId": f"session-{number}",
        "title": f"Session {number}",
        "cwd": "/src/app",
        "branch": "main",
        "updatedAt": updated,
        "messageCount": 3,
        "score": 1.5,
        "source": {"presence": "present"},
        "evidence": {"snippet": "the [[word]] here", "role": "user", "timestamp": updated},
        **fields,
    }


def results(hits, cursor=None):
    return {
        "kind": "results",
        "hits": hits,
        "page": {"cursor": cursor, "hasMore": cursor is not None},
        "generation": 7,
        "truncated": {"candidates": False, "snippets": 0, "query": False, "freshness": False},
        "durationMs": 2,
    }


def status(**fields):
    return {
        "enabled": True,
        "phase": "current",
        "filesIndexed": 5,
        "filesDue": 0,
        "filesFailed": 1,
        "degradedRoots": [],
        "lastReconcileAt": 1700000000000,
        "lastSweepCompletedAt": None,
        "generation": 7,
        **fields,
    }


def pages(request, hits):
    """A page of ``hits`` as an agent of one index would give it: the cursor is the place of the next hit."""
    start = int(request["params"].get("cursor") or 0)
    end = start + request["params"]["limit"]
    return results(hits[start:end], str(end) if end < len(hits) else None)


def send(value):
    OUT.write(json.dumps(value).encode() + b"\n")
    OUT.flush()


def answer(request, behaviour):
    """The response frame a well-behaved host would send, but for what ``behaviour`` changes in its content."""
    frame = {"jsonrpc": "2.0", "id": request["id"]}
    if behaviour == "ancient" or request["method"] not in METHODS:
        return {**frame, "error": {"code": -32601, "message": "Method not found"}}
    if behaviour == "no-status" and request["method"] == METHODS[1]:
        return {**frame, "error": {"code": -32601, "message": "Method not found"}}
    if behaviour == "failing":
        return {**frame, "error": {"code": -32603, "message": "in /home/secret/folder"}}
    if request["method"] == METHODS[1]:
        return {**frame, "result": status(degradedRoots=[{"root": "/home/secret", "reason": "gone"}], nodes=9)}
    if behaviour == "lying":
        return {**frame, "result": {"kind": "results", "hits": "all of them"}}
    if behaviour == "leaking":
        return {
            **frame,
            "result": results(
                [
                    hit(
                        1,
                        executionHostId="ssh:somebody",
                        resumeCommand="rm -rf /",
                        extra=1,
                        title="\x1b]0;owned\x07\x1b[31mred",
                        source={"presence": "present", "filePath": "/home/secret/x.jsonl", "codexHome": "/home/secret"},
                    ),
                ]
            ),
        }
    if behaviour == "disabled":
        return {**frame, "result": {"kind": "unavailable", "reason": "disabled"}}
    if behaviour == "too-many":
        return {**frame, "result": results([hit(number) for number in range(request["params"]["limit"] + 1)])}
    hits = [hit(f"{behaviour}-{number}", f"2026-03-01T09:{59 - number:02d}:00.000Z") for number in range(30)]
    return {**frame, "result": pages(request, hits)}


def main(behaviour, *details):
    if behaviour == "echoing":  # a terminal in between that gives back what it is given
        behaviour, echo = "well", True
    else:
        echo = False
    if behaviour == "noisy":
        OUT.write(b"Welcome!\nstty: standard input: Inappropriate ioctl for device\n")
        OUT.write(b'{"jsonrpc":"2.0","id":1,"result":3}\n\xff\xfe\n')
        OUT.write(b"x" * (5 << 20) + b"\n[]\n{}\n")
        OUT.flush()
    if behaviour == "not-found":
        sys.stderr.write("sh: 1: /home/secret/relay: not found\n")
        sys.exit(127)
    if behaviour == "stderr":
        sys.stderr.write("warning: all is well\n" * 100000)
        sys.stderr.flush()
    if behaviour == "deaf":
        time.sleep(60)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if echo:
            OUT.write(line)
        if behaviour == "silent":
            continue
        if behaviour == "stubborn":
            import signal

            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            send(answer(request, behaviour))
            time.sleep(60)
        if behaviour == "slow":
            time.sleep(float(details[0]))
        if behaviour == "flooding":
            while True:
                OUT.write(b"y" * 65536)
        if behaviour == "chatty":
            while True:
                OUT.write(b'{"jsonrpc":"2.0","method":"progress"}\n' * 100)
        if behaviour == "dying":
            OUT.write(json.dumps(answer(request, behaviour)).encode()[:40])
            OUT.flush()
            os._exit(3)
        if behaviour == "other-ids":
            for other in (request["id"] + "0", 1, None, ""):
                send({**answer(request, "lying"), "id": other})
            send({"jsonrpc": "2.0", "id": request["id"], "method": "ask"})
            send({"jsonrpc": "2.0", "id": request["id"], "result": 1, "error": {"code": 1}})
        send(answer(request, behaviour))


if __name__ == "__main__":
    main(*sys.argv[1:])
