{{- define "plimsoll.labels" -}}
app.kubernetes.io/name: {{ .Values.name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "plimsoll.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* By which the pods of an uninstallation know their own agent. */}}
{{- define "plimsoll.installation" -}}
--installation={{ .Release.Namespace }}/{{ .Values.name }}
{{- end }}

{{- define "plimsoll.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The ConfigMaps that are read, as a JSON list of NAMESPACE/NAME. None is in a namespace that may not exist: whoever made it
would set the policy. */}}
{{- define "plimsoll.configMaps" -}}
{{- $names := .Values.configMaps }}
{{- if not $names }}
  {{- $names = list (printf "%s/slo-controller-config" .Release.Namespace) "kube-system/ack-slo-config" }}
  {{- $koordinator := toString .Values.compatibility.koordinator }}
  {{- if eq $koordinator "auto" }}{{ $koordinator = lookup "v1" "Namespace" "" "koordinator-system" | empty | ternary "false" "true" }}{{ end }}
  {{- if eq $koordinator "true" }}
    {{- $names = concat $names (list "koordinator-system/slo-controller-config" "koordinator-system/ack-slo-pod-config") }}
  {{- end }}
{{- end }}
{{- toJson (uniq $names) }}
{{- end }}

{{/* The program of a container, by the container's name. deploy/seccomp and deploy/apparmor have a profile for each. */}}
{{- define "plimsoll.program" -}}
{{ get (dict "serve" "plimsoll-serve" "lease" "plimsoll-lease") . | default "plimsoll" }}
{{- end }}

{{/* The profiles of a container, by its name. */}}
{{- define "plimsoll.profiles" -}}
{{- $root := index . 0 }}
{{- $program := include "plimsoll.program" (index . 1) -}}
seccompProfile:
  type: {{ $root.Values.seccompProfile }}
  {{- if eq $root.Values.seccompProfile "Localhost" }}
  localhostProfile: plimsoll/{{ $program }}.json
  {{- end }}
{{- if and $root.Values.appArmorProfile (semverCompare ">=1.30-0" $root.Capabilities.KubeVersion.Version) }}
appArmorProfile:
  type: {{ $root.Values.appArmorProfile }}
  {{- if eq $root.Values.appArmorProfile "Localhost" }}
  localhostProfile: {{ $program }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Root without privileges: the owner of the files of the control groups, and no more. */}}
{{- define "plimsoll.confinement" -}}
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
{{ include "plimsoll.profiles" . }}
seLinuxOptions:
  type: {{ (index . 0).Values.seLinuxType }}
{{- end }}

{{/* For processes that need no privilege at all. */}}
{{- define "plimsoll.unprivileged" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
{{ include "plimsoll.profiles" . }}
capabilities:
  drop: [ALL]
{{- end }}

{{/* AppArmor's profile before it was a field of the container: an annotation for each of them. */}}
{{- define "plimsoll.appArmorAnnotations" -}}
{{- $root := index . 0 }}
{{- if and $root.Values.appArmorProfile (semverCompare "<1.30-0" $root.Capabilities.KubeVersion.Version) }}
{{- range rest . }}
container.apparmor.security.beta.kubernetes.io/{{ . }}: {{ get (dict "RuntimeDefault" "runtime/default" "Unconfined" "unconfined") $root.Values.appArmorProfile | default (printf "localhost/%s" (include "plimsoll.program" .)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "plimsoll.mounts" -}}
- name: cgroup
  mountPath: /host/cgroup
- name: state
  mountPath: /run/plimsoll
- name: lock
  mountPath: /run/plimsoll-lock
{{- end }}

{{- define "plimsoll.volumes" -}}
- name: cgroup
  hostPath:
    path: {{ .Values.cgroupRoot }}
    type: Directory
- name: state
  hostPath:
    path: {{ .Values.stateDir }}
    type: DirectoryOrCreate
{{- /* Not a value: agents of other releases, and of the node itself, have their locks there, too. */}}
- name: lock
  hostPath:
    path: /run/plimsoll-lock
    type: DirectoryOrCreate
{{- end }}

{{/* Whether the agent reads the kubelet's folder: "true", or nothing. */}}
{{- define "plimsoll.readsKubelet" -}}
{{- $reserve := .Values.config.reserve | default dict }}
{{- if or .Values.mountKubeletDir (ne ($reserve.policy | default "none") "none") }}true{{ end }}
{{- end }}
