package repos

import "regexp"

// An error that says something else at each try is news at each try to whoever shows it: a condition is written anew, and an Event with it. So what differs
// between two tries of the same is left out of the text: our own end of a connection, of which the port is another one each time, the time of day, and the
// number that a forge gives the request. Some of it comes from deep within the libraries as plain text, as from the resolver, hence the patterns.
var (
	// ourEnd is how net.OpError begins. Between the two addresses of SOCKS, which it calls connect, the first is the proxy's.
	ourEnd = regexp.MustCompile(`\b((?:dial|read|write|close|set|readfrom|writeto|sendfile|splice) (?:tcp|udp)[46]?) \S+->`)
	// timeOfDay is what crypto/x509 says of a certificate that is not valid now.
	timeOfDay = regexp.MustCompile(`\bcurrent time \S+ is (before|after)\b`)
	// requestID is what GitHub's API wants to be told when somebody complains.
	requestID = regexp.MustCompile(`\brequest ID \S+ and timestamp \S+ \S+ UTC\b`)
)

// Steady is a text without what differs from try to try. Those of an Error are it already; it is for those of others.
func Steady(text string) string {
	text = ourEnd.ReplaceAllString(text, "$1 ")
	text = timeOfDay.ReplaceAllString(text, "the current time is $1")
	return requestID.ReplaceAllString(text, "request ID and timestamp")
}
