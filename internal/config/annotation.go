package config

import (
	"fmt"
	"strings"

	"plimsoll/internal/strategy"
)

// The annotations of a pod. The older one is that of ack-slo-manager; the newer wins where both are there.
const (
	Annotation    = "koordinator.sh/cpuBurst"
	OldAnnotation = "alibabacloud.com/cpuBurst"
)

// MaxAnnotation is the longest annotation that is read, in bytes. The API server takes 256 KiB, of anybody who may make
// pods; what an annotation may say has room in a tenth of this.
const MaxAnnotation = 4 << 10

// tooLong refuses an annotation before anything is read of it.
func tooLong(object, key, text string) []*Rejected {
	if len(text) <= MaxAnnotation {
		return nil
	}
	return []*Rejected{{Object: object, Key: key, Msg: fmt.Sprintf("is longer than %d bytes: not read", MaxAnnotation),
		Hint: "the fields of docs/CONFIG.md take a few hundred"}}
}

// AnnotationOf is the name and the text of the annotation that counts, "" where there is none.
func AnnotationOf(annotations map[string]string) (key, text string) {
	for _, key := range []string{Annotation, OldAnnotation} {
		if text := annotations[key]; strings.TrimSpace(text) != "" {
			return key, text
		}
	}
	return "", ""
}

// ParseAnnotations reads the annotations of a pod. A bad field keeps its value of last, the result of the former
// annotation. All fields do where the text is not JSON. old says that the older annotation was read.
func ParseAnnotations(object string, annotations map[string]string, last strategy.Patch) (p strategy.Patch, old bool,
	bad []*Rejected) {
	key, text := AnnotationOf(annotations)
	if key == "" {
		return strategy.Patch{}, false, nil
	}
	if bad := tooLong(object, key, text); bad != nil {
		return last, key == OldAnnotation, bad
	}
	p, bad = parsed(object, key, text, last, func(r *jsonReader, list []member) strategy.Patch {
		return r.patch("", list, last, ofPod)
	})
	return p, key == OldAnnotation, bad
}
