package config

import "plimsoll/internal/workload"

// The labels of a pod that name its class; the newer wins.
const (
	ClassLabel    = "koordinator.sh/qosClass"
	OldClassLabel = "alibabacloud.com/qosClass"
)

// ParseClass reads the class of a pod. A word that is none of Koordinator's, which spells them in one way
// (apis/extension/qos.go, getPodQoSClassByName), leaves the class that the pod had.
func ParseClass(object string, labels map[string]string, last workload.Class) (workload.Class, []*Rejected) {
	key := ClassLabel
	if labels[key] == "" {
		key = OldClassLabel
	}
	return word(object, key, labels[key], last, checkClass)
}

// ParseExclusive reads whether the containers of a pod are to have CPUs of their own. A word that is no answer leaves what
// was asked for before.
func ParseExclusive(object, text string, last workload.Exclusive) (workload.Exclusive, []*Rejected) {
	return word(object, ExclusiveAnnotation, text, last, checkExclusive)
}

// word reads a text that is one word. Without one nothing is asked for.
func word[T ~string](object, key, text string, last T, check func(string) *fault) (T, []*Rejected) {
	if text == "" {
		return "", nil
	}
	if f := check(text); f != nil {
		return last, []*Rejected{{Object: object, Key: key, Msg: f.msg, Hint: f.hint}}
	}
	return T(text), nil
}
