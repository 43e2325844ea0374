"""Compute how the time of a regular expression can grow, from the number of ways in which it can match the same text.

The expression becomes an automaton whose places are its characters. If two ways lead from a place back to itself with
the same text, the number of ways doubles with each round: the time is exponential. If one text leads round one loop, on
to the next and round that, each such step adds a power: `a*a*b` takes quadratic time. Both are computed as by Weber and
Seidl, "On the degree of ambiguity of finite automata" (1991). A loop after which nothing can fail costs nothing.

The result is for one match at one position. The expressions are parsed by `re._parser`, which is private to Python.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import inf
from re import _constants as k
from re import _parser
from typing import Any, TypeVar

T = TypeVar("T")
# More repetitions than this count as any number, or as exponential if they have a limit and can be empty: which of them
# are empty then doubles the ways with each.
MANY = 8
# Different characters of each kind. The expression's own characters and their neighbors are added.
CHARACTERS = "\0\t\n\r AZaz_059!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~\x7f\u00a0éÉ\u0663\u2028中\U0001f600"
CATEGORIES = {
    k.CATEGORY_DIGIT: r"\d",
    k.CATEGORY_NOT_DIGIT: r"\D",
    k.CATEGORY_SPACE: r"\s",
    k.CATEGORY_NOT_SPACE: r"\S",
    k.CATEGORY_WORD: r"\w",
    k.CATEGORY_NOT_WORD: r"\W",
}
CHARACTER_SETS = (k.LITERAL, k.NOT_LITERAL, k.ANY, k.IN)
REPEATS = (k.MAX_REPEAT, k.MIN_REPEAT, k.POSSESSIVE_REPEAT)


def growth(pattern: str, flags: int = 0) -> float:
    """Return the power of the text's length with which the time of a match can grow. Infinity if it is exponential."""
    tree = _parser.parse(pattern, flags)
    alphabet = sorted(set(CHARACTERS).union(*map(_around, _points(tree))))
    found, todo = 0.0, [(tree, False)]
    while todo:
        part, is_repeated = todo.pop()
        automaton = _Automaton(part, tree.state.flags, alphabet)
        power = _power(automaton)
        found = max(found, power + (is_repeated and power > 0))
        todo += [(inner, is_repeated or repeated) for inner, repeated in automaton.assertions]
    return found


def _around(point: int) -> set[str]:
    return {chr(other) for other in (point - 1, point, point + 1) if 0 <= other < 0x110000}


def _points(tree: Any) -> Iterator[int]:
    """Yield all characters of a parsed expression, and the first and last one of its ranges."""
    if isinstance(tree, _parser.SubPattern):
        tree = tree.data
    if isinstance(tree, tuple) and len(tree) == 2 and tree[0] in (k.LITERAL, k.NOT_LITERAL):
        yield tree[1]
    elif isinstance(tree, tuple) and len(tree) == 2 and tree[0] is k.RANGE:
        yield from tree[1]
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from _points(part)


