package service

import "testing"

func TestOnlyAWellFormedTraceparentIsKept(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for header, want := range map[string]string{
		good: good,
		"":   "",
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":  "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":  "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":  "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":  "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01":  "",
	} {
		if got := traceparent(header); got != want {
			t.Errorf("traceparent(%q) = %q, want %q", header, got, want)
		}
	}
}
