package alarm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	shout "github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// open finds the service that an address names. The error holds no part of the address.
func open(address string) (service shout.Service, err error) {
	defer func() {
		if recover() != nil { // a fault of the library in the words of a user must not end the agent
			err = errors.New("the address cannot be read")
		}
	}()
	scheme, _, ok := strings.Cut(address, "://")
	if !ok {
		return nil, errors.New("it is no address: it has no service before ://")
	}
	if scheme == "logger" {
		return nil, errors.New("the service logger is not supported: it would write to the agent's log")
	}
	service, err = (&router.ServiceRouter{}).Locate(address)
	if err != nil {
		return nil, masked(err, address)
	}
	return service, nil
}

// shouts that have not come back. The library knows no context, and some of its services wait for a server without end.
type shouts struct {
	mu   sync.Mutex
	away map[string]int // guarded by mu: by address
}

// maxAway is how many tries of one address may be away at a time.
const maxAway = 3

// begin says whether another one may go.
func (s *shouts) begin(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away[address] >= maxAway {
		return false
	}
	if s.away == nil {
		s.away = map[string]int{}
	}
	s.away[address]++
	return true
}

func (s *shouts) end(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away[address]--; s.away[address] == 0 {
		delete(s.away, address)
	}
}

// shouter sends by the addresses of a Secret.
type shouter struct {
	addresses []string
	shouts    *shouts
}

// send to each address that has not got it yet, all at a time.
func (s *shouter) send(ctx context.Context, j *job) error {
	if j.batch == nil {
		return nil
	}
	m := messageOf(j.alarm.Namespace+"/"+j.alarm.Name, j.batch.changes, j.batch.notes)
	title, text := j.words.say(m)
	results := map[string]chan error{}
	for _, address := range s.addresses {
		if !j.batch.delivered[address] && results[address] == nil {
			result := make(chan error, 1) // with room, for an answer that comes when nobody waits any longer
			results[address] = result
			go func() { result <- s.shout(address, title, text, m) }()
		}
	}
	var errs []error
	for _, address := range slices.Sorted(maps.Keys(results)) {
		var err error
		select {
		case err = <-results[address]:
		case <-ctx.Done():
			err = fmt.Errorf("there was no answer within %s", patience)
		}
		if err == nil {
			j.batch.delivered[address] = true
			continue
		}
		scheme, _, _ := strings.Cut(address, "://")
		scheme, _, _ = strings.Cut(scheme, "+")
		errs = append(errs, fmt.Errorf("send by %s: %w", scheme, err))
	}
	return errors.Join(errs...)
}

// shout one message. It may take as long as the service takes.
func (s *shouter) shout(address, title, text string, m *Message) (err error) {
	if !s.shouts.begin(address) {
		return fmt.Errorf("%d earlier messages are still on their way", maxAway)
	}
	defer s.shouts.end(address)
	defer func() {
		if recover() != nil {
			err = errors.New("the service panicked")
		}
	}()
	service, err := open(address)
	if err != nil {
		return err
	}
	params := shout.Params{}
	switch id := service.GetID(); {
	case id == "generic":
		params.SetTitle(title)
		params["status"], params["alarm"] = m.status(), m.Alarm
		params["events"], params["moorings"] = strings.Join(m.events(), ","), clip(strings.Join(m.moorings(), ","), maxWords)
	case slices.Contains(titled(), id):
		params.SetTitle(title)
	default:
		text = title + "\n" + text
	}
	return masked(service.Send(text, &params), address)
}

// titled are the services that know a title. To the others it is a word that they refuse.
func titled() []string {
	return []string{
		"bark", "discord", "gotify", "ifttt", "join", "lark", "matrix", "mattermost", "ntfy", "opsgenie", "pushbullet", "pushover",
		"slack", "smtp", "teams", "telegram", "zulip",
	}
}
