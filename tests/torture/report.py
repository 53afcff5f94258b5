"""What was tried and how it ended: one table at the end."""

import sys
from collections import Counter

COLUMNS = ["before", "after", "stuck", "mixed", "lost", "missed"]


class Report:
    def __init__(self, quiet=False):
        self.quiet = quiet
        self.counts = Counter()
        self.said = 0

    def count(self, kind, verb, outcome, times=1):
        self.counts[kind, verb, outcome] += times

    def say(self, text):
        """A failure, told whole; after the first twenty only counted."""
        self.said += 1
        if self.said <= 20 and not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def table(self):
        rows = sorted({(kind, verb) for kind, verb, _ in self.counts})
        head = ["fault", "command", "points", *COLUMNS]
        body = []
        for kind, verb in rows:
            counts = [self.counts[kind, verb, column] for column in COLUMNS]
            body.append([kind, verb, sum(counts), *counts])
        body.append(["all", "", *(sum(row[i] for row in body) for i in range(2, len(head)))])
        lines = [[str(cell) for cell in row] for row in [head, *body]]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        for line in lines:
            print("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                            for i, (cell, width) in enumerate(zip(line, widths))).rstrip())

    def failed(self):
        missed = sum(count for (_, _, outcome), count in self.counts.items() if outcome == "missed")
        wrong = any(count for (_, _, outcome), count in self.counts.items() if outcome in ("mixed", "lost"))
        # A run is not wholly the same twice; where many calls are not come to, the harness is wrong.
        return wrong or missed * 50 > sum(self.counts.values())
