package linear

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/anishathalye/porcupine"
)

var histories = flag.Int("histories", 3, "histories for each store; a third of each kind")

func TestMain(m *testing.M) {
	if os.Getenv(envStore) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var models = map[string]porcupine.NondeterministicModel{"accept": acceptModel, "lease": leaseModel, "credits": creditModel}

func TestHistoriesAreLinearizable(t *testing.T) { // not parallel: it is timed against kills
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			operations, ok, unknown, lost := 0, 0, 0, 0
			for i := range *histories {
				sc := scenarios[i%len(scenarios)]
				h := kind.start(t, sc.runners)
				got := record(t, h, sc, uint64(i), 3, 100)
				h.close(t)
				operations += len(got.ops)
				lost += got.unknown
				switch check(models[sc.name], got.ops) {
				case porcupine.Ok:
					ok++
				case porcupine.Unknown:
					unknown++
					t.Errorf("history %d (%s): %d operations were not checked in %s", i, sc.name, len(got.ops), checkFor)
				default:
					t.Errorf("history %d (%s) is not linearizable; %s", i, sc.name, picture(t, models[sc.name], got.ops))
				}
			}
			fmt.Printf("store=%s histories=%d operations=%d ok=%d unknown=%d answers-lost=%d\n", kind.name, *histories, operations, ok, unknown, lost)
		})
	}
}

// picture writes the history as a page that can be opened in a browser.
func picture(t *testing.T, m porcupine.NondeterministicModel, ops []porcupine.Operation) string {
	model := m.ToModel()
	model.DescribeOperation = func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) }
	_, info := porcupine.CheckOperationsVerbose(model, ops, checkFor)
	f, err := os.CreateTemp("", "linear-*.html")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if err := porcupine.Visualize(model, info, f); err != nil {
		return err.Error()
	}
	return "see " + f.Name()
}
