"""Plants every fault, plays every clean run, and prints who saw what.

python tests/conformance/table.py [NAME ...]
"""

from __future__ import annotations

import sys

from bases import CLEAN
from faults import FAULTS
from planting import good_run, seen, watched


def main(names: list[str]) -> int:
    """Prints the table; 0 when at least 95 % of the faults were seen, with at most one false alarm."""
    missed, total = 0, 0
    for name, fault in FAULTS.items():
        if names and name not in names:
            continue
        total += 1
        who = seen(fault)
        missed += not who.by
        print(f"{who.by or 'MISSED':<10} {name:<38} {', '.join(who.rules)[:120]}", flush=True)
    alarms = 0
    for name in () if names else CLEAN:
        rules = ", ".join(finding.rule for finding in watched(good_run(name).envelopes))
        alarms += bool(rules)
        print(f"{'ALARM' if rules else 'clean':<10} {name:<38} {rules}", flush=True)
    print(f"{total - missed} of {total} faults seen ({(total - missed) / max(1, total):.1%}); ", end="")
    print(f"{alarms} false alarms in {len(CLEAN)} clean runs")
    return int(missed > 0.05 * total or alarms > 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
