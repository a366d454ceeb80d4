package check

import "strings"

// suggest says what an unknown field was probably meant to be: a name that is nearly the same, or a field of the same name that
// belongs one or more levels up or one level down. Empty when nothing comes near.
func suggest(p *place, m map[string]any, key string) string {
	if near := nearest(key, p.names()); near != "" {
		return "did you mean " + near + "?"
	}
	if field := holder(p, m, key); field != "" {
		return key + " belongs inside " + join(p.path, field) + ": indent it"
	}
	for up := p.up; up != nil; up = up.up {
		if up.has(key) {
			return key + " belongs to " + nameOf(up) + ": indent it less"
		}
	}
	for up := p.up; up != nil && up.path != ""; up = up.up {
		if near := nearest(key, up.names()); near != "" {
			return "did you mean " + near + ", which belongs to " + nameOf(up) + "?"
		}
	}
	return ""
}

// holder is the field whose message has the key: the one that is written here, or else the only one that there is.
func holder(p *place, m map[string]any, key string) string {
	holders := p.holders(key)
	for _, field := range holders {
		if _, written := m[field]; written {
			return field
		}
	}
	if len(holders) == 1 {
		return holders[0]
	}
	return ""
}

func nameOf(p *place) string {
	if p.path == "" {
		return "the top of the object"
	}
	return p.path
}

// nearest is the candidate that the key was probably meant to be, or empty. A difference in case or underscores alone is
// always near; otherwise up to a third of the letters may differ, and the nearer candidate wins, then the earlier.
func nearest(key string, candidates []string) string {
	best, bestDistance := "", len(key)/3+1
	for _, c := range candidates {
		if plain(c) == plain(key) {
			return c
		}
		if d := distance(strings.ToLower(key), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

// distance counts the letters to add, drop, replace or swap with their neighbour to make b from a (optimal string
// alignment). Keys longer than any field name are not worth the work.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
