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
	key := ClassLabel
	if labels[key] == "" {
		key = OldClassLabel
	}
	return word(object, key, labels[key], last, checkClass)
}

// ParseExclusive reads whether the containers of a pod request CPUs of their own. Any other word leaves the
// former request.
func ParseExclusive(object, text string, last workload.Exclusive) (workload.Exclusive, []*Rejected) {
	return word(object, ExclusiveAnnotation, text, last, checkExclusive)
}

// word reads a text that is one word. An empty text sets nothing.
func word[T ~string](object, key, text string, last T, check func(string) *fault) (T, []*Rejected) {
	if text == "" {
		return "", nil
	}
	if f := check(text); f != nil {
		return last, []*Rejected{{Object: object, Key: key, Msg: f.msg, Hint: f.hint}}
	}
	return T(text), nil
}
