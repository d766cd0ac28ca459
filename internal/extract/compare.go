package extract

import (
	"hash/fnv"
	"math"
	"slices"
)

// Same says whether two facts of one type and key mean the same: the same
// words are left when stop words, endings and order are taken away. It is a
// filter and best effort, not a guarantee: a paraphrase in other words passes
// as new.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	x, y := meaning(a), meaning(b)
	if len(x) == 0 || len(x) != len(y) {
		return false
	}
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// Dimensions is the length of an embedding.
const Dimensions = 128

// EmbedVersion changes with what Embed gives: vectors of another version are not
// comparable.
const EmbedVersion = 1

// Embed gives a unit vector of Dimensions numbers, near to those of texts that
// share words or parts of words. A text without any meaning gives all zeros,
// which is near to nothing.
func Embed(text string) []float32 {
	v := make([]float64, Dimensions)
	for _, s := range meaning(text) {
		add(v, s, 1)
		runes := []rune("^" + s + "$")
		for i := 0; i+3 <= len(runes); i++ {
			add(v, string(runes[i:i+3]), 0.35)
		}
	}
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	out := make([]float32, Dimensions)
	if sum == 0 {
		return out
	}
	norm := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(x * norm)
	}
	return out
}

// add puts a feature at the place its hash names, with the sign of one more
// bit so that collisions cancel out rather than pile up.
func add(v []float64, feature string, weight float64) {
	h := fnv.New64a()
	h.Write([]byte(feature))
	sum := h.Sum64()
	if sum>>63 == 1 {
		weight = -weight
	}
	v[sum%Dimensions] += weight
}

// rounding is more than the sums of an embedding in single precision are off,
// and far less than one shared word of a long text weighs.
const rounding = 1e-6

// Score is how near two embeddings are, from 0 (nothing in common) to 1. What
// only rounding left is nothing in common. Vectors of different length are not
// comparable and give 0.
func Score(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
	}
	if dot < rounding {
		return 0
	}
	return min(dot, 1)
}
