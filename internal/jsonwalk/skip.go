package jsonwalk

// skip steps over a value that stands deep in another one.
func (r *Reader) skip(deep int) {
	switch c := r.Peek(); {
	case deep > maxDepth:
		r.Fail()
	case c == '"':
		r.quoted()
	case c == '{':
		r.list('{', '}', func() {
			r.quoted()
			r.expect(':')
			r.skip(deep + 1)
		})
	case c == '[':
		r.list('[', ']', func() { r.skip(deep + 1) })
	case c == 't' || c == 'f':
		r.Bool()
	case c == 'n':
		if !r.word("null") {
			r.Fail()
		}
	default:
		r.Number()
	}
}

// numberEnd is where the number ends that b begins with; 0 where it is none.
func numberEnd(b []byte) int {
	i := 0
	if len(b) > 0 && b[0] == '-' {
		i++
	}
	whole := digits(b[i:])
	if whole == 0 || whole > 1 && b[i] == '0' {
		return 0
	}
	if i += whole; i < len(b) && b[i] == '.' {
		n := digits(b[i+1:])
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := digits(b[i:])
		if n == 0 {
			return 0
		}
		i += n
	}
	return i
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return n
}
