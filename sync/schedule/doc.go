// Package schedule says when: at which instants a cron expression comes round, and whether windows are open.
//
// It is arithmetic on instants and owns no clock: whoever asks says what time it is. Its two units are the Cron, whose slots are instants, and the
// Windows, which are open or closed at any instant.
//
// # Expressions
//
// Five fields as robfig/cron/v3 has them (minute, hour, day of month, month, day of week), or @yearly, @monthly, @weekly, @daily, @hourly and
// @every DURATION. That library is handed nothing that was not read here before: it panics for a bare TZ=Europe/Rome, takes *-5 for *, a field of nothing
// but commas for one that never matches, and searches minute by minute through five years for it. When day of month and day of week are
// both restricted, either is enough; */2 is a restriction. An expression that never comes, such as 0 0 31 2 *, is refused as well.
//
// A time zone is a name of the IANA database. It stands beside the expression, never in it.
//
// # Daylight saving
//
// The library searches in a calendar without time zones; what its times of day mean in a zone is decided here, as cron(8) of Vixie and Debian does:
//
//   - An expression that names hours (30 2 * * *, */10 8-18 * * *) has each of its slots exactly once. A slot that falls into the hour that is skipped comes
//     at the first instant after it, and slots that fall together there are one. A slot in the hour that is repeated comes the first time.
//   - An expression for every hour (*/10 * * * *, @hourly) goes on through both: it has no slots in an hour that does not exist, and slots in both
//     of two hours of the same name.
//   - @every counts from the start of Unix time, so that it does not depend on when anybody was started.
//
// # Windows
//
// A window is open from each slot of its expression for its duration, which is elapsed time: 63 hours are 63 hours, also over the weekend on which the
// clocks change, when such a window ends an hour earlier or later by the clock. Its end does not belong to it. A window that is longer than
// the time between two slots goes on without a gap. While a Deny is on, the whole is closed; where there is an Allow, the whole is closed
// outside of all of them.
package schedule
