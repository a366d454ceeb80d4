// Package alarm tells people and Alertmanagers what happens to Moorings, as Alarm objects ask for it.
//
// A Dispatcher hears of every Mooring after each pass (it is report's Notifier) and keeps one book for each Alarm. What is heard is the state
// of a Mooring, read from its status, not a stream of changes: is it failed, guarded, drifted, fought over, or fine. The book compares this with what was told
// already, so a fault is told once however many passes find it, and nothing depends on any single call. Only what has no state,
// a correction or a commit that came into force, is a note that may be lost when the agent ends at that instant.
//
// Hearing takes a lock and no request: a receiver that stalls delays no pass. Each Alarm has a goroutine of its own that
// gathers for spec.groupWait, makes one message of all that is there, and sends it with a deadline. A message that could not be sent is tried again with growing pauses;
// after the last try what still holds goes into the next message. Moorings that show a fault with the same words as one just told
// wait for spec.groupInterval and are told together, and an Alarm sends no more than ten messages in ten minutes: what
// comes meanwhile is gathered, not lost. Notes beyond two hundred are dropped and counted.
//
// What was told and is not over stands in the Alarm's status, written after each message. An agent that starts again reads it
// there: it repeats nothing, and tells the end of a fault that ended while it was away. When it is killed between a message and the write of the
// status, the message comes twice: better than never.
//
// An Alertmanager gets an alert for each fault by its API v2 (https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml)
// and is told again every minute, with an end five minutes ahead, as Prometheus does: alerts of an agent that is gone end by
// themselves.
//
// A Mooring that is suspended, deleted or no longer picked is no longer told of; its open faults are closed without a
// word, since nothing recovered. Addresses for shoutrrr are secrets: no error, log line or status holds a part of one.
package alarm
