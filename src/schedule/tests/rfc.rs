//! The examples of RFC 5545, section 3.8.5.3. All begin at nine in New York. The expected days were computed apart from this
//! program, by the Python package dateutil, and are those that the standard lists.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeZone as _};
use chrono_tz::America::New_York;

use super::*;

/// A rule and its first days, of which the first is its start; each is at nine in New York. With COUNT or UNTIL they are all.
#[track_caller]
fn days(text: &str, expected: &str) {
    let day = |word: &str| NaiveDate::parse_from_str(word, "%Y%m%d").expect(word);
    let nine = NaiveTime::from_hms_opt(9, 0, 0).expect("nine");
    let instant =
        |word: &str| New_York.from_local_datetime(&day(word).and_time(nine)).single().expect(word).to_rfc3339();
    let start = instant(expected.split(' ').next().expect("a first day"));
    let count = expected.split(' ').count();
    let ends = text.contains("COUNT=") || text.contains("UNTIL=");
    let mut found = Vec::new();
    for at in first(&rule(text, "America/New_York", &start), count + usize::from(ends)) {
        let local = DateTime::parse_from_rfc3339(&at).expect("an instant").with_timezone(&New_York);
        found.push(local.format("%Y%m%d").to_string());
        assert_eq!(local.time(), nine, "{text}");
    }
    assert_eq!(found.join(" "), expected, "{text}");
}

