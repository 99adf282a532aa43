package config

import (
	"strings"

	"plimsoll/internal/strategy"
)

// The annotations of a pod. The older one is that of ack-slo-manager; the newer wins where both are there.
const (
	Annotation    = "koordinator.sh/cpuBurst"
	OldAnnotation = "alibabacloud.com/cpuBurst"
)

// ParseAnnotations reads the annotations of a pod. A bad field keeps its value of last, the result of the former
// annotation. All fields do where the text is not JSON. old says that the older annotation was read.
func ParseAnnotations(object string, annotations map[string]string, last strategy.Patch) (p strategy.Patch, old bool, bad []*Rejected) {
	key, text := Annotation, annotations[Annotation]
	if strings.TrimSpace(text) == "" {
		key, text = OldAnnotation, annotations[OldAnnotation]
	}
	if strings.TrimSpace(text) == "" {
		return strategy.Patch{}, false, nil
	}
	p, bad = parsed(object, key, text, last, func(r *jsonReader, list []member) strategy.Patch { return r.patch("", list, last, ofPod) })
	return p, key == OldAnnotation, bad
}
