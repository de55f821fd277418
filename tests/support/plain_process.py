"""An indexer over the plain agent in a process of its own: ``python -m tests.support.plain_process STATE HOME``.

Each line on stdin is a question, answered by one line of JSON; the end of stdin closes the indexer.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from relay.indexer.indexer import Indexer
from relay.transcripts import rows
from relay.transcripts.registry import Env
from tests.support.plain_agent import PLAIN


def main() -> None:
    state, home = sys.argv[1:3]
    rows.AGENTS = (PLAIN,)  # type: ignore[misc]
    indexer = Indexer(state, Env(home), None)
    indexer.start()
    for line in sys.stdin:
        question = line.split()
        answer: Any
        if question[0] == "status":
            answer = indexer.status()
        elif question[0] == "reconcile":
            try:
                answer = indexer.reconcile(float(question[1]))
            except Exception as error:
                answer = str(error)
        elif question[0] == "ready":
            answer = indexer.ready
        print(json.dumps(answer), flush=True)
    indexer.close()


main()
