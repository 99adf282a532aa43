package config

import (
	"strings"
	"testing"

	"plimsoll/internal/strategy"
)

func TestReceipts(t *testing.T) {
	for text, want := range map[string]float64{"1%": 0.01, `"2.5%"`: 0.025, "0": 0, "0%": 0, "50%": 0.5,
		"0.1 %": 0.001} {
		f := mustParse(t, "strategy: {receipts: "+text+"}")
		if got := f.Node().Receipts; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"1": `strategy.receipts: "1" has no percent sign (write 1%)`, "0.01": "has no percent sign",
		"60%": "60% is neither 0% nor within 0.1%..50%",
		"-1%": "-1% is neither", "few": "is not a part in percent", "NaN%": "NaN% is neither",
		"true": "a part such as 1%", "0.01%": "0.01% is neither",
	} {
		if _, err := Parse("x", []byte("strategy: {receipts: "+text+"}")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestReceiptsOfACluster: the cluster may turn them on, a pod's strategy may not; a bad value keeps the last good one.
func TestReceiptsOfACluster(t *testing.T) {
	c, bad := ParseCluster("x", `{"clusterStrategy": {"receipts": "2%"}}`, Cluster{})
	if got := c.For(nil)[0].Over(strategy.DefaultNode()).Receipts; len(bad) > 0 || got != 0.02 {
		t.Errorf("%v, %v", got, bad)
	}
	c, bad = ParseCluster("x", `{"clusterStrategy": {"receipts": "70%"}}`, c)
	if got := c.For(nil)[0].Over(strategy.DefaultNode()).Receipts; len(bad) != 1 || got != 0.02 {
		t.Errorf("%v, %v", got, bad)
	}
	p, _, bad := ParseAnnotations("x", map[string]string{Annotation: `{"receipts": "0%"}`}, strategy.Patch{})
	if p.Receipts != nil || len(bad) > 0 {
		t.Errorf("an annotation: %v, %v", p.Receipts, bad)
	}
	for text, want := range map[string]bool{"": false, "true": false, "false": true, "off": true, "flase": true} {
		if OptsOut(text) != want {
			t.Errorf("%q opts out: %v", text, !want)
		}
	}
}