class _Automaton:
    """The automaton of an expression. `steps` need no character; `places` have a set of characters and the node behind.

    A set of characters is a number with a bit for each character of the alphabet. References to groups count as any
    text, and assertions as nothing, which can only overestimate the time. `assertions` are kept with whether they are
    repeated; `tests` are nodes that can fail without a character.
    """

    def __init__(self, tree: Any, flags: int, alphabet: list[str]) -> None:
        self._flags = flags
        self._alphabet = alphabet
        self._everything = (1 << len(alphabet)) - 1
        self._count = self._depth = 0
        self.has_many_empty = False
        self.steps: defaultdict[int, list[int]] = defaultdict(list)
        self.places: dict[int, tuple[int, int]] = {}
        self.assertions: list[tuple[Any, bool]] = []
        self.tests: set[int] = set()
        self.end = self._all(tree, self._node())

    def _node(self, *before: int) -> int:
        self._count += 1
        for node in before:
            self.steps[node].append(self._count)
        return self._count

    def _all(self, tree: Any, node: int) -> int:
        for kind, value in tree:
            node = self._one(kind, value, node)
        return node

    def _one(self, kind: Any, value: Any, node: int) -> int:
        if kind in CHARACTER_SETS:
            return self._place(node, self._characters(kind, value))
        if kind is k.SUBPATTERN:
            _group, added, removed, tree = value
            before, self._flags = self._flags, (self._flags | added) & ~removed
            node, self._flags = self._all(tree, node), before
            return node
        if kind is k.ATOMIC_GROUP:
            return self._all(value, node)
        if kind is k.BRANCH:
            return self._node(*[self._all(branch, self._node(node)) for branch in value[1]])
        if kind is k.GROUPREF_EXISTS:
            return self._node(*[self._all(branch or (), self._node(node)) for branch in value[1:]])
        if kind in REPEATS:
            return self._repeat(value, node)
        if kind is k.GROUPREF:
            return self._loop(node, lambda inner: self._place(inner, self._everything))
        if kind in (k.ASSERT, k.ASSERT_NOT):
            self.assertions.append((value[1], self._depth > 0))
        elif kind is not k.AT:
            raise ValueError(f"{kind} is not known")
        test = self._node(node)
        self.tests.add(test)
        return self._node(test)

    def _place(self, node: int, characters: int) -> int:
        after = self._node()
        self.places[node] = characters, after
        return self._node(after)

    def _repeat(self, value: Any, node: int) -> int:
        least, most, tree = value
        self.has_many_empty |= MANY < most < k.MAXREPEAT and tree.getwidth()[0] == 0
        for _ in range(min(least, MANY)):
            node = self._all(tree, node)
        if most > MANY and most != least:
            return self._loop(node, lambda inner: self._all(tree, inner))
        ends = [node]
        for _ in range(min(most, MANY) - min(least, MANY)):
            ends.append(self._all(tree, self._node(ends[-1])))
        return self._node(*ends)

    def _loop(self, node: int, inside: Callable[[int], int]) -> int:
        """Add a loop with a way out before the first round, and another one after each round."""
        self._depth += 1
        start = self._node(node)
        back = self._node(inside(start))
        self._depth -= 1
        self.steps[back].append(start)
        return self._node(node, back)

    def _characters(self, kind: Any, value: Any) -> int:
        if kind is k.ANY:
            return self._matched("." if self._flags & re.DOTALL else r"[^\n]")
        items = value if kind is k.IN else [(k.LITERAL, value)]
        found = 0
        for item, its_value in items:
            if item is not k.NEGATE:
                found |= self._listed(item, its_value)
        if self._flags & re.IGNORECASE:
            letters = {self._alphabet[place] for place in range(len(self._alphabet)) if found >> place & 1}
            cases = letters.union(*((letter.lower(), letter.upper()) for letter in letters))
            found = sum(1 << place for place, letter in enumerate(self._alphabet) if letter in cases)
        is_negated = kind is k.NOT_LITERAL or items[0][0] is k.NEGATE
        return found ^ self._everything if is_negated else found

    def _listed(self, kind: Any, value: Any) -> int:
        if kind is k.CATEGORY:
            return self._matched(CATEGORIES[value])
        first, last = value if kind is k.RANGE else (value, value)
        return (1 << bisect_right(self._alphabet, chr(last))) - (1 << bisect_left(self._alphabet, chr(first)))

    def _matched(self, pattern: str) -> int:
        matches = re.compile(pattern, re.DOTALL | self._flags & re.ASCII).match
        return sum(1 << place for place, letter in enumerate(self._alphabet) if matches(letter))

    def ways(self, node: int) -> dict[int, int]:
        """Return the number of ways, at most two of which matter, from a node to each place without a character."""
        found = dict[int, int]()
        stack, current = [(node, iter([node]))], set[int]()
        while stack:
            before, following = stack[-1]
            after = next(following, None)
            if after is None:
                stack.pop()
                current.discard(before)
            elif after not in current:
                found[after] = found.get(after, 0) + (after in self.places)
                current.add(after)
                stack.append((after, iter(self.steps[after])))
        return {place: count for place, count in found.items() if count}

    def reached(self, node: int) -> set[int]:
        """Return the nodes that can be reached without a character."""
        return _reachable(node, lambda before: self.steps[before]) | {node}


