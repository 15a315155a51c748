"""Occurrences of recurrence rules by python-dateutil, to compare the program under test with.

The two share no code. The crate that finds the program's days began as a port of dateutil, though: a mistake that both have
is not seen here, and src/schedule/tests/rfc.rs has the standard's own examples for that.

Reads a line of JSON for each rule, {"rule": "FREQ=…", "start": seconds since 1970}, and writes one: the seconds of the first
WANTED occurrences in UTC up to the end of LAST_YEAR, and the names of the departures that were worked around.

dateutil departs from RFC 5545 in the ways that DEPARTURES names. The Rust test prints how many rules met each.
"""

import calendar
import datetime
import itertools
import json
import sys

from dateutil import rrule

WANTED = 8
LAST_YEAR = 2100
UTC = datetime.timezone.utc

DEPARTURES = {
    "union": "a day is kept only if it is in the plain and in the numbered days of BYDAY; the standard's list is a union. "
             "Asked as two rules, whose occurrences are merged; BYSETPOS then chooses from the merged period",
    "week_day": "BYWEEKNO alone gives all seven days; the standard takes what a rule leaves open from its start. "
                "Asked with the start's weekday as BYDAY",
    "first_week": "BYSETPOS of FREQ=WEEKLY counts the first week from the start; the standard counts the whole period. "
                  "Asked from the first day of that week",
}

# A search that finds nothing ends with this year, not with 9999.
rrule.datetime = type(sys)("datetime")
rrule.datetime.__dict__.update({**vars(datetime), "MAXYEAR": LAST_YEAR})


def text(parts):
    return ";".join(f"{name}={value}" for name, value in parts.items())


def chosen(dates, freq, positions):
    """BYSETPOS: of each period the dates at these places."""
    period = (lambda at: at.year) if freq == "YEARLY" else (lambda at: (at.year, at.month))
    for _, group in itertools.groupby(dates, period):
        group = list(group)
        places = {place - 1 if place > 0 else len(group) + place for place in positions}
        yield from (group[place] for place in sorted(places) if 0 <= place < len(group))


def from_midnight(parts, start, day):
    """The parts with the times that they take from the start, and the midnight to begin with: no time of the day is missed."""
    times = {"BYHOUR": start.hour, "BYMINUTE": start.minute, "BYSECOND": start.second}
    return {**times, **parts}, day.replace(hour=0, minute=0, second=0)


def union(parts, start):
    """Plain and numbered days: two rules from the first day of the period, merged."""
    first = start.replace(day=1) if parts["FREQ"] == "MONTHLY" else start.replace(month=1, day=1)
    parts, begin = from_midnight(parts, start, first)
    positions = [int(place) for place in parts.pop("BYSETPOS", "").split(",") if place]
    days = parts.pop("BYDAY").split(",")
    both = rrule.rruleset()
    for kind in [[day for day in days if len(day) == 2], [day for day in days if len(day) > 2]]:
        both.rrule(rrule.rrulestr(text({**parts, "BYDAY": ",".join(kind)}), dtstart=begin))
    return chosen(both, parts["FREQ"], positions) if positions else both


def occurrences(rule, start):
    parts = dict(part.split("=") for part in rule.split(";"))
    met = []
    count = int(parts.pop("COUNT", WANTED))
    named = ("BYDAY", "BYMONTHDAY", "BYYEARDAY")
    if "BYWEEKNO" in parts and not any(name in parts for name in named):
        met.append("week_day")
        parts["BYDAY"] = calendar.day_abbr[start.weekday()][:2].upper()
    begin = start
    if parts["FREQ"] == "WEEKLY" and "BYSETPOS" in parts:
        met.append("first_week")
        first = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"].index(parts.get("WKST", "MO"))
        begin = start - datetime.timedelta(days=(start.weekday() - first) % 7)
        parts, begin = from_midnight(parts, start, begin)
        parts.setdefault("BYDAY", calendar.day_abbr[start.weekday()][:2].upper())
    if {len(day) > 2 for day in parts.get("BYDAY", "MO").split(",")} == {False, True}:
        met.append("union")
        dates = union(parts, start)
    else:
        dates = rrule.rrulestr(text(parts), dtstart=begin)
    return met, list(itertools.islice((at for at in dates if at >= start), min(count, WANTED)))


def main():
    print(json.dumps({"departures": DEPARTURES}))
    for line in sys.stdin:
        asked = json.loads(line)
        start = datetime.datetime.fromtimestamp(asked["start"], UTC)
        try:
            met, dates = occurrences(asked["rule"], start)
            answer = {"met": met, "found": [int(at.timestamp()) for at in dates]}
        except ValueError as error:
            # Interval and BYHOUR, BYMINUTE or BYSECOND that never meet.
            never = "empty" in str(error)
            answer = {"met": [], "found": []} if never else {"refused": str(error)}
        print(json.dumps(answer))


main()
