package config

import "plimsoll/internal/workload"

// The labels of a pod that name its class; the newer wins.
const (
	ClassLabel    = "koordinator.sh/qosClass"
	OldClassLabel = "alibabacloud.com/qosClass"
)

// ParseClass reads the class of a pod. Koordinator spells its classes in one way. A word that is not one of them
// (apis/extension/qos.go, getPodQoSClassByName) leaves the class that the pod had.
func ParseClass(object string, labels map[string]string, last workload.Class) (workload.Class, []*Rejected) {
	key := ClassKey(labels)
	return word(object, key, labels[key], last, checkClass)
}

// ClassKey is the name of the label that counts.
func ClassKey(labels map[string]string) string {
	if labels[ClassLabel] == "" {
		return OldClassLabel
	}
	return ClassLabel
}

// ParseExclusive reads whether the containers of a pod request exclusive CPUs. Any other word leaves the
// former request.
func ParseExclusive(object, text string, last workload.Exclusive) (workload.Exclusive, []*Rejected) {
	return word(object, ExclusiveAnnotation, text, last, checkExclusive)
}

// word reads a text that is one word. An empty text sets nothing.
func word[T ~string](object, key, text string, last T, check func(string) *fault) (T, []*Rejected) {
	if text == "" {
		return "", nil
	}
	if bad := tooLong(object, key, text); bad != nil {
		return last, bad
	}
	if f := check(text); f != nil {
		return last, []*Rejected{f.in(object, key, "")}
	}
	return T(text), nil
}