#[test]
fn days_and_weeks() {
    days(
        "FREQ=DAILY;COUNT=10",
        "19970902 19970903 19970904 19970905 19970906 19970907 19970908 19970909 19970910 19970911",
    );
    days("FREQ=DAILY;INTERVAL=2", "19970902 19970904 19970906 19970908 19970910 19970912");
    days("FREQ=DAILY;INTERVAL=10;COUNT=5", "19970902 19970912 19970922 19971002 19971012");
    days("FREQ=YEARLY;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA", "19980101 19980102 19980103 19980104");
    days("FREQ=DAILY;BYMONTH=1", "19980130 19980131 19990101 19990102");
    days("FREQ=WEEKLY;INTERVAL=2;WKST=SU", "19970902 19970916 19970930 19971014 19971028");
    days(
        "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH",
        "19970902 19970904 19970909 19970911 19970916 19970918 19970923 19970925 19970930 19971002",
    );
    days(
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "19970901 19970903 19970905 19970915 19970917 19970919 19970929 19971001 19971003 19971013 19971015 \
         19971017 19971027 19971029 19971031 19971110 19971112 19971114 19971124 19971126 19971128 19971208 \
         19971210 19971212 19971222",
    );
    days("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "19970805 19970810 19970819 19970824");
    days("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "19970805 19970817 19970819 19970831");
}

#[test]
fn days_of_the_month() {
    days("FREQ=MONTHLY;BYMONTHDAY=-3", "19970928 19971029 19971128 19971229 19980129 19980226");
    days(
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
        "19970902 19970915 19971002 19971015 19971102 19971115 19971202 19971215 19980102 19980115",
    );
    days(
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "19970930 19971001 19971031 19971101 19971130 19971201 19971231 19980101 19980131 19980201",
    );
    days(
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "19970910 19970911 19970912 19970913 19970914 19970915 19990310 19990311 19990312 19990313",
    );
    days("FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "20070115 20070130 20070215 20070315 20070330");
    days("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "19980213 19980313 19981113 19990813 20001013");
}

#[test]
fn weekdays_of_the_month() {
    days(
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        "19970905 19971003 19971107 19971205 19980102 19980206 19980306 19980403 19980501 19980605",
    );
    days(
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "19970907 19970928 19971102 19971130 19980104 19980125 19980301 19980329 19980503 19980531",
    );
    days("FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "19970922 19971020 19971117 19971222 19980119 19980216");
    days(
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "19970902 19970909 19970916 19970923 19970930 19971104 19971111 19971118 19971125 19980106",
    );
    days(
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "19970913 19971011 19971108 19971213 19980110 19980207 19980307 19980411 19980509 19980613",
    );
}

#[test]
fn plain_and_numbered_weekdays_are_a_union() {
    days(
        "FREQ=MONTHLY;BYDAY=MO,TU,1MO",
        "19970902 19970908 19970909 19970915 19970916 19970922 19970923 19970929 19970930 19971006 19971007",
    );
    days(
        "FREQ=MONTHLY;BYDAY=TU,2MO",
        "19970902 19970908 19970909 19970916 19970923 19970930 19971007 19971013 19971014",
    );
    days("FREQ=MONTHLY;BYDAY=FR,1MO;BYSETPOS=1", "19970901 19971003 19971103 19971201 19980102");
    days("FREQ=MONTHLY;BYDAY=SU,-1SA;BYMONTHDAY=25,26,27,28,29,30,31;COUNT=4", "19970927 19970928 19971025 19971026");
    days("FREQ=YEARLY;BYMONTH=3;BYDAY=TH,1MO", "19980302 19980305 19980312 19980319 19980326 19990301 19990304");
    days("FREQ=YEARLY;BYDAY=2MO,53TH", "19970113 19980112 19981231 19990111 20000110");
}

#[test]
fn fifth_from_end_needs_a_long_month() {
    days("FREQ=MONTHLY;BYDAY=-5MO", "19970901 19971201 19980302 19980601 19980803 19981102");
    days("FREQ=YEARLY;BYMONTH=3,6,12;BYDAY=-5MO", "19971201 19980302 19980601");
    days("FREQ=YEARLY;BYDAY=-53TH", "19980101 20040101 20090101 20150101 20200102");
}

#[test]
fn years() {
    days(
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "19970610 19970710 19980610 19980710 19990610 19990710 20000610 20000710 20010610 20010710",
    );
    days(
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "19970310 19990110 19990210 19990310 20010110 20010210 20010310 20030110 20030210 20030310",
    );
    days(
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        "19970101 19970410 19970719 20000101 20000409 20000718 20030101 20030410 20030719 20060101",
    );
    days("FREQ=YEARLY;BYDAY=20MO", "19970519 19980518 19990517");
    days("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "19970512 19980511 19990517");
    days(
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "19970313 19970320 19970327 19980305 19980312 19980319 19980326 19990304 19990311 19990318 19990325",
    );
    days("FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", "19961105 20001107 20041102");
}

#[test]
fn positions_in_a_period() {
    days("FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "19970904 19971007 19971106");
    days(
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "19970929 19971030 19971127 19971230 19980129 19980226 19980330",
    );
}

#[test]
fn times_of_the_day_and_hours() {
    let starts = |text: &str, count: usize| -> Vec<String> {
        let found = first(&rule(text, "UTC", "1997-09-02T09:00:00Z"), count);
        found.iter().map(|at| at[5..16].to_owned()).collect()
    };
    let working = "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40";
    let expected = ["09-02T09:00", "09-02T09:20", "09-02T09:40", "09-02T10:00"];
    assert_eq!(starts(working, 4), expected);
    // The standard's other spelling of the same.
    let minutely = "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16";
    assert_eq!(starts(working, 100), starts(minutely, 100));
    assert_eq!(
        starts("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", 9),
        ["09-02T09:00", "09-02T12:00", "09-02T15:00"]
    );
    let six = ["09-02T09:00", "09-02T09:15", "09-02T09:30", "09-02T09:45", "09-02T10:00", "09-02T10:15"];
    assert_eq!(starts("FREQ=MINUTELY;INTERVAL=15;COUNT=6", 9), six);
    assert_eq!(
        starts("FREQ=MINUTELY;INTERVAL=90;COUNT=4", 9),
        ["09-02T09:00", "09-02T10:30", "09-02T12:00", "09-02T13:30"]
    );
}
