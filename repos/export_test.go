package repos

import "time"

// Waiting is the number of callers that wait for shared work now: for a listing, or for a fetch.
func (s *Store) Waiting() (listings, fetches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.remotes {
		listings += m.listings.waiting()
		fetches += m.fetches.waiting()
	}
	return listings, fetches
}

func (f *flights[K, T]) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.now {
		n += c.waiters
	}
	return n
}

// SubmoduleURL is where a submodule with a url is, whose parent is at another.
func SubmoduleURL(parent, url string) (string, error) {
	at, err := parseURL(parent, false)
	if err != nil {
		return "", err
	}
	return submoduleURL(at, url, false)
}

// ReadModules reads .gitmodules.
var ReadModules = readModules

// Keeping makes options of a store that keeps for less time what nobody asks for.
func Keeping(o Options, commits int, lately, stray time.Duration) Options {
	o.keep = keeping{commits: commits, lately: lately, stray: stray}
	return o
}
