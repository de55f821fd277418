"""A generated corpus with known answers: sessions, and queries each made from one message of one session."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from corpus import EXTENSIONS, Words

STOPWORDS = "the a to of in is it that for on with we this be as can not when so but from then which should".split()
ERRORS = (
    "TypeError: cannot read properties of undefined (reading '{name}')",
    "error[E0382]: borrow of moved value: `{name}`",
    "panic: runtime error: index out of range in {name}",
    "fatal: could not read from {path}: permission denied",
    "AssertionError: expected {name} to equal {number}",
    "ModuleNotFoundError: No module named '{name}'",
    "ERROR {name}: connection refused after {number} ms",
)
#: Letters that get an accent in some words, as in languages that have them.
ACCENTS = {"e": "é", "a": "ä", "o": "ö", "u": "ü", "n": "ñ", "i": "î", "c": "ç"}
#: Han characters and kana that runs are made of, the first ones most often.
HAN = (
    "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然"
    "没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理"
    "端路径竞态检索修复测试编译缓存线程终端配置文件错误超时连接数据库索引搜索查询消息会话"
)
KANA = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワンのをにはがでともから"


class Said(NamedTuple):
    """A message; ``role`` as in a transcript."""

    role: str
    text: str


@dataclass
class Conversation:
    """A session of the corpus; ``day`` counts from the oldest."""

    id: str
    day: int
    messages: List[Said] = field(default_factory=list)


class Question(NamedTuple):
    """``text`` should find ``session`` first; ``kind`` says how it was made."""

    kind: str
    text: str
    session: str


#: Fragments of identifiers and of runs are asked for when at most so many sessions hold them.
AMBIGUOUS = 3

KINDS = ("exact", "shuffled", "identifier", "typo", "path", "error", "cjk", "accent-less", "paraphrase")


class Labelled:
    """``sessions`` sessions of one seed, and ``questions`` about them."""

    def __init__(self, seed: int, sessions: int) -> None:
        self.random = random.Random(seed)
        self.words = Words(self.random, 20_000)
        self.accented = {word: self._with_accents(word) for word in self.words.words[300:6000:9]}
        self.terms = [self._run(2) for _ in range(3000)]
        self.sessions = [self._session(number) for number in range(sessions)]
        self.whole_texts: List[str] = []

    # Sessions

    def _session(self, number: int) -> Conversation:
        conversation = Conversation(f"session-{number:05d}", self.random.randrange(400))
        topic = self.random.sample(self.words.words[200:12_000], 12)
        name, path = self._name(topic), self._path(topic)
        for turn in range(self.random.randint(2, 9)):
            say = conversation.messages.append
            say(Said("user", self._prose(topic, self.random.randint(1, 3), name)))
            if self.random.random() < 0.35:
                say(Said("user", self._chinese()))
            for _ in range(self.random.randint(1, 3)):
                if self.random.random() < 0.5:
                    name, path = self._name(topic), self._path(topic)
                say(Said("tool", f"rg -n {name} {path}"))
                say(Said("tool", self._output(topic, name, path)))
            say(Said("assistant", self._prose(topic, self.random.randint(2, 7), name, path)))
            if turn and self.random.random() < 0.2:
                say(Said("assistant", self._chinese()))
        return conversation

    def _prose(self, topic: List[str], sentences: int, *mentions: str) -> str:
        said = []
        for _ in range(sentences):
            words = []
            for _ in range(self.random.randint(6, 16)):
                chance = self.random.random()
                pool = STOPWORDS if chance < 0.4 else topic if chance < 0.6 else None
                word = self.random.choice(pool) if pool else self.words.draw(1)[0]
                words.append(self.accented.get(word, word))
            if mentions and self.random.random() < 0.4:
                words.insert(self.random.randrange(len(words)), self.random.choice(mentions))
            said.append(" ".join(words).capitalize() + ".")
        return " ".join(said)

    def _output(self, topic: List[str], name: str, path: str) -> str:
        lines = [self.words.output_line() for _ in range(self.random.choice((2, 5, 12, 25)))]
        if self.random.random() < 0.5:
            lines.insert(self.random.randrange(len(lines)), self._error(topic, name, path))
        lines.insert(self.random.randrange(len(lines)), f"{path}:{self.random.randint(1, 900)}: {name}")
        return "\n".join(lines)

    def _name(self, topic: List[str]) -> str:
        parts = [self.random.choice(topic), *self.words.draw(self.random.randint(1, 2)), self.random.choice(topic)]
        self.random.shuffle(parts)
        style = self.random.random()
        if style < 0.6:
            return parts[0] + "".join(part.capitalize() for part in parts[1:])
        return "_".join(parts).upper() if style < 0.7 else "_".join(parts)

    def _path(self, topic: List[str]) -> str:
        folders = [*self.words.draw(self.random.randint(1, 3)), self.random.choice(topic)]
        leaf = "-".join((self.random.choice(topic), *self.words.draw(1)))
        return "/".join((*folders, leaf)) + "." + self.random.choice(EXTENSIONS)

    def _error(self, topic: List[str], name: str, path: str) -> str:
        template = self.random.choice(ERRORS)
        name = self.random.choice((name, self.random.choice(topic)))
        return template.format(name=name, path=path, number=self.random.randint(2, 9999))

    def _with_accents(self, word: str) -> str:
        place = self.random.choice([at for at, letter in enumerate(word) if letter in ACCENTS] or [0])
        return word[:place] + ACCENTS.get(word[place], word[place]) + word[place + 1 :]

    def _run(self, length: int) -> str:
        if self.random.random() < 0.25:
            return "".join(self.random.choices(KANA, k=length + 1))
        return "".join(self.random.choices(HAN, weights=range(len(HAN) + 20, 20, -1), k=length))

    def _chinese(self) -> str:
        clauses = []
        for _ in range(self.random.randint(2, 5)):
            clause = "".join(self.random.choice(self.terms) for _ in range(self.random.randint(3, 7)))
            if self.random.random() < 0.3:
                clause += self.words.identifier()
            clauses.append(clause)
        return "，".join(clauses) + "。"

    # Questions

    def questions(self, each: int) -> List[Question]:
        """``each`` questions of every kind."""
        makers: Dict[str, Callable[[Conversation], Optional[str]]] = {
            "exact": self._exact,
            "shuffled": self._shuffled,
            "identifier": self._identifier,
            "typo": self._typo,
            "path": self._path_tail,
            "error": self._error_line,
            "cjk": self._fragment,
            "accent-less": self._plain,
            "paraphrase": self._paraphrase,
        }
        frequency = self._frequencies()
        self.known_words = {word for word, count in frequency.items() if count >= 3}
        found = []
        for kind in KINDS:
            made = 0
            while made < each:
                conversation = self.random.choice(self.sessions)
                text = makers[kind](conversation)
                if text is not None:
                    found.append(Question(kind, text, conversation.id))
                    made += 1
        return found

    def _frequencies(self) -> Dict[str, int]:
        counts: Dict[str, int] = {}
        for conversation in self.sessions:
            for said in conversation.messages:
                for word in set(re.findall(r"[a-z]+", said.text.lower())):
                    counts[word] = counts.get(word, 0) + 1
        return counts

    def _said(self, conversation: Conversation, *roles: str) -> str:
        texts = [said.text for said in conversation.messages if said.role in roles and said.text.isascii()]
        return self.random.choice(texts) if texts else ""

    def _sentence(self, conversation: Conversation) -> List[str]:
        sentences = re.split(r"\.\s*", self._said(conversation, "user", "assistant"))
        words = self.random.choice(sentences).split()
        return [word for word in words if word.isalpha() and word.lower() == word or word == words[0]]

    def _exact(self, conversation: Conversation) -> Optional[str]:
        text = self._said(conversation, "user", "assistant").split(". ")[0].split()
        count = self.random.randint(4, 7)
        if len(text) < count:
            return None
        start = self.random.randrange(len(text) - count + 1)
        return " ".join(text[start : start + count])

    def _shuffled(self, conversation: Conversation) -> Optional[str]:
        words = [word for word in self._sentence(conversation) if word.lower() not in STOPWORDS]
        if len(words) < 4:
            return None
        words = self.random.sample(words, self.random.randint(3, min(5, len(words))))
        return " ".join(words)

    def _identifier(self, conversation: Conversation) -> Optional[str]:
        names = re.findall(
            r"\b[a-z]+(?:[A-Z][a-z]+)+\b|\b[a-z]+(?:_[a-z]+)+\b", self._said(conversation, "assistant", "tool")
        )
        if not names:
            return None
        parts = re.findall(r"[A-Z]?[a-z]+", self.random.choice(names))
        if len(parts) < 3:
            return None
        start = self.random.randrange(len(parts) - 1)
        kept = [part.lower() for part in parts[start : start + 2]]
        asked = self.random.choice((" ".join(kept), kept[0] + kept[1].capitalize(), "_".join(kept)))
        between = r"[\W_]?" if " " in asked else "_?"  # two words apart are as good an answer to two words apart
        if self._holders("(?i)" + between.join(kept) + "(?![a-z])") > AMBIGUOUS:
            return None
        return asked

    def _typo(self, conversation: Conversation) -> Optional[str]:
        words = [word for word in self._sentence(conversation) if word.lower() not in STOPWORDS]
        long = [word for word in words if len(word) >= 5 and word.lower() in self.known_words]
        if not long or len(words) < 3:
            return None
        wrong = self.random.choice(long)
        others = [word for word in words if word != wrong]
        kept = [self._misspelt(wrong.lower()), *self.random.sample(others, min(len(others), 2))]
        self.random.shuffle(kept)
        return " ".join(kept)

    def _misspelt(self, word: str) -> str:
        at = self.random.randrange(1, len(word) - 1)
        letter = self.random.choice("abcdefghijklmnopqrstuvwxyz")
        return self.random.choice(
            (
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            )
        )

    def _path_tail(self, conversation: Conversation) -> Optional[str]:
        paths = re.findall(r"\b[a-z]+(?:/[a-z-]+)+\.[a-z]+\b", self._said(conversation, "tool", "assistant"))
        paths = [path for path in paths if "-" in path]  # of this session, not of the shared pool of lines
        if not paths:
            return None
        return "/".join(self.random.choice(paths).split("/")[-self.random.randint(1, 2) :])

    def _error_line(self, conversation: Conversation) -> Optional[str]:
        lines = [
            line
            for said in conversation.messages
            if said.role == "tool"
            for line in said.text.splitlines()
            if re.match(
                r"TypeError|error\[|panic:|fatal:|AssertionError|ModuleNotFound|ERROR [a-z_A-Z]+: connection", line
            )
        ]
        return self.random.choice(lines) if lines else None

    def _fragment(self, conversation: Conversation) -> Optional[str]:
        runs = [
            run
            for said in conversation.messages
            if not said.text.isascii()
            for run in re.findall("[\u3040-\u30ff\u4e00-\u9fff]{5,}", said.text)
        ]
        if not runs:
            return None
        run = self.random.choice(runs)
        length = self.random.randint(3, 5)
        start = self.random.randrange(len(run) - length + 1)
        fragment = run[start : start + length]
        return fragment if self._holders(fragment) <= AMBIGUOUS else None

    def _holders(self, pattern: str) -> int:
        """How many sessions hold the pattern: a fragment that many do is no fair question."""
        if not self.whole_texts:
            self.whole_texts = ["\n".join(said.text for said in session.messages) for session in self.sessions]
        found, holds = 0, re.compile(pattern).search
        for text in self.whole_texts:
            found += holds(text) is not None
            if found > AMBIGUOUS:
                break
        return found

    def _plain(self, conversation: Conversation) -> Optional[str]:
        originals = {accented: word for word, accented in self.accented.items()}
        for said in conversation.messages:
            words = said.text.strip(".").split()
            for at, word in enumerate(words):
                if word in originals and not word.isascii() and said.role != "tool":
                    around = [words[other] for other in range(max(0, at - 3), min(len(words), at + 4)) if other != at]
                    around = [other for other in around if other.isalpha() and other.lower() not in STOPWORDS]
                    if len(around) >= 2:
                        kept = [originals[word], *(originals.get(other, other) for other in around[:2])]
                        return " ".join(kept)
        return None

    def _paraphrase(self, conversation: Conversation) -> Optional[str]:
        text = self._said(conversation, "user", "assistant")
        words = list(dict.fromkeys(word.strip(".").lower() for word in text.split() if word.strip(".").isalpha()))
        words = [word for word in words if word not in STOPWORDS and len(word) > 3]
        if len(words) < 6:
            return None
        kept = self.random.sample(words, 4) + self.random.sample(STOPWORDS, 2) + self.words.draw(1)
        self.random.shuffle(kept)
        return " ".join(kept)


def pairs(conversations: List[Conversation]) -> List[Tuple[str, Said]]:
    """Every message with its session's id."""
    return [(conversation.id, said) for conversation in conversations for said in conversation.messages]
