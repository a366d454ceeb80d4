package forge

// Body is what the body of a pull request becomes; was is the one that it has.
func Body(p Proposal, was string, provider Provider) string {
	return compose(p, split(was), sum(oneLine(p.Title)), provider)
}

// Promoted is the commit that a body is about.
func Promoted(body string) string { return promoted(body) }