def _power(automaton: _Automaton) -> float:
    ways = {place: automaton.ways(after) for place, (_characters, after) in automaton.places.items()}
    characters = {place: of_place for place, (of_place, _after) in automaton.places.items()}
    loops = [loop for loop in _loops(ways, lambda place: ways[place]) if _can_fail(automaton, loop, ways)]
    if automaton.has_many_empty or any(_is_exponential(loop, ways, characters) for loop in loops):
        return inf
    behind = {loop: _reachable(next(iter(loop)), lambda place: ways[place]) for loop in loops}
    follows: dict[frozenset[int], list[frozenset[int]]] = {
        first: [
            second
            for second in loops
            if first != second and second <= behind[first] and _share_a_text(first, second, ways, characters)
        ]
        for first in loops
    }

    def longest(loop: frozenset[int]) -> int:
        return 1 + max(map(longest, follows[loop]), default=0)

    return max(map(longest, loops), default=0)


def _can_fail(automaton: _Automaton, loop: frozenset[int], ways: dict[int, dict[int, int]]) -> bool:
    """Return whether a match can fail after a round of the loop. If not, no other way is tried."""
    if any(not loop.issuperset(ways[place]) for place in loop):
        return True
    nodes = set[int]().union(*(automaton.reached(automaton.places[place][1]) for place in loop))
    return automaton.end not in nodes or any(
        automaton.end in automaton.reached(test) for test in nodes & automaton.tests
    )


def _is_exponential(loop: frozenset[int], ways: dict[int, dict[int, int]], characters: dict[int, int]) -> bool:
    inside = {place: [after for after in ways[place] if after in loop] for place in loop}
    if any(ways[place][after] > 1 for place in loop for after in inside[place]):
        return True

    def both(pair: tuple[int, int]) -> list[tuple[int, int]]:
        return [(one, two) for one, two in product(*map(inside.__getitem__, pair)) if characters[one] & characters[two]]

    together = _loops([(place, place) for place in loop], both)
    return any(len({one == two for one, two in pairs}) == 2 for pairs in together)


def _share_a_text(
    first: frozenset[int], second: frozenset[int], ways: dict[int, dict[int, int]], characters: dict[int, int]
) -> bool:
    """Return whether one text leads round the first loop, from there to the second one, and round that."""

    def all_three(places: tuple[int, int, int]) -> list[tuple[int, int, int]]:
        one, two, three = places
        return [
            (x, y, z)
            for x in first.intersection(ways[one])
            for z in second.intersection(ways[three])
            if (common := characters[x] & characters[z])
            for y in ways[two]
            if common & characters[y]
        ]

    return any((p, q, q) in _reachable((p, p, q), all_three) for p in first for q in second)


def _reachable(start: T, following: Callable[[T], Iterable[T]]) -> set[T]:
    seen, todo = set[T](), [start]
    while todo:
        new = set(following(todo.pop())) - seen
        seen |= new
        todo += new
    return seen


def _loops(starts: Iterable[T], following: Callable[[T], Iterable[T]]) -> list[frozenset[T]]:
    """Return the largest sets whose members can all be reached from each other, in at least one step (Tarjan)."""
    number, lowest, path, on_path = dict[T, int](), dict[T, int](), list[T](), set[T]()
    found: list[frozenset[T]] = []
    for start in starts:
        stack = [] if start in number else [(start, iter([start]))]
        while stack:
            before, todo = stack[-1]
            after = next(todo, None)
            if after is not None and after not in number:
                number[after] = lowest[after] = len(number)
                path.append(after)
                on_path.add(after)
                stack.append((after, iter(following(after))))
            elif after is not None:
                lowest[before] = min(lowest[before], number[after]) if after in on_path else lowest[before]
            else:
                stack.pop()
                if stack:
                    lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[before])
                if before in on_path and lowest[before] == number[before]:
                    members = path[path.index(before) :]
                    del path[path.index(before) :]
                    on_path.difference_update(members)
                    if len(members) > 1 or before in following(before):
                        found.append(frozenset(members))
    return found
