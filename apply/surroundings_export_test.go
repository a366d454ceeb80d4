package apply

// KeptWhile says whether a reading is still kept after a wait.
func KeptWhile(wait func()) bool {
	n := &neighbourhood{turn: make(chan struct{}, 1)}
	n.turn <- struct{}{}
	n.keep(&Surroundings{}, nil)
	<-n.turn
	wait()
	n.turn <- struct{}{}
	defer func() { <-n.turn }()
	return n.last != nil
}

// KeepFor is how long a reading is kept.
const KeepFor = keepFor
